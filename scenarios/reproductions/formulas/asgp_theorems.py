"""DP-FedASGP: its theorems."""

from __future__ import annotations

import numpy as np

from privacy.calc import CALC
from scenarios.reproductions.formulas.refutation import number, refuted
from scenarios.reproductions.verdict import Part, Verdict, judge


def partial_noise() -> Verdict:
    """S4-C1. Refuted by one untouched coordinate: two gradients that differ only there are told apart with certainty.

    Coordinates below the threshold are released as they are. Take g = (5, 0.1) and g' = (5, 0.2), threshold 1: both
    noises are symmetric, so with probability at least one half the second entry is not selected, and then the outputs
    of g and g' have disjoint supports.
    """
    part = Part(
        "every output has a likelihood ratio of at most e^eps", False, "disjoint supports with probability >= 0.5"
    )
    return refuted(
        [part], "an entry below the threshold is released exactly, so its value is known: the ratio is infinite"
    )


def shares_of_the_budget() -> Verdict:
    """S4-C2. The claim holds if the three parts add up to epsilon and the printed scales are at least the sound ones.

    Sound: the sparse vector technique with at most q positives (Lyu, Su and Li 2017).
    """
    scales = CALC["asgp_svt_scales"](epsilon=0.5, eps3_fraction=0.9, q=8, DeltaS=1.0)
    found = {name: number(scales, name) for name in scales}
    total = found["eps1"] + found["eps2"] + found["eps3"]
    query = max(found["text_alpha"], found["alg1_alpha"])
    parts = [
        Part("the parts add up to epsilon", abs(total - 0.5) < 1e-9, f"sum {total:.6g}"),
        Part(
            "the query noise is at least the sound one",
            query >= found["sound_query"],
            f"{query:g} against {found['sound_query']:g}",
        ),
    ]
    return judge(parts)


def parameters_form_a_cauchy_sequence() -> Verdict:
    """S4-C3. Refuted by one coordinate whose updates get noise of the same scale in every round.

    Gradient descent on w^2 / 2 with step 0.1 and Laplace noise of scale 0.1 on the released gradient, as for a selected
    coordinate. A Cauchy sequence has differences that go to zero; here those of rounds 9,000 to 10,000 must be at
    most a tenth of those of rounds 100 to 1,100.
    """
    from p2p.random_streams import stream

    noise = stream(1, "reproduction", "S4-C3").laplace(scale=0.1, size=10_000)
    steps, w = [], 1.0
    for drawn in noise:
        step = -0.1 * (w + float(drawn))
        steps.append(abs(step))
        w += step
    early, late = float(np.mean(steps[100:1100])), float(np.mean(steps[9000:]))
    part = Part(
        "differences of the parameters go to zero", late <= early / 10, f"mean {early:.3g} early, {late:.3g} late"
    )
    return refuted([part], "noise of a fixed scale moves the parameters by as much in late rounds as in early ones")
