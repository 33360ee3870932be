"""Randomness is found by name: nothing else moves it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from p2p.streams import stream, streams

SEEDS = st.integers(0, 2**40)
PLACES = st.lists(st.tuples(st.sampled_from(["noise", "batches"]), st.integers(0, 2**33)), max_size=6)


@given(st.integers(0, 2**33), PLACES)
def test_many_streams_at_once_are_the_same_streams(seed: int, places: list[tuple[str, int]]) -> None:
    """Also where a number is too large for the short way."""
    names: list[tuple[str | int, ...]] = [(*place, 7) for place in places]
    found = [rng.random(3).tolist() for rng in streams(seed, names)]
    assert found == [stream(seed, *name).random(3).tolist() for name in names]
