"""Batches cover each client's records once per epoch, in an order that is the client's own."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from nodes.learning.minibatches import draw_batches
from nodes.learning.training import Training


@given(
    sizes=st.lists(st.integers(1, 25), min_size=1, max_size=6),
    epochs=st.integers(1, 3),
    batch_size=st.integers(1, 9),
)
@settings(max_examples=40, deadline=None)
def test_every_epoch_sees_every_record_once(sizes: list[int], epochs: int, batch_size: int) -> None:
    """Rows with weight are the client's records, `epochs` times each; the weights of a step add up to one."""
    sizes = sorted(sizes, reverse=True)
    shards = np.split(np.arange(sum(sizes)), np.cumsum(sizes)[:-1])
    training = Training(epochs=epochs, batch_size=batch_size)
    batches = draw_batches(shards, range(len(sizes)), training, 1, 1)
    assert len(batches.rows) == training.steps(sizes[0])
    for node, shard in enumerate(shards):
        there = batches.weights[:, node] > 0
        assert np.array_equal(np.sort(batches.rows[:, node][there]), np.repeat(shard, epochs))
        steps = there.any(axis=1)
        assert np.array_equal(np.flatnonzero(steps), np.arange(training.steps(len(shard))))
        assert np.array_equal(steps, batches.active > node)
        assert np.allclose(batches.weights[steps, node].sum(axis=1), 1)


def test_the_order_is_the_clients_own() -> None:
    """It does not depend on who trains beside it, but on the node and the round."""
    shards = np.split(np.arange(40), 4)
    training = Training(batch_size=5)
    together = draw_batches(shards, [2, 0, 3], training, 7, 1)
    alone = draw_batches(shards, [0], training, 7, 1)
    later = draw_batches(shards, [0], training, 7, 2)
    assert np.array_equal(together.rows[:, 1], alone.rows[:, 0])
    assert not np.array_equal(later.rows, alone.rows)
