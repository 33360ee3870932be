"""Rules about adversaries, reserved records and attacks."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from typing import Any

from nodes.protocols import roles_of
from scenarios.loading.problems import Path

Finding = tuple[Path, Any, str]
ATTACKED_PARTS = (
    *("model", "training", "objective", "protocol", "anonymity", "privacy", "noise_shares", "reserved"),
    *("clients", "rounds", "learning"),
)


def reserved_findings(reserved: Any, clients: int, data: Any) -> Iterator[Finding]:
    """Victims that do not exist, and more records set aside than clients can spare."""
    yield from _worded(("reserved",), reserved.problems(clients))
    # The size of a user's file is known only after loading it.
    records = data.records() if hasattr(data, "records") else None
    if records is None or not reserved.auxiliary:
        return
    split: Any = getattr(data, "split", None)
    needed = split.needs(clients) if hasattr(split, "needs") else 1
    # Where clients need more than there is, another rule says so.
    if needed <= records < needed + reserved.auxiliary:
        rule = f"the data has {records} records, of which {clients} clients need {needed}; reserve at most "
        yield ("reserved", "auxiliary"), reserved.auxiliary, f"{rule}{records - needed}"


def observer_findings(adversaries: Any, protocol: Any, reserved: Any, clients: int) -> Iterator[Finding]:
    """Observers of nodes or roles that do not exist, with equal names, or that know more than is reserved."""
    count = Counter(observer.called for observer in adversaries)
    for index, observer in enumerate(adversaries):
        path: Path = ("adversaries", index)
        yield from _worded(path, observer.problems(clients))
        if count[observer.called] > 1:
            yield (*path, "name"), observer.called, "is the name of several observers; give each its own `name`"
        if observer.role and observer.role not in roles_of(protocol):
            rule = f"this protocol has no {observer.role}; take another observer or protocol.kind: rotating_leader"
            yield (*path, "kind"), observer.kind, rule
        if observer.knows.auxiliary > reserved.auxiliary:
            rule = f"must be <= reserved.auxiliary, which is {reserved.auxiliary}; reserve more records or lower it"
            yield (*path, "knows", "auxiliary"), observer.knows.auxiliary, rule


def attack_findings(attacks: Any, adversaries: Any, data: Any, *others: Any) -> Iterator[Finding]:
    """Attacks that no observer can carry out."""
    if not attacks:
        return
    # Imported here: few scenarios have attacks, and `check` of the others need not load what they read.
    from scenarios.attacking.positions import chosen, position_of

    parts = dict(zip(ATTACKED_PARTS, others, strict=True)) | {"data": data}
    # The seed only decides which nodes are drawn, which no rule depends on.
    named = [observer for observer in adversaries if not observer.problems(parts["clients"])]
    positions = [position_of(observer, parts, 0) for observer in named]
    for index, attack in enumerate(attacks):
        if len(named) == len(adversaries):
            _, problems = chosen(attack, positions)
            for problem in problems:
                yield ("attacks", index, "by"), attack.by or "all", problem.removeprefix(f"by = {attack.by}: ")


def audit_findings(audit: Any, learning: str, privacy: Any, noise_shares: Any, schedule: Any) -> Iterator[Finding]:
    """What cannot be audited by canaries."""
    if audit is None:
        return
    for problem in audit_problems(learning, privacy, noise_shares, schedule, audit):
        yield ("audit",), "canaries", problem


def audit_problems(learning: str, privacy: Any, noise_shares: Any, schedule: Any, audit: Any) -> Iterator[str]:
    """Yields why a scenario cannot be audited, each with the cure."""
    if learning == "none":
        yield "canaries are updates, and there is no learning; set `learning: torch`"
    if privacy is None:
        yield "there is no epsilon to audit; add `privacy` with clipping and noise"
    elif not math.isfinite(privacy.clip_norm):
        yield "an audit needs a bound on updates; set `privacy.clip: {kind: flat, norm: 1.0}`"
    if getattr(schedule, "reads", ""):
        yield "events depend on learning under this schedule, hence on coins; set `schedule: fixed`"
    objects = {getattr(stage, "clip_object", "update") for stage in privacy.release_stages} if privacy else set()
    if audit.neighbours == "add_remove" and objects - {"update"}:
        yield "an update of zero is not the middle of clipped gradients or weights; set `audit.neighbours: replace`"
    if noise_shares is not None and audit.runs > 1:
        yield "shares of noise are drawn from the scenario's seed; set `audit.runs: 1`"


def _worded(path: Path, problems: list[str]) -> Iterator[Finding]:
    for problem in problems:
        key, _, rest = problem.partition(" = ")
        value, _, rule = rest.partition(": ")
        yield (*path, key), value, rule
