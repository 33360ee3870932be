"""What the noise of an exchange protects: exactly what one who sees uploads, and knows some clients, can learn.

Multipliers are taken as known: they do not depend on data, so that only helps the adversary, and given them the
noise is Gaussian. A share is known, and protects nobody, if one of its ends colludes or it was opened to correct a sum.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privacy.noise_shares.uploads import NoiseExpander, Share, Upload

Floats = NDArray[np.float64]
_SOUND = 1e9
_COORDINATES = 512
"""How many coordinates are looked at together where each has multipliers of its own."""


@dataclass(frozen=True, slots=True)
class Seen:
    """What somebody sees of a round.

    Attributes:
        uploads: the uploads that reached it.
        known: clients whose shares it knows: colluders, or its own node.
        opened: shares whose seeds it was told.
        sensitivity: how far the upload of each client can move.
        independent: variance of each client's independent noise that the uploads do not state themselves.
    """

    uploads: Sequence[Upload]
    known: Collection[int] = ()
    opened: Collection[Share] = ()
    sensitivity: Mapping[int, float] | None = None
    independent: Mapping[int, float] | None = None


def joint_mu2(seen: Seen, maker: NoiseExpander, rng: np.random.Generator | None = None) -> dict[int, float]:
    """mu^2 about each client whose upload is seen, for one who knows everybody else's update.

    Args:
        rng: draws the (scalar) multipliers anew instead of taking those of the run.

    Guarantees:
        exact given the multipliers. With one multiplier per coordinate, the worst direction an update can move in is
        the least protected coordinate. With one per share, what a colluding sender leaves is not counted (E-N05).
    """
    uploads = [upload for upload in seen.uploads if upload.node not in seen.known]
    if not uploads:
        return {}
    mixture = _Mixture.of(uploads, seen, maker, rng)
    worst = np.zeros(len(uploads))
    for part in mixture.parts():
        factors, floor = mixture.at(part)
        covariance = factors @ factors.swapaxes(1, 2) + np.eye(len(uploads)) * floor[:, :, None]
        worst = np.maximum(worst, _precision(covariance).max(axis=0))
    return {upload.node: float(value) * _moves(seen, upload) for upload, value in zip(uploads, worst, strict=True)}


def peers_mu2(seen: Seen, maker: NoiseExpander) -> dict[int, dict[int, float]]:
    """The same for each of these clients in turn, who also knows its own shares; for multipliers that are numbers.

    Taking the client's shares out of the covariance leaves all else as it was, so one covariance serves for all.
    """
    uploads = [upload for upload in seen.uploads if upload.node not in seen.known]
    count = len(uploads)
    if count < 2:
        return {upload.node: {} for upload in uploads}
    mixture = _Mixture.of(uploads, seen, maker, None)
    factors, floor = (part[0] for part in mixture.at(slice(0, 1)))
    covariance = factors @ factors.T + np.diag(floor)
    told = np.square(factors) @ (factors.T != 0.0)  # what is left in i's upload of shares that j has part in
    found = {}
    for place, observer in enumerate(uploads):
        others = np.delete(np.arange(count), place)
        left = covariance[np.ix_(others, others)] - np.diag(told[others, place])
        values = _precision(left[None])[0]
        found[observer.node] = {
            uploads[other].node: float(value) * _moves(seen, uploads[other])
            for other, value in zip(others.tolist(), values, strict=True)
        }
    return found


def sum_mu2(seen: Seen, left_out: Collection[tuple[int, Share]], maker: NoiseExpander) -> dict[int, float]:
    """mu^2 about each contributor for one who sees only the sum: what protects is the noise that is left in it.

    Args:
        left_out: (client, share) whose part a correction took off.
    """
    mixture = _Mixture.of(seen.uploads, seen, maker, None, left_out)
    variance, scale = math.inf, 1e-300
    for part in mixture.parts():
        factors, floor = mixture.at(part)
        variance = min(variance, float((np.square(factors.sum(axis=1)).sum(axis=1) + floor.sum(axis=1)).min()))
        scale = max(scale, float(np.square(factors).sum(axis=(1, 2)).max(initial=0.0)))
    silent = variance <= scale * 1e-13
    return {upload.node: math.inf if silent else _moves(seen, upload) / variance for upload in seen.uploads}


def epsilon_over_draws(mu2: Floats, delta: float) -> float:
    """The least epsilon with `mean over draws of delta(epsilon; mu) <= delta`; a row of `mu2` is one draw's total."""
    from privacy.accounting.gaussian import delta_of, epsilons_of

    mus = np.sqrt(mu2)
    if not np.isfinite(mus).all():
        return math.inf
    low, high = 0.0, float(epsilons_of([mus.max(initial=0.0)], delta)[0])
    for _ in range(50):
        middle = (low + high) / 2.0
        if float(np.mean([delta_of(middle, float(mu)) for mu in mus])) > delta:
            low = middle
        else:
            high = middle
    return high


