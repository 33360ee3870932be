"""What noise an upload carries: the shares its client sent and took, as facts from which the numbers follow.

Facts are small (seeds, not vectors), so a run keeps them all; noise is expanded when it is read.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from privacy.noise_shares.seed_expansion import expand_share
from privacy.noise_shares.settings import Expansion

Noise = NDArray[np.float64]
_CACHE_BYTES = 1 << 28  # beyond that, the second end expands a share again


class Share(NamedTuple):
    """Noise that one client adds and another takes off; ends are true identities, numbers those of their addresses."""

    round_number: int
    sender: int
    receiver: int
    sender_number: int
    receiver_number: int
    std: float
    seed: bytes


class ReceivedShare(NamedTuple):
    """A share received and used: multiplied by s with mean 1 and spread tau, drawn from a seed of its own."""

    share: Share
    tau: float
    seed: bytes


@dataclass(frozen=True, slots=True)
class Upload:
    """What a client adds to its weighted update.

    Attributes:
        weight: p_k, already multiplied into the update.
        sent: its own shares; taken: those of peers.
        independent_std: noise that never cancels; its seed.
    """

    round_number: int
    node: int
    weight: float
    sent: tuple[Share, ...] = ()
    taken: tuple[ReceivedShare, ...] = ()
    independent_std: float = 0.0
    independent_seed: bytes = b""

    def with_peers(self, lost: Collection[int]) -> tuple[tuple[Share, ...], tuple[ReceivedShare, ...]]:
        """Its shares with peers that are gone."""
        sent = tuple(share for share in self.sent if share.receiver in lost)
        return sent, tuple(taken for taken in self.taken if taken.share.sender in lost)


@dataclass(slots=True)
class NoiseExpander:
    """Expands facts to float64 noise; every share is expanded once for its two ends.

    Attributes:
        rounded: whether shares travel as float32 vectors: then both ends use the rounded numbers.
    """

    dimension: int
    expansion: Expansion
    tau_mode: Literal["scalar", "vector"]
    rounded: bool
    _half_used: dict[Share, Noise] = field(default_factory=dict)

    def share(self, share: Share) -> Noise:
        """The noise that the sender adds."""
        # A share has two ends: whichever reads it second takes the noise that the first has left.
        known = self._half_used.pop(share, None)
        if known is not None:
            return known
        noise = share.std * self._normals(share.seed, share, 0, self.dimension)
        if self.rounded:
            # The receiver gets single precision, and the sender must add exactly what the receiver takes off.
            noise = noise.astype(np.float32).astype(np.float64)
        # All entries have the length of the model, so their number gives the bytes.
        if len(self._half_used) * noise.nbytes < _CACHE_BYTES:
            self._half_used[share] = noise
        return noise

    def multiplier(self, taken: ReceivedShare) -> float | Noise:
        """s: one number, or one per coordinate."""
        # Exactly 1 and no draw, so that the share cancels to the last bit.
        if taken.tau == 0.0:
            return 1.0
        count = 1 if self.tau_mode == "scalar" else self.dimension
        # Index 1: the share's noise is index 0 of the same ends, and no seed may give both.
        drawn: Noise = 1.0 + taken.tau * self._normals(taken.seed, taken.share, 1, count)
        return float(drawn[0]) if self.tau_mode == "scalar" else drawn

    def parts(self, sent: Collection[Share], taken: Collection[ReceivedShare]) -> Noise:
        """What these shares add to an upload."""
        # In float64 until the end: parts that cancel must not leave the rounding of single precision.
        noise = np.zeros(self.dimension)
        for share in sent:
            noise += self.share(share)
        for one in taken:
            noise -= self.multiplier(one) * self.share(one.share)
        return noise

    def upload(self, upload: Upload) -> Noise:
        """All that an upload carries besides the weighted update."""
        noise = self.parts(upload.sent, upload.taken)
        if upload.independent_std > 0.0:
            # No share has two equal ends, so the name is that of no share.
            name = (upload.independent_seed, upload.round_number, 0, 0, 0, self.dimension)
            noise += upload.independent_std * expand_share(self.expansion, *name)
        return noise

    def forget(self, round_number: int) -> None:
        """Lets go of a round's noise."""
        self._half_used = {share: noise for share, noise in self._half_used.items() if share[0] > round_number}

    def _normals(self, seed: bytes, share: Share, index: int, count: int) -> Noise:
        ends = (share.sender_number, share.receiver_number)
        return expand_share(self.expansion, seed, share.round_number, *ends, index, count)


def predicted_variance(uploads: Collection[Upload], opened: Collection[tuple[int, Share]] = ()) -> float:
    """Variance per coordinate of these uploads summed (Lemma 1, Theorem 2 and the drop-out table of C.3).

    Args:
        opened: (client, share) whose part in that client's upload a correction has taken off.

    Guarantees:
        exact for the shares as they were really sent and used; the mean over multipliers.
    """
    added: dict[Share, float] = {}
    variance = 0.0
    for upload in uploads:
        variance += upload.independent_std**2
        for share in upload.sent:
            if (upload.node, share) not in opened:
                # Squared only at the end: a share added by one upload and taken off by another is gone.
                added[share] = added.get(share, 0.0) + 1.0
        for one in upload.taken:
            if (upload.node, one.share) not in opened:
                added[one.share] = added.get(one.share, 0.0) - 1.0
                # s = 1 + tau Z: the mean cancels the share above, the rest is noise of its own.
                variance += (one.tau * one.share.std) ** 2
    return variance + sum((share.std * left) ** 2 for share, left in added.items())
