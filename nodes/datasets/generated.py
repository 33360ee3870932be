"""`data.generated`: records made by a generator of each client, which take the place of some real ones in training.

The settings and what they release; the training of generators is in `nodes/learning/cgan.py`. Torch is not imported.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, Literal

from annotated_types import Ge, Gt, Interval

from nodes.learning.training import PerSample, Training
from p2p.config.choices import Choice
from privacy.accounting.record_level import SampledGaussian

Width = Annotated[int, Ge(1)]
Ratios = Literal["uniform", "public", "noised"]
NO_NOISE = "the generators are trained on the same records without noise, and no bound on what they tell is known"
PUBLIC_RATIOS = "class ratios of each client, by which its generated records are drawn"


@dataclass(frozen=True, slots=True, kw_only=True)
class Discriminator:
    """DP-SGD of the discriminator: the only part of a generator's training that sees real records.

    Attributes:
        clip: largest norm of one record's gradient
        noise: deviation of the noise in each coordinate of a step's sum, as a multiple of clip
    """

    clip: Annotated[float, Gt(0)]
    noise: Annotated[float, Gt(0)]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConditionalGan:
    """One conditional GAN per client (Alg. B1 of DP-GenFL), trained once before the run, with dense layers.

    Attributes:
        share: share of generated records in training (gamma); 0 uses none and trains no generator
        epochs: passes over a client's records
        batch_size: records per step, real and generated each
        hidden: units of the hidden layer of generator and discriminator
        latent: random numbers a record is made from
        learning_rate: of Adam, with beta 0.5 and 0.999
        multiple: generated records for each real one
        class_ratios: uniform asks for all classes alike, public as a client has them, noised adds noise to its counts
        ratio_noise: for `noised`, the deviation of the noise in each class's count
        per_sample: trains discriminators by DP-SGD, which is charged to each record; none protects nothing
    """

    share: Annotated[float, Interval(ge=0, le=1)] = 0.6
    epochs: Annotated[int, Ge(1)] = 100
    batch_size: Annotated[int, Ge(1)] = 16
    hidden: Width = 128
    latent: Width = 32
    learning_rate: Annotated[float, Gt(0)] = 0.002
    multiple: Annotated[float, Gt(0)] = 1.0
    class_ratios: Ratios = "uniform"
    ratio_noise: Annotated[float, Gt(0)] | None = None
    per_sample: Discriminator | None = None

    def __post_init__(self) -> None:
        """Checks that noise is given exactly where class ratios are noised."""
        if (self.class_ratios == "noised") != (self.ratio_noise is not None):
            raise ValueError("`ratio_noise` belongs to `class_ratios: noised`; give both or none")

    def training(self) -> Training:
        """Returns the passes of a discriminator over its client's records as settings of training."""
        passes = Training(epochs=self.epochs, batch_size=self.batch_size)
        own = self.per_sample
        return passes if own is None else replace(passes, per_sample=PerSample(clip=own.clip, noise=own.noise))

    def charges(self, records: int) -> tuple[SampledGaussian, ...]:
        """Returns what a client's generator and class ratios cost one of its records; nothing if they are not used."""
        if not self.share:
            return ()
        found = []
        if self.per_sample is not None:
            exposure = self.training().exposure(records)
            found.append(SampledGaussian(exposure.rate, self.per_sample.noise, exposure.steps))
        if self.ratio_noise is not None:
            # One record more or less moves one count by one.
            found.append(SampledGaussian(1.0, self.ratio_noise, 1))
        return tuple(found)

    def unaccounted(self) -> tuple[str, ...]:
        """Returns why a record that generators have seen is not protected, if that is so."""
        return (NO_NOISE,) if self.share and self.per_sample is None else ()

    def public(self) -> tuple[str, ...]:
        """Returns what generated records tell and is taken as known."""
        return (PUBLIC_RATIOS,) if self.share and self.class_ratios == "public" else ()


GENERATORS: dict[str, type] = {"cgan": ConditionalGan}
Generated = Annotated[ConditionalGan, Choice(GENERATORS)]
