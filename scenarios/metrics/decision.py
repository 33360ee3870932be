"""Which of a few alternatives to take for what, and what decides it, in two sentences; before them, whom to trust."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from scenarios.metrics.communication.update_receivers import UpdateReceivers
from scenarios.metrics.headline.headline_rows import worst_of
from scenarios.metrics.headline.number_format import accuracy_text, bytes_text, count_text, epsilon_text, seconds_text
from scenarios.metrics.privacy.privacy_verdict import NO_PROTECTION, epsilon_of

Summary = Mapping[str, Any]
_EQUAL = 0.02
"""Figures closer than this share of each other are taken as equal."""
_MUCH_ACCURACY = 0.1
"""Accuracies farther apart than this decide before any cost: a model that is not learned is worth no saving."""


@dataclass(frozen=True, slots=True)
class Criterion:
    """One figure to decide by.

    Attributes:
        label: its row in the table.
        goal: how a sentence names the best: `the fewest bytes up`.
        path: where it stands in a summary.
        text: formats it.
        more_is_better: whether the largest is the best.
        who: where the summary says whose the figure is.
    """

    label: str
    goal: str
    path: tuple[str, ...]
    text: Callable[[float | None], str]
    more_is_better: bool = False
    who: tuple[str, ...] = ()

    def of(self, runs: Sequence[Summary]) -> float | None:
        """Returns the mean over the seeds of one alternative; None if a run lacks the figure."""
        values = [epsilon_of(_at(run, self.path)) for run in runs]
        known = [value for value in values if value is not None]
        return sum(known) / len(known) if known and len(known) == len(values) else None

    def cell(self, runs: Sequence[Summary]) -> str:
        """Returns the figure as text, with whose it is."""
        value = self.of(runs)
        who = worst_of(_at(runs[0], self.who)) if self.who and value is not None else ""
        return f"{self.text(value)} {who}".strip()


_UP, _DOWN = ("headline", "per_round", "up"), ("headline", "per_round", "down")
CRITERIA: dict[str, Criterion] = {
    "up": Criterion("bytes up, a user and round", "the fewest bytes up for most users", (*_UP, "median"), bytes_text),
    "up_worst": Criterion("  worst", "the lightest worst upload", (*_UP, "worst"), bytes_text, who=_UP),
    "down": Criterion("bytes down, a user and round", "the fewest bytes down", (*_DOWN, "median"), bytes_text),
    "down_worst": Criterion("  worst", "the lightest worst download", (*_DOWN, "worst"), bytes_text, who=_DOWN),
    "seconds": Criterion("seconds a round", "the shortest rounds", ("headline", "per_round", "seconds"), seconds_text),
    "lost": Criterion("rounds lost", "the fewest lost rounds", ("headline", "rounds_lost"), count_text),
    "accuracy": Criterion("accuracy", "the best accuracy", ("headline", "accuracy", "collected"), accuracy_text, True),
    "epsilon": Criterion(
        "epsilon, receivers of updates",
        "the strongest proof against those who receive updates",
        ("headline", "epsilon", "rigorous_local"),
        epsilon_text,
    ),
}


@dataclass(frozen=True, slots=True)
class Decision:
    """The alternatives side by side, whom each asks to be trusted, and two sentences."""

    names: list[str]
    rows: list[tuple[str, ...]]
    trust: str
    take: str
    because: str


def decide(
    alternatives: Mapping[str, Sequence[Summary]], receivers: Mapping[str, UpdateReceivers | None] | None = None
) -> Decision:
    """Compares alternatives, each with its runs over the same seeds; `receivers` says who got their updates."""
    names = list(alternatives)
    rows = [
        (criterion.label, *(criterion.cell(runs) for runs in alternatives.values()))
        for criterion in CRITERIA.values()
        if any(criterion.of(runs) is not None for runs in alternatives.values())
    ]
    usable = {name: runs for name, runs in alternatives.items() if not _loses_most(runs)}
    lost = [name for name in names if name not in usable]
    # If every alternative loses its rounds, the figures still say which costs least.
    judged = usable or dict(alternatives)
    trust = _trust(alternatives, receivers or {})
    return Decision(names, rows, trust, _take(judged, lost if usable else []), _because(judged, lost))


def _trust(alternatives: Mapping[str, Sequence[Summary]], receivers: Mapping[str, UpdateReceivers | None]) -> str:
    """Says who gets updates in the clear under each alternative, and whether anything is proved against them."""
    known = {name: found for name, found in receivers.items() if found is not None}
    if not known:
        return ""
    # One clause for all alternatives with the same receivers.
    by_receivers: dict[str, list[str]] = {}
    for name, found in known.items():
        by_receivers.setdefault(found.words(), []).append(name)
    whom = "; ".join(f"with {_listed(names)}, {words}" for words, names in by_receivers.items())
    proofs = {name: CRITERIA["epsilon"].of(alternatives[name]) for name in known}
    weak = [name for name, proof in proofs.items() if proof is None or proof >= NO_PROTECTION]
    guard = ""
    if weak:
        which = "" if len(weak) == len(known) else f" with {_listed(weak)}"
        guard = f" Nothing useful is proved against them{which}: they can read what an update tells."
    return f"Users must trust: {whom}.{guard} The proxy knows who is who in any case."


def _take(judged: Mapping[str, Sequence[Summary]], lost: Sequence[str]) -> str:
    wins: dict[str, list[str]] = {}
    for key in CRITERIA:
        best = _best(key, judged)
        if best:
            wins.setdefault(_either(best), []).append(CRITERIA[key].goal)
    out = f"; not {_listed(lost)}, which lost its rounds" if lost else ""
    if not wins:
        return f"Take {_either(list(judged))}: no figure tells them apart{out}."
    if len(wins) == 1:
        (name, goals) = next(iter(wins.items()))
        return f"Take {name} for {_listed(goals)}; in no figure is another one better{out}."
    # Most goals first; equal ones in the order of the table.
    ordered = sorted(wins.items(), key=lambda item: -len(item[1]))
    return f"Take {'; '.join(f'{name} for {_listed(goals)}' for name, goals in ordered)}{out}."


def _because(judged: Mapping[str, Sequence[Summary]], lost: Sequence[str]) -> str:
    """Names the figure that decides, and what is wrong with the alternatives that lose their rounds."""
    trouble = "".join(f"; {name}: {finding}" for name in lost if (finding := _first_finding(judged, name)))
    deciding = _deciding(judged)
    if not deciding:
        return f"Nothing decides it: they cost and give the same{trouble}."
    reasons = "; then ".join(_reason(key, judged) for key in deciding)
    return f"What decides is {reasons}{trouble}."


def _deciding(judged: Mapping[str, Sequence[Summary]]) -> list[str]:
    """Returns the figure in which the alternatives differ most, by its ratio; accuracies far apart come before it."""
    values = {
        key: [value for runs in judged.values() if (value := criterion.of(runs)) is not None]
        for key, criterion in CRITERIA.items()
    }
    ratios = {key: _ratio(found, key) for key, found in values.items()}
    most = max(ratios, key=lambda key: ratios[key])
    found = [most] if ratios[most] > 1 + _EQUAL else []
    accuracies = values["accuracy"] if len(values["accuracy"]) == len(judged) else []
    # The 1e-9 keeps a difference of exactly the limit from counting as above it.
    far = len(accuracies) > 1 and max(accuracies) - min(accuracies) > _MUCH_ACCURACY + 1e-9
    return ["accuracy", *(key for key in found if key != "accuracy")] if far else found


def _reason(key: str, judged: Mapping[str, Sequence[Summary]]) -> str:
    criterion = CRITERIA[key]
    cells = ", ".join(f"{criterion.cell(runs)} with {name}" for name, runs in judged.items())
    label = "the worst user's bytes" if criterion.label.strip() == "worst" else criterion.label
    way = {"up_worst": " up in a round", "down_worst": " down in a round"}.get(key, "")
    return f"{label}{way}: {cells}"


def _first_finding(judged: Mapping[str, Sequence[Summary]], name: str) -> str:
    runs = judged.get(name)
    found = (runs[0].get("diagnosis") or []) if runs else []
    return str(found[0]["problem"]) if found else ""


def _best(key: str, judged: Mapping[str, Sequence[Summary]]) -> list[str]:
    """Returns the alternatives that are clearly the best; none if all are, or where a figure is missing."""
    criterion = CRITERIA[key]
    values = {name: criterion.of(runs) for name, runs in judged.items()}
    known = {name: value for name, value in values.items() if value is not None}
    if len(known) < len(values) or len(known) < 2:
        return []
    first = (max if criterion.more_is_better else min)(known.values())
    # The least of several epsilons is no reason to take it if all of them are too large to protect anything.
    if math.isinf(first) or (key == "epsilon" and first >= NO_PROTECTION):
        return []
    best = [name for name, value in known.items() if math.isclose(value, first, rel_tol=_EQUAL, abs_tol=1e-12)]
    # All of them together are no reason to take one.
    return best if len(best) < len(known) else []


def _ratio(values: Sequence[float], key: str) -> float:
    """Returns how many times the largest is the smallest; accuracies are compared by their errors."""
    if len(values) < 2 or key == "lost" or (key == "epsilon" and min(values) >= NO_PROTECTION):
        return 1.0
    if key == "accuracy":
        # By errors: 0.99 is hardly more than 0.98, but leaves half the errors.
        values = [1 - value for value in values]
    low, high = min(values), max(values)
    if math.isinf(high):
        return 1.0 if math.isinf(low) else math.inf
    # No ratio to zero: such a figure decides nothing here.
    return high / low if low > 0 else 1.0


def _loses_most(runs: Sequence[Summary]) -> bool:
    lost = sum(int(_at(run, ("headline", "rounds_lost")) or 0) for run in runs)
    return 2 * lost > sum(int(run.get("rounds_completed") or 0) for run in runs)


def _at(value: Any, path: Sequence[str]) -> Any:
    for key in path:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


def _listed(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def _either(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"
