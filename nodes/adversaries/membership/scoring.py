"""Judges the victims' records and compares with the coins: rates, intervals, curves, and what they say of epsilons."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nodes.adversaries.membership.carry_out import Readiness, examples
from nodes.adversaries.membership.inference import MEMBERSHIP_ATTACKS, AttackedModels, HeldRecords, Inference
from nodes.learning.thread_pool import one_torch_thread
from p2p.config.errors import UserError
from p2p.random_streams import stream
from privacy.attacks.attack import Curve, Result
from privacy.attacks.membership.ceiling import Claim, Verdict, judge
from privacy.attacks.membership.rates import balanced_accuracy
from privacy.attacks.membership.roc import Roc, roc_of
from privacy.attacks.observations import Records, Truth, join_records

SMALL_RATES = {"tpr_at_1_percent": 0.01, "tpr_at_0.1_percent": 0.001}
# Points of a curve that the page draws.
POINTS = 200


@dataclass(frozen=True, slots=True, eq=False)
class Candidates:
    """Records of one victim in the order of their numbers, and which were trained on."""

    victim: int
    records: Records
    member: NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class Judged:
    """Scores and guesses of one method on some candidates."""

    scores: NDArray[np.float64]
    guessed: NDArray[np.bool_]
    member: NDArray[np.bool_]

    def curve(self) -> Roc:
        """Returns the ROC."""
        return roc_of(self.scores[self.member], self.scores[~self.member])


Judgements = dict[str, list[Judged]]
"""By method, in the order of the victims."""


def score_readiness(ready: Readiness, truth: Truth) -> Result:
    """Returns rates per method, over all victims and for each of them."""
    candidates = [_candidates(victim, truth) for victim in truth.victims]
    with one_torch_thread():
        judged: Judgements = {method: _judge(ready, method, candidates, truth) for method in ready.methods}
    comparisons = len(judged) * len(truth.claims)
    rows = [_row(method, parts, truth.seed) for method, parts in judged.items()]
    claims = [_against(claim, row, truth.tried, comparisons) for claim in truth.claims for row in rows]
    best = max(rows, key=lambda row: float(row["balanced_accuracy"]))
    return Result(
        headline=_headline(best, claims, len(rows)),
        figures={
            "attacked": ready.what,
            "victims": len(candidates),
            "members": sum(int(one.member.sum()) for one in candidates),
            "non_members": sum(int((~one.member).sum()) for one in candidates),
            "methods": rows,
            "claims": claims,
            "skipped": ready.skipped,
            "comparisons": comparisons,
        },
        table=_table(judged, candidates),
        curves=[_roc_curves(judged)],
    )


def _candidates(victim: int, truth: Truth) -> Candidates:
    """Returns members and non-members in an order that says nothing about membership."""
    inside, outside = truth.trained_on(victim), truth.kept_out(victim)
    if not len(inside.numbers) or not len(outside.numbers):
        raise UserError(f"reserved.victims: client {victim} has no members or no non-members left; use fewer clients")
    both = join_records([inside, outside])
    records = both.at(np.argsort(both.numbers))
    return Candidates(victim, records, np.isin(records.numbers, inside.numbers))


def _judge(ready: Readiness, method: str, candidates: Sequence[Candidates], truth: Truth) -> list[Judged]:
    """Returns a method's answers for each victim."""
    infer = MEMBERSHIP_ATTACKS[method]().infer
    found: list[Inference] = []
    if ready.own is not None:
        # All at once: shadow models and thresholds are the same for all victims.
        both = join_records([one.records for one in candidates])
        together = infer(ready.own, ready.knowledge, examples(both))
        ends = np.cumsum([len(one.member) for one in candidates])[:-1]
        pairs = zip(np.split(together.scores, ends), np.split(together.guessed, ends), strict=True)
        found = [Inference(*pair) for pair in pairs]
    else:
        found = [
            infer(_last_of(ready, one.victim, truth), _about(ready, one.victim), examples(one.records))
            for one in candidates
        ]
    return [Judged(one.scores, one.guessed, who.member) for one, who in zip(found, candidates, strict=True)]


def _about(ready: Readiness, victim: int) -> HeldRecords:
    """Returns what is known of one victim: members of the others are no members of its model."""
    return replace(ready.knowledge, members=ready.members_of.get(victim, ready.knowledge.members))


def _last_of(ready: Readiness, victim: int, truth: Truth) -> AttackedModels:
    """Returns the model of the last update that reached the observer from a victim: the game names its sender."""
    rows, attacked = ready.received
    rows = tuple(row for row in rows if truth.origin[row] == victim)
    if not rows:
        raise UserError(f"models = received: the observer got no update of victim {victim}; use `models: own`")
    return attacked(max(rows))


def _row(method: str, parts: Sequence[Judged], seed: int) -> dict[str, Any]:
    joined = _joined(parts)
    right, pairs = _right_pairs(parts, seed)
    rates = balanced_accuracy(joined.guessed, joined.member)
    curve = joined.curve()
    return {
        "method": method,
        "balanced_accuracy": rates.value,
        "low": rates.low,
        "high": rates.high,
        "auc": curve.area(),
        **{name: curve.tpr_at(fpr) for name, fpr in SMALL_RATES.items()},
        "right_pairs": right,
        "pairs": pairs,
    }


