"""Compares runs: mean and 95% interval over seeds, and paired differences on equal seeds."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from scenarios.metrics.headline import number_format
from scenarios.metrics.privacy.privacy_verdict import epsilon_of

Summary = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ComparedFigure:
    """One row of a comparison: its path in a summary, and its formatting function."""

    label: str
    path: tuple[str, ...]
    text: Callable[[float | None], str]

    def of(self, summary: Summary) -> float | None:
        """Returns its value in one run, or None."""
        value: Any = summary
        for key in self.path:
            value = value.get(key) if isinstance(value, Mapping) else None
        return epsilon_of(value)


FIGURES = {
    "accuracy": ComparedFigure(
        "accuracy, collected model", ("headline", "accuracy", "collected"), number_format.accuracy_text
    ),
    "accuracy_mean": ComparedFigure("accuracy, mean of clients", ("accuracy", "mean"), number_format.accuracy_text),
    "accuracy_min": ComparedFigure("accuracy, worst client", ("accuracy", "min"), number_format.accuracy_text),
    "rounds": ComparedFigure("rounds completed", ("rounds_completed",), number_format.count_text),
    "simulated_s": ComparedFigure("simulated time", ("simulated_s",), number_format.seconds_text),
    "bytes": ComparedFigure("bytes sent", ("bytes", "sent"), number_format.bytes_text),
    "target_s": ComparedFigure("time to target", ("headline", "to_target", "simulated_s"), number_format.seconds_text),
    "target_bytes": ComparedFigure("bytes to target", ("headline", "to_target", "bytes"), number_format.bytes_text),
    "client_median": ComparedFigure(
        "bytes per client, median", ("headline", "bytes_per_client", "median"), number_format.bytes_text
    ),
    "client_p95": ComparedFigure(
        "bytes per client, 95%", ("headline", "bytes_per_client", "p95"), number_format.bytes_text
    ),
    "client_max": ComparedFigure(
        "bytes per client, most", ("headline", "bytes_per_client", "max"), number_format.bytes_text
    ),
    "proxy_bytes": ComparedFigure("bytes of the proxy", ("headline", "proxy_bytes"), number_format.bytes_text),
    "relay_bytes": ComparedFigure("bytes of relays", ("headline", "relay_bytes"), number_format.bytes_text),
    "rounds_lost": ComparedFigure("rounds lost", ("headline", "rounds_lost"), number_format.count_text),
    "updates_used": ComparedFigure("updates used", ("headline", "updates_used"), number_format.count_text),
    "wasted_bytes": ComparedFigure("bytes wasted", ("headline", "wasted_bytes"), number_format.bytes_text),
    "stalled_s": ComparedFigure("time stalled", ("headline", "stalled_s"), number_format.seconds_text),
    "published": ComparedFigure("epsilon published", ("headline", "epsilon", "published"), number_format.epsilon_text),
    "local": ComparedFigure(
        "epsilon rigorous, local", ("headline", "epsilon", "rigorous_local"), number_format.epsilon_text
    ),
    "worst_peer": ComparedFigure(
        "epsilon rigorous, peer", ("headline", "epsilon", "rigorous_worst_peer"), number_format.epsilon_text
    ),
    "model": ComparedFigure(
        "epsilon rigorous, model", ("headline", "epsilon", "rigorous_model"), number_format.epsilon_text
    ),
    "record": ComparedFigure(
        "epsilon rigorous, one record", ("headline", "epsilon", "record"), number_format.epsilon_text
    ),
    "link_address": ComparedFigure("linked by address", ("linkability", "address"), number_format.share_text),
    "link_content": ComparedFigure("linked by content", ("linkability", "content"), number_format.share_text),
    "link_at_least": ComparedFigure("linked at least", ("linkability", "content_at_least"), number_format.share_text),
    "link_chance": ComparedFigure("linked by chance", ("linkability", "chance"), number_format.share_text),
}


def compare(summaries: Sequence[Summary]) -> dict[str, Any]:
    """Returns the figures of several runs and their differences, as plain data.

    Runs of one scenario with different seeds form one column. A figure that is missing for some seed (a target not
    reached) has no mean: leaving that seed out would flatter the scenario.
    """
    groups = group(summaries)
    columns = {label: _column(list(runs.values())) for label, runs in groups.items()}
    # All differences are taken from the first scenario.
    first, *others = groups
    differences = [_difference(label, groups[label], first, groups[first]) for label in others]
    # Without a common seed there is no paired difference.
    return {"scenarios": columns, "differences": [found for found in differences if found["seeds"]]}


def group(summaries: Sequence[Summary]) -> dict[str, dict[int, Summary]]:
    """Groups runs by scenario and seed; a repeated run of the same scenario and seed gets its own column."""
    groups: dict[str, dict[int, Summary]] = {}
    for summary in summaries:
        name, seed, number = str(summary["scenario"]), int(summary["seed"]), 1
        label = name
        # Two runs of one seed are no two samples: together they would narrow the interval for nothing.
        while seed in groups.get(label, {}):
            number += 1
            label = f"{name} ({number})"
        groups.setdefault(label, {})[seed] = summary
    return groups


def _column(runs: list[Summary]) -> dict[str, Any]:
    figures = {key: clipped(key, interval([figure.of(run) for run in runs])) for key, figure in FIGURES.items()}
    return {"seeds": [run["seed"] for run in runs], "figures": figures}


def range_of(key: str) -> tuple[float, float]:
    """Returns the least and the largest value that a figure can have."""
    return 0.0, 1.0 if unit_of(key) == "share" else math.inf


def clipped(key: str, cell: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the cell with its interval cut to what the figure can be: no accuracy is above 1."""
    if cell["low"] is None:
        return dict(cell)
    least, most = range_of(key)
    return {**cell, "low": max(cell["low"], least), "high": min(cell["high"], most)}


