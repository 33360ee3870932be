"""Writes docs/reproductions.md from the printed results, the rules and the recorded outcomes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from scenarios.reproductions.formulas.table import FORMULAS
from scenarios.reproductions.published_results import PublishedResult, folder_of, published_results
from scenarios.reproductions.reproduce import outcomes, reproduce_formula
from scenarios.reproductions.rule_file import rules
from scenarios.reproductions.value_table import value_table
from scenarios.reproductions.waiting import state_of

_HEAD = """# Reproductions

Made by `peerveil reproduce --book docs/reproductions.md` from the files of `scenarios/reproductions`; do not edit.

The results of five papers: printed, measured, verdict. A verdict is about the authors' claim, by a rule that was
written before the runs: `reproduced` (every statement of the rule holds: the 95% interval of the paired difference over
seeds is on its side), `not reproduced` (a statement fails), `refuted` (by a proof or a counterexample), `inconclusive`
(the spread over seeds is too large; with the number of seeds that would decide if mean and spread stay). Statements in
brackets are about one reading of what the paper does not state; the reading under which the claim fares best decides.
Each interval is for itself. `stale` marks verdicts whose one-round probe differs from today's code.

    peerveil reproduce --list
    peerveil reproduce S0-T5.4 --size reduced --seeds 3
"""


def collected() -> dict[str, dict[str, Any]]:
    """Returns every outcome there is: recorded ones, and formulas computed now."""
    recorded = outcomes()
    found = {}
    for name in published_results():
        if name in recorded:
            found[name] = recorded[name]
        elif name in FORMULAS:
            found[name] = reproduce_formula(name)
    return found


def verdict_text(name: str, found: Mapping[str, Mapping[str, Any]]) -> str:
    """Returns the verdict on a result, or why it has none."""
    if name in found:
        stale = ", stale" if found[name].get("stale") else ""
        return f"{found[name]['verdict']}{stale}"
    state = state_of(published_results()[name])
    return f"rule written, not run; about {rules()[name].minutes:g} min of one core" if state == "sweep" else state


def write_book() -> str:
    """Returns the page as Markdown."""
    found = collected()
    lines = [_HEAD, *_sources(), *_counts(found), *_table(found)]
    for name, outcome in found.items():
        lines += _section(published_results()[name], outcome)
    return "\n".join(lines).rstrip() + "\n"


def _sources() -> Iterator[str]:
    yield "## Papers\n"
    for source, name in dict.fromkeys((one.source, one.id[:2]) for one in published_results().values()):
        yield f"* **{name}** {source}"
    yield ""


def _counts(found: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    words = Counter(outcome["verdict"] for outcome in found.values())
    total, values = len(published_results()), sum(len(one.rows) for one in published_results().values())
    counted = ", ".join(f"{number} {word}" for word, number in words.most_common())
    unrun = [name for name in rules() if name not in outcomes()]
    yield f"{total} results with {values} printed values; {len(found)} have a verdict: {counted}."
    if unrun:
        minutes = sum(rules()[name].minutes for name in unrun)
        yield f"Rules are written and not run for {', '.join(unrun)}: about {minutes:g} minutes of one core."
    yield ""


def _table(found: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    yield "## All results\n"
    yield "| result | what | verdict, or why not run |"
    yield "|---|---|---|"
    for name, result in published_results().items():
        link = f"[{name}](#{_anchor(name)})" if name in found else name
        yield f"| {link} | {_cell(result.title)} | {_cell(verdict_text(name, found))} |"
    yield ""


def _section(result: PublishedResult, outcome: Mapping[str, Any]) -> Iterator[str]:
    yield f"## {result.id}\n"
    yield f"{_cell(result.title)} ({result.system}, {result.dataset}; section {result.where}).\n"
    yield f"Claim: {result.claim}\n"
    stale = " (stale)" if outcome.get("stale") else ""
    because = f" {outcome['because'][:1].upper()}{outcome['because'][1:]}." if outcome["because"] else ""
    yield f"Verdict: **{outcome['verdict']}**{stale}.{because}\n"
    yield "| statement | holds | measured |"
    yield "|---|---|---|"
    for part in outcome["parts"]:
        holds = {True: "yes", False: "no", None: "open"}[part["holds"]]
        needed = f"; about {part['seeds_needed']} seeds would decide" if part["seeds_needed"] else ""
        yield f"| {_cell(statement_text(part))} | {holds} | {_cell(part['measured'])}{needed} |"
    yield ""
    yield from _values(outcome)
    for line in outcome["assumed"]:
        yield f"* assumed: {line}"
    if outcome.get("unsaid"):
        yield f"* not said by these runs: {outcome['unsaid']}"
    how = f", {outcome['seeds']} seeds, {outcome['seconds']:g} s of runs" if "seeds" in outcome else ""
    yield f"* `{outcome['command']}`{how}\n"


def _values(outcome: Mapping[str, Any]) -> Iterator[str]:
    if not outcome.get("values"):
        return
    yield f"![{outcome['id']}]({picture_path(outcome['id'])})\n"
    heads, rows = value_table(outcome)
    measured = " | ".join(heads)
    yield f"`{outcome['figure']}`, mean and 95% interval:\n"
    yield f"| settings | printed | {measured} |"
    yield f"|---|{'---:|' * (1 + len(heads))}"
    for row in rows:
        yield f"| {' | '.join(map(_cell, row))} |"
    yield ""


def picture_path(name: str) -> str:
    """Returns where the plot of a result lies, seen from the page."""
    return f"pictures/reproductions/{folder_of(name)}/{name}.svg"


def statement_text(part: Mapping[str, Any]) -> str:
    """Returns a statement, with the reading that it is about."""
    return f"{part['statement']} [{part['reading']}]" if part.get("reading") else str(part["statement"])


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _anchor(name: str) -> str:
    return name.lower().replace(".", "")