def _against(claim: Claim, row: dict[str, Any], tried: int, comparisons: int) -> dict[str, Any]:
    """Returns what a method's result says about a claim."""
    return {
        "method": row["method"],
        "claim": claim.name,
        "epsilon": claim.epsilon,
        "verdict": judge(claim, row["balanced_accuracy"], row["right_pairs"], row["pairs"], tried, comparisons),
        "delta": claim.delta,
        "balanced_accuracy": row["balanced_accuracy"],
        "ceiling": claim.accuracy(),
        **{f"ceiling_of_{name}": claim.tpr_at(fpr) for name, fpr in SMALL_RATES.items()},
    }


def _joined(parts: Sequence[Judged]) -> Judged:
    return Judged(*(np.concatenate([getattr(one, name) for one in parts]) for name in ("scores", "guessed", "member")))


def _right_pairs(parts: Sequence[Judged], seed: int) -> tuple[int, int]:
    """Returns in how many random pairs of a victim's member and non-member the member has the larger score.

    Which record of a pair is the member was decided by a fair coin, whichever way they are paired: all halves of a
    victim's records are equally likely, so pairs may be drawn after the run (by a stream that no attack can see).
    """
    right = total = 0
    for place, one in enumerate(parts):
        rng = stream(seed, "membership", "pairs", place)
        inside, outside = (rng.permutation(np.flatnonzero(side)) for side in (one.member, ~one.member))
        count = min(len(inside), len(outside))
        inside, outside = inside[:count], outside[:count]
        more = np.nan_to_num(one.scores[inside], nan=-np.inf) - np.nan_to_num(one.scores[outside], nan=-np.inf)
        # Equal scores are decided by the records' order, which says nothing about membership.
        right += int(np.sum((more > 0) | ((more == 0) & (inside < outside))))
        total += count
    return right, total


def _headline(best: dict[str, Any], claims: Sequence[dict[str, Any]], methods: int) -> str:
    sentence = (
        f"{best['balanced_accuracy']:.0%} of records are classified right by {best['method']}, the best of {methods} "
        f"({best['low']:.0%} to {best['high']:.0%}), AUC {best['auc']:.2f}"
    )
    worst = [
        _worst([one for one in claims if one["claim"] == name])
        for name in dict.fromkeys(one["claim"] for one in claims)
    ]
    # As tables write them: 2.4e8, not 2.4e+08.
    claimed = [f"{one['epsilon']:.3g}".replace("e+0", "e").replace("e+", "e") for one in worst]
    verdicts = [f"{one['claim']} epsilon {text}: {one['verdict']}" for one, text in zip(worst, claimed, strict=True)]
    return "; ".join([sentence, *verdicts])


def _worst(claims: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Returns the method that contradicts a claim most."""
    order: tuple[Verdict, ...] = ("within the ceiling", "exceeds the ceiling in this run", "falsified")
    return max(claims, key=lambda one: (order.index(one["verdict"]), one["balanced_accuracy"]))


def _table(judged: Judgements, candidates: Sequence[Candidates]) -> dict[str, Any]:
    """Returns one row for each method and victim."""
    rows = [(method, who, one) for method, parts in judged.items() for who, one in zip(candidates, parts, strict=True)]
    rates = [balanced_accuracy(one.guessed, one.member) for _, _, one in rows]
    curves = [one.curve() for _, _, one in rows]
    return {
        "method": [method for method, _, _ in rows],
        "victim": [who.victim for _, who, _ in rows],
        "members": [int(one.member.sum()) for _, _, one in rows],
        "non_members": [int((~one.member).sum()) for _, _, one in rows],
        "balanced_accuracy": [rate.value for rate in rates],
        "low": [rate.low for rate in rates],
        "high": [rate.high for rate in rates],
        "auc": [curve.area() for curve in curves],
        **{name: [curve.tpr_at(fpr) for curve in curves] for name, fpr in SMALL_RATES.items()},
    }


def _roc_curves(judged: Judgements) -> Curve:
    curves = {method: _joined(parts).curve() for method, parts in judged.items()}
    lines: dict[str, tuple[list[float], list[float]]] = {
        f"{method} (AUC {curve.area():.2f})": _thinned(curve) for method, curve in curves.items()
    }
    lines["chance"] = [0.0, 1.0], [0.0, 1.0]
    areas = ", ".join(f"{method} {curve.area():.2f}" for method, curve in curves.items())
    text = f"True positive rate over false positive rate of each method. Areas under the curves: {areas}."
    return Curve(title="Membership, ROC", x="false positive rate", y="true positive rate", lines=lines, text=text)


def _thinned(curve: Roc) -> tuple[list[float], list[float]]:
    chosen = np.unique(np.linspace(0, len(curve.fpr) - 1, POINTS).round().astype(int))
    return curve.fpr[chosen].tolist(), curve.tpr[chosen].tolist()
