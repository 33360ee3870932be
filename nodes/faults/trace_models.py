"""Day-long availability traces, generated from published statistics: no foreign data is shipped.

A trace alternates up and down times for every client. `OnlineSessions` draws both from lognormals whose medians
and means are those of a published trace. `Diurnal` lets the share of clients that are up swing over the day.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

Stretch = tuple[float, float]
_DAY_S = 86_400.0
_LEAST_S = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class OnlineSessions:
    """Sessions of lognormal length with lognormal pauses.

    Attributes:
        what: one sentence for `peerveil list traces`.
        source: where the figures come from.
        availability: share of the time that a client is up.
        median_up_s, median_down_s: medians of sessions and pauses.
        up_sigma: spread of sessions (sigma of the logarithm); that of pauses follows from the availability.
    """

    what: str
    source: str
    availability: float
    median_up_s: float
    median_down_s: float
    up_sigma: float

    def down(self, rng: np.random.Generator, start_s: float) -> Iterator[Stretch]:
        """Yields down intervals without end; a client is up at first with the probability of the availability."""
        mean_up_s = self.median_up_s * math.exp(self.up_sigma**2 / 2)
        # From availability = mean up / (mean up + mean down).
        mean_down_s = mean_up_s * (1 - self.availability) / self.availability
        # The mean of a lognormal is its median times exp(sigma^2 / 2).
        down_sigma = math.sqrt(2 * math.log(mean_down_s / self.median_down_s))
        now_s, up = 0.0, bool(rng.random() < self.availability)
        # At the start a client is somewhere inside its first session or pause.
        part = rng.random()
        while True:
            median_s, sigma = (self.median_up_s, self.up_sigma) if up else (self.median_down_s, down_sigma)
            end_s = now_s + max(_LEAST_S, part * median_s * math.exp(sigma * rng.standard_normal()))
            if not up:
                yield now_s, end_s
            now_s, up, part = end_s, not up, 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Diurnal:
    """Exponential sessions whose pauses are longer by day, so that the share of clients that are up swings.

    Attributes:
        what: one sentence for `peerveil list traces`.
        source: where the figures come from.
        availability: share of clients that are up, on average over the day.
        swing: ratio of the share at its highest to that at its lowest.
        peak_h: the hour of the highest share.
        mean_up_s: mean length of a session.
    """

    what: str
    source: str
    availability: float
    swing: float
    peak_h: float
    mean_up_s: float

    def share_at(self, time_of_day_s: float) -> float:
        """Returns the share of clients that are up at that time of the day."""
        # So that (1 + depth) / (1 - depth) is the swing.
        depth = (self.swing - 1) / (self.swing + 1)
        angle = 2 * math.pi * (time_of_day_s - 3600 * self.peak_h) / _DAY_S
        return self.availability * (1 + depth * math.cos(angle))

    def down(self, rng: np.random.Generator, start_s: float) -> Iterator[Stretch]:
        """Yields down intervals without end; `start_s` is the time of day at which the run begins."""
        now_s, up = 0.0, bool(rng.random() < self.share_at(start_s))
        while True:
            if up:
                now_s += max(_LEAST_S, self.mean_up_s * rng.exponential())
            else:
                end_s = self._comes_back_s(rng, now_s, start_s)
                yield now_s, end_s
                now_s = end_s
            up = not up

    def _comes_back_s(self, rng: np.random.Generator, now_s: float, start_s: float) -> float:
        """Draws the end of a pause, by thinning: clients come back more often when more of them are up."""
        fastest = self._rate(3600 * self.peak_h)
        while True:
            now_s += max(_LEAST_S, rng.exponential() / fastest)
            # Candidates come at the fastest rate of the day; each counts with its hour's share of that rate.
            if rng.random() < self._rate(start_s + now_s) / fastest:
                return now_s

    def _rate(self, time_of_day_s: float) -> float:
        """Returns how often a client that is down comes back, per second, to keep the share of this hour."""
        share = self.share_at(time_of_day_s)
        # In balance as many come back as leave: (1 - share) rate = share / mean up time.
        return share / ((1 - share) * self.mean_up_s)


_ROLLERCOASTER = (
    "generated, with figures of the online schedules of Hugenroth, Kleppmann and Beresford, Rollercoaster (USENIX "
    "Security 2021), which derive from Device Analyzer: {0}; sigma of sessions 1.58 as fitted to {1}"
)
_SIGMA_UP = math.sqrt(2 * math.log(0.370 * _DAY_S / 8.7 / 1062))
"""Of the first schedule: 8.7 sessions a day at availability 0.370 have a mean of 3,675 s, and a median of 1,062 s."""

TRACES: dict[str, OnlineSessions | Diurnal] = {
    "phones_rarely_online": OnlineSessions(
        what="Phones that are up 37% of the day, in sessions of 18 min (median) with pauses of 47 min.",
        source=_ROLLERCOASTER.format(
            "592 users, availability 0.370, medians 1,062 s and 2,832 s", "8.7 sessions a day"
        ),
        availability=0.370,
        median_up_s=1062.0,
        median_down_s=2832.0,
        up_sigma=_SIGMA_UP,
    ),
    "phones_often_online": OnlineSessions(
        what="Phones that are up 80% of the day, in sessions of 95 min (median) with pauses of 14 min.",
        source=_ROLLERCOASTER.format("546 users, availability 0.800, medians 5,682 s and 855 s", "the rarer schedule"),
        availability=0.800,
        median_up_s=5682.0,
        median_down_s=855.0,
        up_sigma=_SIGMA_UP,
    ),
    "phones_mostly_online": OnlineSessions(
        what="Phones that are up 93% of the day, in sessions of 3.6 h (median) with pauses of 6 min.",
        source=_ROLLERCOASTER.format("771 users, availability 0.928, medians 12,992 s and 338 s", "the rarer schedule"),
        availability=0.928,
        median_up_s=12992.0,
        median_down_s=338.0,
        up_sigma=_SIGMA_UP,
    ),
    "phones_charging": Diurnal(
        what="Phones that take part while idle, charging and on Wi-Fi: four times as many at 2 h as at 14 h.",
        source=(
            "generated; the swing of 4 over a day is that of Bonawitz et al., Towards Federated Learning at Scale "
            "(MLSys 2019); mean share 0.2 and sessions of 2 h are assumed"
        ),
        availability=0.2,
        swing=4.0,
        peak_h=2.0,
        mean_up_s=7200.0,
    ),
}
