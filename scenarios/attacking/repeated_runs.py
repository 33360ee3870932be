"""What several runs say together about a stated epsilon: coins of all runs, corrected for everything tried on any."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from p2p.config.errors import UserError
from privacy.attacks.membership.ceiling import Claim, judge
from scenarios.metrics.headline.number_format import epsilon_text
from scenarios.run_folder import atomic_write
from scenarios.run_folder.json_text import to_json
from scenarios.run_folder.reader import open_run
from scenarios.schema import Scenario

Entry = dict[str, Any]


def comparisons_of(entry: Mapping[str, Any]) -> int:
    """Returns how often a stated epsilon was compared with an attack's result, on its run alone or with others."""
    together = sum(pool["comparisons"] for pool in entry.get("together", ()))
    return int(entry.get("comparisons", 0)) + int(together)


def judge_together(
    runs: Mapping[Path, Scenario], kind: str, options: Mapping[str, Any], by: str
) -> tuple[list[Entry], str]:
    """Compares the results of one attack on several runs with their epsilons, and adds the outcome to each summary.

    Returns:
        one entry for each observer, none if the attack compares nothing; and why runs are not judged together.
    """
    summaries = {path: _summary(path) for path in runs}
    found = {path: _entries(summary, kind, options, by) for path, summary in summaries.items()}
    if not all(found.values()):
        return [], ""
    why_not = _why_not_together(runs)
    if why_not:
        return [], why_not
    pools = []
    for name in [name for name in next(iter(found.values())) if all(name in each for each in found.values())]:
        mine = [each[name] for each in found.values()]
        pool = {"runs": sorted(summary["digest"]["learning"] for summary in summaries.values())}
        before = sum(_tried(summary, pool["runs"]) for summary in summaries.values())
        pool |= _verdicts(mine, before)
        for entry in mine:
            others = [one for one in entry.get("together", ()) if one["runs"] != pool["runs"]]
            entry["together"] = [*others, pool]
        pools.append({"by": name, **pool})
    for path, summary in summaries.items():
        atomic_write.write_text(path / "summary.json", to_json(summary))
    return pools, ""


def _summary(path: Path) -> Entry:
    summary = open_run(path).summary
    if summary is None:
        raise UserError(f"RUN = {path}: the run did not end; go on with it by `peerveil run --resume --out {path}`")
    # A copy whose entries may be changed, in the form in which it is written.
    copied: Entry = json.loads(to_json(summary))
    return copied


def _entries(summary: Entry, kind: str, options: Mapping[str, Any], by: str) -> dict[str, Entry]:
    """Returns the attack's entries by observer, of those that were compared with an epsilon."""
    return {
        entry["by"]: entry
        for entry in summary.get("attacks", [])
        if entry["kind"] == kind and entry["options"] == options and by in ("", entry["by"]) and entry.get("claims")
    }


def _why_not_together(runs: Mapping[Path, Scenario]) -> str:
    """Returns why the coins of these runs do not count together; empty if they are independent repetitions."""
    seeds: dict[int, Path] = {}
    first = next(iter(runs))
    for path, scenario in runs.items():
        if replace(scenario, seed=0) != replace(runs[first], seed=0):
            return f"the scenario of {path} differs from that of {first} in more than the seed"
        if scenario.seed in seeds:
            return f"{path} and {seeds[scenario.seed]} have the same seed, so they are one run; repeat it with another"
        seeds[scenario.seed] = path
    return ""


def _tried(summary: Entry, pool: Sequence[str]) -> int:
    """Returns the comparisons made on a run, except those of the pool that is judged now."""
    entries: list[Entry] = summary.get("attacks", [])
    same: list[Entry] = [one for entry in entries for one in entry.get("together", ()) if one["runs"] == pool]
    return sum(comparisons_of(entry) for entry in entries) - sum(int(one["comparisons"]) for one in same)


def _verdicts(entries: Sequence[Entry], before: int) -> Entry:
    """Returns what the runs say together about each claim, by each method."""
    pairs = [(claim["claim"], claim["method"]) for claim in entries[0]["claims"]]
    shared = [pair for pair in pairs if all(_claim(entry, *pair) for entry in entries)]
    claims = [_verdict(entries, name, method, before, len(shared)) for name, method in shared]
    return {"comparisons": len(shared), "claims": claims, "headline": _headline(claims, len(entries))}


def _claim(entry: Entry, name: str, method: str) -> Entry | None:
    return next((one for one in entry["claims"] if (one["claim"], one["method"]) == (name, method)), None)


def _verdict(entries: Sequence[Entry], name: str, method: str, before: int, comparisons: int) -> Entry:
    claims = [one for entry in entries if (one := _claim(entry, name, method))]
    rows = [row for entry in entries for row in entry["methods"] if row["method"] == method]
    # Events differ from run to run, and with them what is proved: the weakest of the claims covers all.
    claim = Claim(name, max(float(one["epsilon"]) for one in claims), max(float(one["delta"]) for one in claims))
    right, pairs = (sum(int(row[key]) for row in rows) for key in ("right_pairs", "pairs"))
    accuracy = sum(float(row["balanced_accuracy"]) * int(row["pairs"]) for row in rows) / max(pairs, 1)
    return {
        "method": method,
        "claim": name,
        "epsilon": claim.epsilon,
        "verdict": judge(claim, accuracy, right, pairs, before, comparisons).replace("this run", "these runs"),
        "delta": claim.delta,
        "balanced_accuracy": accuracy,
        "ceiling": claim.accuracy(),
        "right_pairs": right,
        "pairs": pairs,
    }


def _headline(claims: Sequence[Entry], runs: int) -> str:
    """Returns the strongest verdict about each claim."""
    worst = [
        max((one for one in claims if one["claim"] == name), key=lambda one: _strength(one))
        for name in dict.fromkeys(one["claim"] for one in claims)
    ]
    sentences = (
        f"{one['claim']} epsilon {epsilon_text(one['epsilon'])}: {one['verdict']} by {one['method']}, "
        f"{one['right_pairs']} of {one['pairs']} coins right"
        for one in worst
    )
    return "; ".join([f"{runs} runs together", *sentences])


def _strength(claim: Entry) -> tuple[int, float]:
    order = ("within the ceiling", "exceeds the ceiling in these runs", "falsified")
    return order.index(claim["verdict"]), claim["right_pairs"] / max(claim["pairs"], 1)
