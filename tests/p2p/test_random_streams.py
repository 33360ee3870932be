"""Randomness is found by name: nothing else moves it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from p2p.random_streams import draws, stream, streams

SEEDS = st.integers(0, 2**40)
NAMES = st.lists(st.one_of(st.sampled_from(["", "a", "noise", "ä b"]), st.integers(0, 2**20)), min_size=1, max_size=3)


@given(SEEDS, NAMES)
def test_a_stream_is_found_by_its_name(seed: int, name: list[str | int]) -> None:
    """Equal names give equal numbers, however much was drawn from others in between."""
    expected = stream(seed, *name).random(3)
    stream(seed, *name, "other").random(10)
    assert stream(seed, *name).random(3).tolist() == expected.tolist()


def test_names_and_seeds_tell_streams_apart() -> None:
    """Another seed, another name, another order: another stream."""
    streams = [stream(1, "a", 1), stream(2, "a", 1), stream(1, "b", 1), stream(1, "a", 2), stream(1, 1, "a")]
    assert len({float(rng.random()) for rng in streams}) == len(streams)


@pytest.mark.slow
@given(SEEDS, st.lists(st.integers(0, 2**40), min_size=1, max_size=40))
def test_a_draw_depends_on_its_id_alone(seed: int, ids: list[int]) -> None:
    """Drawing all at once, one by one or backwards makes no difference; all lie strictly inside (0, 1)."""
    array = np.array(ids, dtype=np.int64)
    together = draws(seed, "x", array)
    assert [float(draws(seed, "x", np.array([number]))[0]) for number in ids] == together.tolist()
    assert draws(seed, "x", array[::-1]).tolist() == together[::-1].tolist()
    assert ((together > 0) & (together < 1)).all()


def test_tuples_of_ids_broadcast_and_their_order_counts() -> None:
    """A pair's draw is that of the pair; (1, 2) is not (2, 1)."""
    ids = np.arange(50)
    square = draws(3, "pair", ids[:, None], ids[None, :])
    assert square.shape == (50, 50)
    assert square[4, 7] == draws(3, "pair", np.array([4]), np.array([7]))[0]
    assert len(np.unique(square)) == 2500


def test_draws_are_uniform() -> None:
    """Mean, spread and neighbouring ids of a large draw look independent and uniform."""
    sample = draws(0, "uniform", np.arange(100_000))
    assert abs(sample.mean() - 0.5) < 0.004
    assert abs(sample.var() - 1 / 12) < 0.002
    assert abs(np.corrcoef(sample[1:], sample[:-1])[0, 1]) < 0.015
    assert np.bincount((sample * 20).astype(int), minlength=20).min() > 4700


@given(SEEDS, st.lists(st.integers(-1, 2**40), min_size=1, max_size=4))
def test_a_plain_number_is_an_array_of_one(seed: int, ids: list[int]) -> None:
    """The same bits, however the ids are given."""
    expected = float(draws(seed, "x", *(np.array([number]) for number in ids))[0])
    assert float(draws(seed, "x", *ids)) == expected
    assert float(draws(seed, "x", *ids[:-1], np.array([ids[-1]]))[0]) == expected


PLACES = st.lists(st.tuples(st.sampled_from(["noise", "batches"]), st.integers(0, 2**33)), max_size=6)


@given(st.integers(0, 2**33), PLACES)
def test_many_streams_at_once_are_the_same_streams(seed: int, places: list[tuple[str, int]]) -> None:
    """Also where a number is too large for the short way."""
    names: list[tuple[str | int, ...]] = [(*place, 7) for place in places]
    found = [rng.random(3).tolist() for rng in streams(seed, names)]
    assert found == [stream(seed, *name).random(3).tolist() for name in names]
