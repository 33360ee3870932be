"""Console output at the end of a run: plain text, readable at 80 columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TextIO

from scenarios.loading.problems import printable
from scenarios.metrics.comparison import FIGURES, compare
from scenarios.metrics.headline import TRANSPORT_ASSUMED
from scenarios.metrics.number_format import (
    accuracy_text,
    bytes_text,
    count_text,
    epsilon_text,
    seconds_text,
    share_text,
)

if TYPE_CHECKING:
    from rich.console import Console

_COLUMNS_AT_ONCE = 3
"""Scenarios per comparison table; 80 columns hold no more intervals."""


def print_headline(summary: Mapping[str, Any], file: TextIO | None = None) -> None:
    """Prints the final table of one run."""
    console = make_console(file)
    rounds = f"{summary['rounds_completed']} of {summary.get('rounds_planned', '?')} rounds"
    console.print(printable(f"{summary['scenario']}, seed {summary['seed']}: {rounds}, {summary['stopped_because']}"))
    print_rows(console, [("", label, text) for label, text in headline_rows(summary)])


def headline_rows(summary: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yields the rows of the final table as (label, text)."""
    head = summary["headline"]
    clients = {what: accuracy_text(value) for what, value in head["accuracy"]["clients"].items()}
    yield (
        "accuracy",
        f"{accuracy_text(head['accuracy']['collected'])} collected model; clients {clients['max']} max, "
        f"{clients['mean']} mean, {clients['min']} min",
    )
    yield _target_row(head["to_target"])
    yield "in all", f"{seconds_text(summary['simulated_s'])} simulated, {bytes_text(summary['bytes']['sent'])} sent"
    yield "bytes per client", _client_bytes(head["bytes_per_client"])
    # The standby is included in the proxy's bytes.
    others = ((name, head[f"{name}_bytes"]) for name in ("proxy", "server", "relay"))
    yield "other nodes", ", ".join(f"{name} {bytes_text(amount)}" for name, amount in others)
    yield (
        "lost",
        f"{count_text(head['rounds_lost'])} rounds, {bytes_text(head['wasted_bytes'])} wasted, "
        f"{seconds_text(head['stalled_s'])} stalled; {count_text(head['updates_used'])} updates used",
    )
    yield from _privacy_rows(head)
    yield from _share_rows(summary)
    if head["transport"] == TRANSPORT_ASSUMED:
        yield "transport", TRANSPORT_ASSUMED


