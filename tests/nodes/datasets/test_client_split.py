"""Splits deal records fairly, disjointly, and refuse what cannot be dealt."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from nodes.datasets.client_split import SPLITS, ByClient, DataSplit, Dirichlet, Iid, Shards
from p2p.config.errors import UserError
from p2p.random_streams import stream

Ints = NDArray[np.int64]


def deal(split: DataSplit, labels: Ints, clients: int, seed: int = 1) -> list[Ints]:
    """A split with owners that alternate."""
    return split.split(labels, clients, stream(seed, "split"), np.arange(len(labels)) % max(clients, 1))


@pytest.mark.parametrize("kind", SPLITS)
@given(records=st.integers(20, 300), clients=st.integers(1, 10), classes=st.integers(1, 5), seed=st.integers(0, 99))
@settings(max_examples=30, deadline=None)
def test_every_split_deals_disjoint_nonempty_shards(
    kind: str, records: int, clients: int, classes: int, seed: int
) -> None:
    """No record is dealt twice, no client gets nothing, and with enough owners all records are dealt."""
    labels = stream(seed, "labels").integers(classes, size=records)
    shards = deal(SPLITS[kind](), labels, clients, seed)
    dealt = np.concatenate(shards)
    assert len(shards) == clients
    assert min(map(len, shards)) >= 1
    assert np.array_equal(np.sort(dealt), np.arange(records))


@pytest.mark.parametrize("kind", SPLITS)
def test_equal_streams_give_equal_splits(kind: str) -> None:
    """A split draws from its generator alone."""
    labels = np.arange(200) % 7
    first, second = (deal(SPLITS[kind](), labels, 9) for _ in range(2))
    assert all(np.array_equal(a, b) for a, b in zip(first, second, strict=True))


@pytest.mark.parametrize("split", [Iid(), Shards(classes_per_client=1)])
def test_sizes_differ_by_at_most_one(split: DataSplit) -> None:
    """An even deal is even."""
    sizes = [len(shard) for shard in deal(split, np.arange(103) % 10, 10)]
    assert set(sizes) == {10, 11}


def test_iid_deals_a_fixed_number_when_asked() -> None:
    """`records` leaves the rest out."""
    assert [len(shard) for shard in deal(Iid(records=5), np.zeros(103, dtype=np.int64), 10)] == [5] * 10


def test_the_papers_200_shards() -> None:
    """100 clients with two shards of 60,000 records: 600 each, of at most two labels plus a border."""
    labels = np.repeat(np.arange(10), 6000)
    shards = deal(Shards(classes_per_client=2), labels, 100)
    assert {len(shard) for shard in shards} == {600}
    assert all(len(np.unique(labels[shard])) <= 2 for shard in shards)


def test_dirichlet_is_skewed_for_small_alpha_and_even_for_large() -> None:
    """The largest share of one label grows as alpha falls."""
    labels = np.arange(5000) % 10

    def skew(alpha: float) -> float:
        shards = deal(Dirichlet(alpha=alpha), labels, 10)
        return float(np.mean([np.bincount(labels[shard]).max() / len(shard) for shard in shards]))

    assert skew(0.05) > 0.5
    assert skew(1000.0) < 0.15


def test_dirichlet_tops_up_the_poor() -> None:
    """Even a tiny alpha leaves `min_records` for every client."""
    shards = deal(Dirichlet(alpha=1e-4, min_records=7), np.arange(100) % 3, 10)
    assert min(map(len, shards)) == 7
    assert sum(map(len, shards)) == 100


def test_by_client_keeps_owners_together_and_may_draw_some() -> None:
    """Each shard is all records of one owner."""
    owners = np.array([5, 9, 5, 7, 9, 9])
    shards = ByClient().split(np.zeros(6, dtype=np.int64), 2, stream(3, "split"), owners)
    assert all(np.array_equal(shard, np.flatnonzero(owners == owners[shard[0]])) for shard in shards)
    assert len({int(owners[shard[0]]) for shard in shards}) == 2


@pytest.mark.parametrize(
    ("split", "message"),
    [
        (
            Iid(),
            "data.split = iid: 11 clients need at least 11 records, the data has 10; use fewer clients or more data",
        ),
        (Iid(records=2), "data.split = iid: 11 clients need at least 22 records"),
        (Shards(classes_per_client=3), "data.split.classes_per_client = 3: 33 shards for 11 clients need at least 33"),
        (Dirichlet(min_records=4), "data.split.min_records = 4: 11 clients need at least 44 records"),
        (ByClient(), "data.split = by_client: 11 clients need as many owners, the data has 10; set clients to at most"),
    ],
)
def test_too_few_records_are_a_users_error(split: DataSplit, message: str) -> None:
    """The message names the path, the rule and the cure."""
    with pytest.raises(UserError) as caught:
        deal(split, np.arange(10) % 2, 11)
    assert message in str(caught.value)


def test_by_client_without_a_column_is_a_users_error() -> None:
    """The cure names the key."""
    with pytest.raises(UserError, match=r"no client column; name it with `data\.client`"):
        ByClient().split(np.zeros(6, dtype=np.int64), 2, stream(3, "split"), None)


@pytest.mark.parametrize(("kind", "needed"), [("iid", 10), ("shards", 20), ("dirichlet", 10), ("by_client", 10)])
def test_needs_is_what_split_enforces(kind: str, needed: int) -> None:
    """A scenario can be refused before its data is read."""
    assert SPLITS[kind]().needs(10) == needed


@pytest.mark.parametrize("split", [Iid(), Iid(records=2), Shards(), Dirichlet(alpha=0.1), Dirichlet(min_records=2)])
@given(records=st.integers(20, 300), clients=st.integers(1, 10), classes=st.integers(1, 5), seed=st.integers(0, 99))
@settings(max_examples=30, deadline=None)
def test_sizes_are_known_without_the_records(
    split: DataSplit, records: int, clients: int, classes: int, seed: int
) -> None:
    """The counts of the classes suffice, in whatever order the records are."""
    labels = stream(seed, "labels").integers(classes, size=records)
    sizes = split.sizes(np.bincount(labels), clients, stream(seed, "split"))
    assert sizes.tolist() == [len(shard) for shard in deal(split, labels, clients, seed)]


def test_owners_have_no_sizes_without_a_column() -> None:
    """The cure is named."""
    with pytest.raises(UserError, match=r"no client column; name it with `data.client`"):
        ByClient().sizes(np.array([5, 5]), 2, stream(1, "split"))
