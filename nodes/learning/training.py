"""Settings of local training: SGD with a learning-rate schedule."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from annotated_types import Ge, Gt, Le, Lt


@dataclass(frozen=True, slots=True, kw_only=True)
class Training:
    """Local training of one round: SGD over the client's own records; momentum starts at zero in every round.

    Attributes:
        epochs: passes over the client's records per round
        batch_size: records per step, the last batch of a pass may be shorter; all takes one step per pass
        learning_rate: learning rate of the first round
        momentum: fraction of the previous step that is kept
        decay: factor on the learning rate from one round to the next
        decay_rounds: rounds after which the rate stays constant; none decays in all rounds
        weight_decay: pull towards zero, as a multiple of the weights in the gradient
    """

    epochs: Annotated[int, Ge(1)] = 1
    batch_size: Annotated[int, Ge(1)] | Literal["all"] = 10
    learning_rate: Annotated[float, Gt(0)] = 0.1
    momentum: Annotated[float, Ge(0), Lt(1)] = 0.0
    decay: Annotated[float, Gt(0), Le(1)] = 1.0
    decay_rounds: Annotated[int, Ge(0)] | None = None
    weight_decay: Annotated[float, Ge(0)] = 0.0

    def rate(self, round_number: int) -> float:
        """Returns the learning rate of a round; rounds count from 1."""
        steps = max(round_number - 1, 0)  # round 0, the set-up, has the rate of the first
        if self.decay_rounds is not None:
            steps = min(steps, self.decay_rounds)
        return float(self.learning_rate * self.decay**steps)

    def steps(self, records: int) -> int:
        """Returns the SGD steps of one round for a client with this many records."""
        # Rounded up: every epoch ends with its own short batch.
        return self.epochs * -(-records // self.widest_batch(records))

    def widest_batch(self, records: int) -> int:
        """Returns the records of a full step, for clients with at most this many records."""
        return max(records, 1) if self.batch_size == "all" else self.batch_size