@dataclass(slots=True)
class _Mixture:
    """How unit noise of hidden shares, and independent noise, make up the uploads; by coordinate where that matters.

    Where no multiplier differs between coordinates, a single one stands for all.
    """

    rows: int
    columns: int
    coordinates: int
    entries: list[tuple[int, int, float | Floats]]
    floors: list[tuple[int, float | Floats]]

    @classmethod
    def of(
        cls,
        uploads: Sequence[Upload],
        seen: Seen,
        maker: NoiseExpander,
        rng: np.random.Generator | None,
        left_out: Collection[tuple[int, Share]] = (),
    ) -> _Mixture:
        column = _hidden(uploads, seen)
        varies = maker.tau_mode == "vector" and any(one.tau > 0.0 for upload in uploads for one in upload.taken)
        mixture = cls(len(uploads), len(column), maker.dimension if varies else 1, [], [])
        for row, upload in enumerate(uploads):
            independent = upload.independent_std**2 + (seen.independent or {}).get(upload.node, 0.0)
            mixture.floors.append((row, independent))
            for share in upload.sent:
                if share in column and (upload.node, share) not in left_out:
                    mixture.entries.append((row, column[share], share.std))
            for one in upload.taken:
                if (upload.node, one.share) in left_out:
                    continue
                if one.share in column:
                    drawn = maker.multiplier(one) if rng is None else 1.0 + one.tau * float(rng.standard_normal())
                    mixture.entries.append((row, column[one.share], -one.share.std * drawn))
                elif varies and one.share not in seen.opened:
                    mixture.floors.append((row, (one.tau * maker.share(one.share)) ** 2))
        return mixture

    def parts(self) -> list[slice]:
        """Coordinates, so many at a time."""
        return [slice(start, start + _COORDINATES) for start in range(0, self.coordinates, _COORDINATES)]

    def at(self, part: slice) -> tuple[Floats, Floats]:
        """Factors [coordinates, uploads, shares] and independent variances [coordinates, uploads]."""
        count = len(range(*part.indices(self.coordinates)))
        factors, floor = np.zeros((count, self.rows, self.columns)), np.zeros((count, self.rows))
        for row, column, factor in self.entries:
            factors[:, row, column] += factor if isinstance(factor, float) else factor[part]
        for row, variance in self.floors:
            floor[:, row] += variance if isinstance(variance, float) else variance[part]
        return factors, floor


def _hidden(uploads: Sequence[Upload], seen: Seen) -> dict[Share, int]:
    """The shares in these uploads that the observer does not know, numbered."""
    shares = dict.fromkeys(share for upload in uploads for share in upload.sent)
    shares |= dict.fromkeys(one.share for upload in uploads for one in upload.taken)
    hidden = [
        share for share in shares if share not in seen.opened and not {share.sender, share.receiver} & set(seen.known)
    ]
    return {share: index for index, share in enumerate(hidden)}


def _precision(covariance: Floats) -> Floats:
    """The diagonal of each inverse; infinite where some combination shows an upload without noise."""
    try:
        triangles = np.linalg.cholesky(covariance)
        found: Floats = np.square(np.linalg.inv(triangles)).sum(axis=1)
    except np.linalg.LinAlgError:
        return _spectral_precision(covariance)
    # Where noise nearly cancels, rounding could pass for noise: then every direction is looked at.
    sound = found.max(initial=0.0) * np.trace(covariance, axis1=1, axis2=2).max(initial=0.0) < _SOUND
    return found if sound else _spectral_precision(covariance)


def _spectral_precision(covariance: Floats) -> Floats:
    values, vectors = np.linalg.eigh(covariance)
    parts = np.square(vectors)
    silent = values <= np.maximum(values[:, -1:], 0.0) * values.shape[1] * 1e-13
    shown = (parts * silent[:, None, :]).sum(axis=2) > 1e-12
    inverse = np.where(silent, 0.0, 1.0 / np.where(silent, 1.0, values))
    result: Floats = np.where(shown, np.inf, (parts * inverse[:, None, :]).sum(axis=2))
    return result


def _moves(seen: Seen, upload: Upload) -> float:
    """The squared sensitivity of an upload."""
    return (seen.sensitivity or {}).get(upload.node, math.inf) ** 2
