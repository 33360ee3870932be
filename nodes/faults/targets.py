"""Fault targets: parses the nodes and roles that a scenario names."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

Who = int | str | tuple[int | str, ...]
"""A node, a range such as `0-49`, a list of both, or a role."""

_RANGE = re.compile(r"\s*(\d{1,9})\s*(?:-\s*(\d{1,9})\s*)?")


class Targets(NamedTuple):
    """The parsed targets: nodes, or a role, or the problems found."""

    nodes: tuple[int, ...] = ()
    role: str = ""
    problems: tuple[str, ...] = ()


def parse_nodes(who: Who, clients: int, roles: Sequence[str], key: str = "who") -> Targets:
    """Parses `who` into sorted clients or one of `roles`; problems refer to the scenario's `key`."""
    if isinstance(who, str) and who in roles:
        return Targets(role=who)
    nodes: set[int] = set()
    problems: list[str] = []
    for part in who if isinstance(who, tuple) else (who,):
        match = _RANGE.fullmatch(str(part))
        if match is None:
            known = f"a client 0-{clients - 1}, a range such as 0-9" + "".join(f", {role}" for role in roles)
            problems.append(f"{key} = {part}: names no node here; use {known}")
            continue
        first, last = int(match[1]), int(match[2] or match[1])
        if first > last or last >= clients:
            problems.append(
                f"{key} = {part}: there are clients 0 to {clients - 1}; name some of them, the smaller first"
            )
            continue
        nodes.update(range(first, last + 1))
    return Targets(tuple(sorted(nodes)), "", tuple(problems))


def check_window(start_s: float | None, end_s: float | None, lasts_s: float | None) -> list[str]:
    """Returns the problems with a fault's interval."""
    problems = []
    if end_s is not None and lasts_s is not None:
        problems.append("end: says the same as `lasts`; keep one of them")
    if start_s is not None and end_s is not None and end_s <= start_s:
        problems.append(f"end = {end_s:g}: must be after start, which is {start_s:g}; exchange them")
    return problems
