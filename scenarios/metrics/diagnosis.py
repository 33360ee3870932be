"""What is wrong with a run, in sentences: why rounds ended at a deadline or were lost, and what to change."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

from p2p.log import records
from p2p.log.log import Log
from scenarios.metrics.communication.roles import Roles
from scenarios.metrics.communication.traffic import wasted_per_message
from scenarios.metrics.cut_rounds import cut_rounds
from scenarios.metrics.findings import Finding, RunLimits
from scenarios.metrics.headline.number_format import bytes_text, count_text, share_text

_MUCH_WASTE = 0.25


def diagnose(log: Log, roles: Roles, limits: RunLimits | None) -> list[Finding]:
    """Returns what is wrong with a run's rounds and bytes, worst first; nothing if all went well."""
    found = list(_lost_rounds(log))
    if len(log.messages) and log.rounds:
        found += cut_rounds(log, roles, limits)
        found += _waste(log, roles)
    return found


def findings_text(findings: Iterable[Mapping[str, str]]) -> list[str]:
    """Returns the findings of a summary as sentences, each with its cure."""
    return [f"{one['problem']}. {one['cure']}." for one in findings]


def _lost_rounds(log: Log) -> Iterator[Finding]:
    lost = [int(record["round"]) for record in log.rounds if record.get("skipped")]
    if not lost:
        return
    reasons = log.dropouts["reason"][
        (log.dropouts["what"] == records.WHAT["dropout"]) & np.isin(log.dropouts["round"], lost)
    ]
    counts = np.bincount(reasons, minlength=len(records.DROPOUT_REASONS))
    why = ""
    if counts.any():
        most = int(counts.argmax())
        why = f"; {share_text(counts[most] / counts.sum())} of their updates were {records.DROPOUT_REASONS[most]}"
    which = f"all {len(lost)} rounds" if len(lost) == len(log.rounds) else f"{len(lost)} of {len(log.rounds)} rounds"
    if len(log.rounds) == 1:
        which = "the only round"
    problem = f"{which} {'was' if len(lost) == 1 else 'were'} lost: no update was used{why}"
    yield Finding(
        "rounds_lost",
        problem,
        "Nothing can be learned in such rounds; see what they waited for below, or `peerveil cost`",
    )


def _waste(log: Log, roles: Roles) -> Iterator[Finding]:
    wasted = wasted_per_message(log.messages)
    sent = int(log.messages["size_bytes"].sum())
    if wasted.sum() < _MUCH_WASTE * sent:
        return
    kinds = np.bincount(log.messages["kind"], wasted, len(records.KINDS))
    most = int(kinds.argmax())
    rows = np.flatnonzero((log.messages["kind"] == most) & (wasted > 0))
    why = _causes_of_waste(log, roles, rows)
    cause = max(why, key=lambda name: int(wasted[rows][why[name]].sum()))
    how, cure = _WASTE[cause]
    share, amount = share_text(wasted.sum() / sent), bytes_text(int(wasted.sum()))
    problem = (
        f"{share} of all bytes were wasted ({amount}), most of them in {count_text(len(rows))} messages of kind "
        f"{records.KINDS[most]} {how}"
    )
    yield Finding("waste", problem, cure)


_WASTE = {
    "intruder": ("that an intruder sent", "It is what the intruder costs the others"),
    "down": (
        "from or to nodes that were down",
        "Shorter rounds lose less when a node goes",
    ),
    "partition": (
        "that a partition cut off",
        "A longer network.retransmit.timeout sends fewer of them before it heals",
    ),
    "lost": ("that the network lost", "Send less per round: every loss costs a whole message"),
    "relayed": ("that relays carried in vain", "Give them more time, or send less per round"),
    "late": ("that were too late to be used", "Give them more time, or send less per round"),
}
"""By cause: what is said of most of the wasted messages, and what would change it."""


def _causes_of_waste(log: Log, roles: Roles, rows: NDArray[np.int64]) -> dict[str, NDArray[np.bool_]]:
    """Returns for each cause which of some wasted messages have it; the first that applies."""
    origin, reason = log.messages["origin"][rows], log.messages["reason"][rows]
    intruders = [node for node in np.unique(origin).tolist() if roles.role(node) == "intruder"]
    found = {
        "intruder": np.isin(origin, intruders),
        "down": np.isin(reason, [records.REASON["sender_down"], records.REASON["receiver_down"]]),
        "partition": reason == records.REASON["partition"],
        "lost": log.messages["outcome"][rows] == records.OUTCOME["lost"],
        "relayed": log.messages["receiver"][rows] != log.messages["destination"][rows],
        "late": np.ones(len(rows), dtype=np.bool_),
    }
    left = np.ones(len(rows), dtype=np.bool_)
    for name, which in found.items():
        found[name] = which & left
        left &= ~which
    return found
