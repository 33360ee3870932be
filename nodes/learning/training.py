"""Settings of local training: SGD with a learning-rate schedule, and DP-SGD where records are protected one by one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal, NamedTuple

from annotated_types import Ge, Gt, Le, Lt


class RecordUse(NamedTuple):
    """How often one record of a client enters its training in a round: in each of `steps` steps with chance `rate`."""

    rate: float
    steps: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PerSample:
    """DP-SGD within a client: every record's gradient is clipped, and noise is added to their sum in every step.

    Attributes:
        clip: largest norm of one record's gradient (C)
        noise: deviation of the noise in each coordinate of a step's sum, as a multiple of clip; give this or epsilon
        epsilon: instead of noise, the most that one record of any client may lose over `participations` rounds
        delta: failure probability of the record-level epsilon
        participations: rounds that the noise is calibrated for, all of them by default; a client takes part no longer
        sampling: poisson takes every record into every step by a coin of its own (amplifies), shuffled takes passes

    Guarantees:
        One record added or removed moves a step's sum by at most `clip`; the sum is divided by the expected number of
        records, and an empty batch is noised like any other. The number of a client's records is public.
    """

    clip: Annotated[float, Gt(0)]
    noise: Annotated[float, Ge(0)] | None = None
    epsilon: Annotated[float, Gt(0)] | None = None
    delta: Annotated[float, Gt(0), Lt(1)] = 1e-5
    participations: Annotated[int, Ge(1)] | None = None
    sampling: Literal["poisson", "shuffled"] = "poisson"

    def __post_init__(self) -> None:
        """Checks that exactly one of noise and epsilon is given."""
        if (self.noise is None) == (self.epsilon is None):
            raise ValueError("needs exactly one of `noise` and `epsilon`; remove or add one")


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
        per_sample: clips and noises the gradients of single records (DP-SGD); none uses them as they are
    """

    epochs: Annotated[int, Ge(1)] = 1
    batch_size: Annotated[int, Ge(1)] | Literal["all"] = 10
    learning_rate: Annotated[float, Gt(0)] = 0.1
    momentum: Annotated[float, Ge(0), Lt(1)] = 0.0
    decay: Annotated[float, Gt(0), Le(1)] = 1.0
    decay_rounds: Annotated[int, Ge(0)] | None = None
    weight_decay: Annotated[float, Ge(0)] = 0.0
    per_sample: PerSample | None = None

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

    def expected_batch(self, records: int) -> float:
        """Returns the expected records of a Poisson-sampled step; all of them where the batch size exceeds them."""
        return float(min(self.widest_batch(records), max(records, 1)))

    def exposure(self, records: int, generated: float = 0.0) -> RecordUse:
        """Returns how often one record enters a round's training, for clients with this many records.

        A pass of shuffled batches uses every record once, in one step that anyone may know. With a share of generated
        records, a real one enters a Poisson-sampled step that much less often.
        """
        if self.per_sample is not None and self.per_sample.sampling == "shuffled":
            return RecordUse(1.0, self.epochs) if generated < 1.0 else RecordUse(0.0, self.epochs)
        rate = self.expected_batch(records) / max(records, 1)
        # Unchanged to the bit without generated records.
        return RecordUse(rate * (1.0 - generated) if generated else rate, self.steps(records))