def is_clipped(key: str, cell: Mapping[str, Any]) -> bool:
    """Returns whether an interval ends where the figure's range does, so that it is not symmetric."""
    least, most = range_of(key)
    # An interval that has shrunk to the bound itself was not cut.
    return bool(cell["low"] <= least < cell["mean"] or cell["high"] >= most > cell["mean"])


def cell_text(key: str, cell: Mapping[str, Any]) -> str:
    """Returns a figure as text: its mean, and the half width of its interval, or the interval where it was cut."""
    text = FIGURES[key].text
    # Some seeds lack the figure, e.g. did not reach the target: a mean over the others would mislead.
    if cell["mean"] is None:
        return f"- ({cell['n']} of {cell['of']})" if cell["n"] else "-"
    if cell["low"] is None:
        return text(cell["mean"])
    if is_clipped(key, cell):
        return f"{text(cell['mean'])} ({text(cell['low'])} to {text(cell['high'])})"
    return f"{text(cell['mean'])} ± {text((cell['high'] - cell['low']) / 2)}"


def difference_text(key: str, cell: Mapping[str, Any]) -> str:
    """Returns a difference as text; it has no range, so its interval is never cut."""
    text = FIGURES[key].text
    half = "" if cell["low"] is None else f" ± {text((cell['high'] - cell['low']) / 2)}"
    return f"{text(cell['mean'])}{half}"


def unit_of(key: str) -> str:
    """Returns the unit of a figure, derived from its formatting function."""
    units = {"bytes_text": "bytes", "seconds_text": "s", "accuracy_text": "share", "share_text": "share"}
    return units.get(FIGURES[key].text.__name__, "1")


def _difference(label: str, runs: Mapping[int, Summary], against: str, base: Mapping[int, Summary]) -> dict[str, Any]:
    seeds = sorted(runs.keys() & base.keys())
    figures = {}
    for key, figure in FIGURES.items():
        pairs = [(figure.of(runs[seed]), figure.of(base[seed])) for seed in seeds]
        # Paired by seed: data, links and churn are then the same on both sides, and their spread cancels.
        figures[key] = interval([_minus(mine, theirs) for mine, theirs in pairs])
    return {"scenario": label, "against": against, "seeds": seeds, "figures": figures}


def _minus(mine: float | None, theirs: float | None) -> float | None:
    if mine is None or theirs is None or math.isinf(mine) or math.isinf(theirs):
        return None
    # Differences within rounding error count as none.
    return 0.0 if math.isclose(mine, theirs, rel_tol=1e-12) else mine - theirs


def interval(values: Sequence[float | None]) -> dict[str, Any]:
    """Returns mean and 95% interval (Student's t); none if a run lacks the figure, no interval from one run."""
    known = np.array([value for value in values if value is not None], dtype=np.float64)
    empty: dict[str, Any] = {"mean": None, "low": None, "high": None, "n": len(known), "of": len(values)}
    if not len(known) or len(known) < len(values):
        return empty
    mean = float(known.mean())
    # One infinite value makes the mean infinite, and nothing is known of its spread.
    if len(known) < 2 or math.isinf(mean):
        return empty | {"mean": mean}
    half = _student(len(known) - 1) * float(known.std(ddof=1)) / math.sqrt(len(known))
    return empty | {"mean": mean, "low": mean - half, "high": mean + half}


def _student(freedom: int) -> float:
    # Imported on use: scipy is slow to import, and a single seed needs no interval.
    from scipy.special import stdtrit

    return float(stdtrit(freedom, 0.975))
