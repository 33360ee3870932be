"""Weng (2025), chapter 5: noise and bounds that count on anonymity."""

from __future__ import annotations

from typing import Any

import numpy as np

from privacy.calc import CALC
from scenarios.reproductions.formulas.refutation import number, refuted
from scenarios.reproductions.verdict import Part, Verdict, judge


def anonymous_noise_scale() -> Verdict:
    """S0-C5.1. Refuted if the noise of Theorem 8 has a larger exact epsilon than it is calibrated for.

    The exact epsilon is that of the Gaussian releases of a client that takes part in round(0.7 T) rounds, seen as they
    are: by a leader, or by each neighbour. No assumption about anonymity changes what is seen.
    """
    given: dict[str, Any] = {
        "topology": "pseudo_central",
        "M": 100,
        "m_tcs": 70,
        "T": 50,
        "epsilon": 8.0,
        "delta": 1e-5,
    }
    noise = CALC["t8_sigma"](**given, n=600)
    sigma2, exact = number(noise, "sigma2"), number(noise, "rigorous_eps_participations")
    premise = CALC["t8_shortcut_conditions"](r=0.7, sigma2=sigma2, epsilon=8.0, delta=1e-5)
    parts = [
        Part("the shortcut's premises hold", bool(premise["shortcut_valid"]), f"sigma^2 {sigma2:.4f}, needed 0.7"),
        Part("the releases are (8, 1e-5)-DP", exact <= 8, f"exact epsilon of 35 releases {exact:.0f}"),
    ]
    return refuted(parts, f"the exact epsilon of what a client releases is {exact:.0f}, not 8")


def optimum_of_theorem_nine() -> Verdict:
    """S0-C5.2. The claim holds if, for a reading of m, the printed bound has its minimum inside 10..100 clients.

    The constants are not stated: L 0.5, 1, 1.5 and epsilon 0.5, 2, 8 are tried, with T 50, zeta^2 0.07, F0 - F* = 2.
    One combination suffices. Both readings of m in Theorem 8 are tried.
    """
    found = {}
    for reading in ("M", "m_tcs"):
        grid = [(smooth, epsilon) for smooth in (0.5, 1.0, 1.5) for epsilon in (0.5, 2.0, 8.0)]
        best = {pair: _best_cohort(reading, *pair) for pair in grid}
        found[reading] = {pair: size for pair, size in best.items() if 10 < size < 100}
    inside = {reading: len(places) for reading, places in found.items()}
    text = ", ".join(f"m read as {reading}: interior in {count} of 9 combinations" for reading, count in inside.items())
    part = Part("the printed bound has an interior minimum for some reading and constants", any(inside.values()), text)
    return judge([part], ("m = all clients", "m = training clients"))


def _best_cohort(reading: str, smooth: float, epsilon: float) -> int:
    sizes = list(range(10, 101, 10))
    return sizes[int(np.argmin([_theorem9(size, reading, smooth, epsilon) for size in sizes]))]


def _theorem9(m_tcs: int, reading: str, smooth: float, epsilon: float) -> float:
    found = CALC["t9_bound"](
        topology="pseudo_central",
        F0_minus_Fstar=2.0,
        T=50,
        L=smooth,
        zeta2=0.07,
        m_tcs=m_tcs,
        M=100,
        C=1.0,
        n=600,
        d=199_210,
        epsilon=epsilon,
        delta=1e-5,
        m_reading=reading,
    )
    return number(found, "as_published")
