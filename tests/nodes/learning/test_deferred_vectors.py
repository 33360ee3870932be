"""Vectors that outlive an interrupt: named while learning is paused, computed when it is restored."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nodes.learning.deferred_learning import DeferredLearning
from nodes.learning.deferred_vectors import Matrix
from nodes.learning.interface import Scores
from nodes.learning.release_stages import ReleaseStages
from privacy.sealing.sealers import make_sealer

ADDRESSES = (b"a" * 32, b"b" * 32)


class Halver:
    """A trainer whose training halves a model."""

    dimension = 3
    threads = 2

    def initial(self) -> Matrix:
        """Eights."""
        return np.full(3, 8.0, dtype=np.float32)

    def train(
        self, models: Matrix, nodes: Sequence[int], round_number: int, numbers: Sequence[int], losses: Any = None
    ) -> Matrix:
        """Half of each."""
        return models / np.float32(2)

    def evaluate(self, models: Matrix) -> Scores:
        """Nothing worth measuring."""
        return models[:, 0].astype(np.float64), models[:, 0].astype(np.float64)

    def public_loss(self, model: Matrix) -> float:
        """The first coordinate."""
        return float(model[0])

    def own_losses(self, models: Matrix, nodes: Sequence[int]) -> NDArray[np.float64]:
        """The first coordinates."""
        return models[:, 0].astype(np.float64)


def deferred() -> DeferredLearning:
    """Four clients, no privacy."""
    return DeferredLearning(Halver(), 4, ReleaseStages(), 1)


def test_a_replay_continues_where_another_run_stopped() -> None:
    """Models, noise, referenced vectors and updates not yet released are those of the one that learned."""
    learned, replayed = deferred(), deferred()
    replayed.pause()
    kept = []
    for learning in (learned, replayed):
        learning.start_training(0, 1)
        learning.start_training(1, 1)
        update = learning.release(0, 1)
        learning.step(2, [update])
        learning.forget(1)
        learning.start_training(3, 2)
        kept.append((update, learning.model(2)))
    assert not kept[1][0].array().any()
    replayed.restore(learned.state())
    for vector, same in zip(*kept, strict=True):
        assert same.array().tolist() == vector.array().tolist()
    assert replayed.release(3, 2).array().tolist() == [4.0] * 3
    assert [replayed.model(node).array()[0] for node in range(4)] == [8.0, 8.0, 4.0, 8.0]
    assert learned.state().noise_numbers.tolist() == replayed.state().noise_numbers.tolist()


def test_a_message_sealed_while_learning_is_paused_is_read_after_it() -> None:
    """It holds zeros, opens all the same, and its reader gets the real numbers; resealed, it holds them."""
    learned, replayed = deferred(), deferred()
    replayed.pause()
    for learning in (learned, replayed):
        learning.start_training(0, 1)
    update = replayed.release(0, 1)
    sealer = make_sealer(True)
    mine, yours = (sealer.draw_keys(1, node, 1) for node in range(2))
    receiver = (ADDRESSES[1], yours.public)
    early = sealer.seal_one("update", 1, 1, mine, ADDRESSES[0], receiver, update.payload())
    replayed.restore(learned.state())
    late = sealer.seal_one("update", 1, 2, mine, ADDRESSES[0], receiver, update.payload())
    for envelope in (early, late):
        assert sealer.open(envelope, yours, mine.public).array().tolist() == [4.0] * 3
    assert update.payload().to_bytes() == np.full(3, 4.0, dtype="<f4").tobytes()


def test_damage_while_learning_is_paused_is_the_same_damage() -> None:
    """A bit that changed under way while zeros were sent is the bit that changed in the real numbers."""
    learned, replayed = deferred(), deferred()
    replayed.pause()
    altered = []
    for learning in (learned, replayed):
        learning.start_training(0, 1)
        payload = learning.release(0, 1).payload()
        data = bytearray(payload.to_bytes())
        data[5] ^= 64
        altered.append(payload.altered(bytes(data)).value)
    replayed.restore(learned.state())
    assert altered[0].array().tobytes() == altered[1].array().tobytes()


def test_a_vector_in_hand_outlives_its_round() -> None:
    """A reader that was slow may look after the round has been let go."""
    learning = deferred()
    learning.start_training(0, 1)
    update = learning.release(0, 1)
    learning.forget(1)
    assert update.array().tolist() == [4.0] * 3
