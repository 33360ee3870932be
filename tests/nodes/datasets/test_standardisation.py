"""Standardisation says whose records it uses, and no client's records reach another's training unless it pools them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from nodes.datasets.client_split import ByClient
from nodes.datasets.preparation import client_records, pooled_releases, public_facts
from nodes.datasets.published import Adult
from nodes.datasets.registry import DATASETS, File, Synthetic
from nodes.datasets.standardisation import POOLED
from p2p.config.errors import UserError

Input = tuple[NDArray[np.float32], NDArray[np.int64]]
CLIENTS, EACH = 20, 15
SOUND: list[dict[str, Any]] = [
    {"standardise": False},
    {"standardise": "per_client"},
    {"standardise": "given", "means": (1.0, 2.0, 3.0), "deviations": (0.5, 1.0, 2.0)},
]


def write(path: Path, changed: bool, labels_too: bool = False) -> Path:
    """Records of 20 owners; if `changed`, the features of owner 7 are times 1e4, and perhaps all its labels 0."""
    rng = np.random.default_rng(5)
    features = rng.normal(3.0, 2.0, (CLIENTS * EACH, 3)).astype(np.float32)
    labels, owners = rng.integers(4, size=CLIENTS * EACH), np.repeat(np.arange(CLIENTS), EACH)
    if changed:
        features[owners == 7] *= 1e4
    if labels_too:
        labels[owners == 7] = 0
    np.savez(path, x=features, label=labels, who=owners)
    return path


def inputs(path: Path, **keys: Any) -> list[Input]:
    """What each client trains on, in its order."""
    data = File(path=str(path), client="who", split=ByClient(), **keys)
    loaded, shards = client_records(data, CLIENTS, path.parent, 3)
    return [(loaded.train_x[shard], loaded.train_y[shard]) for shard in shards]


def changes(path: Path, labels_too: bool = True, **keys: Any) -> list[int]:
    """The clients whose training input differs between the two neighbouring data sets."""
    before = inputs(write(path, False), **keys)
    after = inputs(write(path, True, labels_too), **keys)
    pairs = enumerate(zip(before, after, strict=True))
    return [client for client, (old, new) in pairs if not _equal(old, new)]


def _equal(old: Input, new: Input) -> bool:
    return np.array_equal(old[0], new[0]) and np.array_equal(old[1], new[1])


@pytest.mark.parametrize("keys", SOUND, ids=lambda keys: str(keys["standardise"]))
def test_one_clients_records_leave_the_others_inputs_alone(tmp_path: Path, keys: dict[str, Any]) -> None:
    """Features times 1e4 and other labels: no other client trains on anything else, to the last bit."""
    assert changes(tmp_path / "x.npz", **keys) == [7]
    assert pooled_releases(File(path="x.npz", **keys)) == []


def test_pooled_moments_move_every_clients_input(tmp_path: Path) -> None:
    """Which is why the data set says so."""
    assert changes(tmp_path / "x.npz", labels_too=False) == list(range(CLIENTS))
    assert pooled_releases(File(path="x.npz")) == pooled_releases(Adult()) == [POOLED]


def test_each_clients_own_moments(tmp_path: Path) -> None:
    """Mean 0 and deviation 1 at every client, and on the test set, which belongs to no client."""
    data = File(path=str(write(tmp_path / "x.npz", False)), standardise="per_client")
    loaded, shards = client_records(data, CLIENTS, tmp_path, 3)
    for part in [*(loaded.train_x[shard] for shard in shards), loaded.test_x]:
        assert np.allclose(part.mean(axis=0), 0, atol=1e-5)
        assert np.allclose(part.std(axis=0), 1, atol=1e-5)


def test_given_moments_are_used_as_they_are(tmp_path: Path) -> None:
    """One for each feature."""
    path = write(tmp_path / "x.npz", False)
    raw, scaled = (inputs(path, **keys)[4][0] for keys in (SOUND[0], SOUND[2]))
    assert np.allclose(scaled, (raw - np.array([1.0, 2.0, 3.0])) / np.array([0.5, 1.0, 2.0]), atol=1e-5)


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ({"standardise": "given"}, "means = none: `standardise: given` needs public numbers"),
        ({"standardise": "given", "means": (1.0,)}, "deviations = none: `standardise: given` needs"),
        ({"means": (1.0,)}, "means = [1.0]: is used with `standardise: given` only"),
        ({"standardise": "given", "means": (1.0,), "deviations": (1.0, 2.0)}, "has 2 numbers and means 1"),
    ],
)
@pytest.mark.parametrize("make", [Adult, lambda **keys: File(path="x.csv", **keys)], ids=["adult", "file"])
def test_settings_that_do_not_fit_are_told(make: Any, keys: dict[str, Any], expected: str) -> None:
    """For both data sets that standardise by data."""
    with pytest.raises(UserError, match=r".") as caught:
        make(**keys)
    assert expected in str(caught.value)


def test_too_few_given_moments_are_told(tmp_path: Path) -> None:
    """Once the number of features is known."""
    path = write(tmp_path / "x.npz", False)
    with pytest.raises(UserError, match="has 1 numbers, the data 3 features"):
        inputs(path, standardise="given", means=(1.0,), deviations=(1.0,))


@pytest.mark.parametrize("name", DATASETS)
def test_every_data_set_declares_what_it_pools(name: str) -> None:
    """None of them leaves it open; without standardisation by data nothing is pooled."""
    data = DATASETS[name](**({"path": "x.csv"} if name == "file" else {}))
    assert pooled_releases(data) == ([POOLED] if name in ("file", "adult") else [])


def test_a_data_set_that_does_not_declare_it_is_unaccounted() -> None:
    """As a plug-in may be."""

    class Silent:
        split = Synthetic().split

    assert pooled_releases(Silent())[0].startswith("the data set ")
    assert public_facts(Silent()) == []