def _share_rows(summary: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yields the rows on noise shares, if any were exchanged: residual noise, cost and epsilon."""
    shares, views = summary.get("noise_shares"), summary["privacy"].get("noise_shares") or {}
    if shares is None:
        return
    variances = (
        f"{value:.3g}" if value is not None else "unknown"
        for value in (shares["residual_variance"], shares["predicted_variance"])
    )
    yield "residual noise", "variance {} measured, {} predicted".format(*variances)
    cost = shares["bytes"]
    each, all_of_them = (bytes_text(round(cost[name])) for name in ("per_share", "per_client_round"))
    ratio = f"{cost['ratio_to_vectors']:.3g} of what vectors cost"
    yield "noise shares", f"{each} a share, {all_of_them} a client and round; {ratio}"
    if views.get("marginal") and views.get("joint"):
        joint, alone = views["joint"], views["marginal"]
        yield (
            "joint view",
            f"epsilon {epsilon_text(joint['per_round'])} a round, {epsilon_text(joint['composed'])} in all; "
            f"one upload alone {epsilon_text(alone['per_round'])} and {epsilon_text(alone['composed'])}",
        )


def _target_row(target: Mapping[str, Any]) -> tuple[str, str]:
    if target["accuracy"] is None:
        return "target accuracy", "none asked for"
    label = f"to accuracy {target['accuracy']:g}"
    if target["round"] is None:
        return label, "not reached"
    return label, f"round {target['round']}, {seconds_text(target['simulated_s'])}, {bytes_text(target['bytes'])}"


def _client_bytes(spread: Mapping[str, Any]) -> str:
    middle = f"{bytes_text(spread['median'])} median, {bytes_text(spread['p95'])} 95th percentile, "
    most = spread["max_is"]
    who = f" (client {most['node']}, {most['role']})" if most else ""
    return f"{middle}{bytes_text(spread['max'])} most{who}"


def _privacy_rows(head: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    epsilon, links = head["epsilon"], head["linkability"]
    at = "" if epsilon["delta"] is None else f", delta {epsilon['delta']:g}"
    yield (
        "epsilon",
        f"published {epsilon_text(epsilon['published'])}; rigorous {epsilon_text(epsilon['rigorous_worst_peer'])} "
        f"worst peer, {epsilon_text(epsilon['rigorous_model'])} model ({epsilon['unit']} level{at})",
    )
    yield "verdict", epsilon["verdict"]
    linked = (f"{share_text(links.get(what))} by {what}" for what in ("address", "content", "chance"))
    yield "rounds linked", ", ".join(linked)


def print_comparison(summaries: Sequence[Mapping[str, Any]], file: TextIO | None = None) -> None:
    """Prints several runs side by side; over seeds the mean with its 95% interval, and paired differences."""
    console, compared = make_console(file), compare(summaries)
    labels = list(compared["scenarios"])
    for start in range(0, len(labels), _COLUMNS_AT_ONCE):
        _print_columns(console, compared, labels[start : start + _COLUMNS_AT_ONCE])
    for found in compared["differences"]:
        _print_difference(console, found)
    if any(summary["headline"].get("transport") == TRANSPORT_ASSUMED for summary in summaries):
        console.print(TRANSPORT_ASSUMED)


def _print_columns(console: Console, compared: Mapping[str, Any], labels: list[str]) -> None:
    columns = [compared["scenarios"][label] for label in labels]
    seeds = [_seeds_text(column["seeds"]) for column in columns]
    rows = [("", *(printable(label) for label in labels)), ("", *seeds)]
    for key, figure in FIGURES.items():
        cells = [column["figures"][key] for column in columns]
        if any(cell["n"] for cell in cells):
            rows.append((figure.label, *(_cell(key, cell) for cell in cells)))
    print_rows(console, [("", *row) for row in rows])
    console.print()


def _print_difference(console: Console, found: Mapping[str, Any]) -> None:
    title = f"{found['scenario']} minus {found['against']}, paired on {_seeds_text(found['seeds'])}"
    console.print(printable(title))
    rows = [
        (
            "",
            FIGURES[key].label,
            _cell(key, cell),
            "" if cell["low"] is None or cell["low"] <= 0 <= cell["high"] else "*",
        )
        for key, cell in found["figures"].items()
        # Rows that are zero throughout are left out.
        if cell["mean"] is not None and any(cell[end] for end in ("mean", "low", "high"))
    ]
    print_rows(console, rows or [("", "no difference in any figure")])
    if any(row[-1] for row in rows):
        console.print("* the 95% interval leaves out zero (each line for itself)")
    console.print()


def _cell(key: str, cell: Mapping[str, Any]) -> str:
    text = FIGURES[key].text
    # Some seeds lack the figure, e.g. did not reach the target: a mean over the others would mislead.
    if cell["mean"] is None:
        return f"- ({cell['n']} of {cell['of']})" if cell["n"] else "-"
    if cell["low"] is None:
        return text(cell["mean"])
    return f"{text(cell['mean'])} ± {text((cell['high'] - cell['low']) / 2)}"


def _seeds_text(seeds: Sequence[int]) -> str:
    return f"seed {seeds[0]}" if len(seeds) == 1 else f"{len(seeds)} seeds, mean ± 95%"


def make_console(file: TextIO | None) -> Console:
    """Returns a console that prints text literally, without markup, highlighting or emoji."""
    from rich.console import Console

    return Console(file=file, markup=False, highlight=False, emoji=False)


def print_rows(console: Console, rows: Sequence[tuple[str, ...]]) -> None:
    """Prints rows in aligned columns; the last column may wrap."""
    from rich.table import Table

    table = Table.grid(padding=(0, 2, 0, 0))
    for row in rows:
        table.add_row(*row)
    console.print(table)
