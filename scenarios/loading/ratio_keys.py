"""The papers' ratio keys: `tcsr` and `mer`, fractions of all clients, become counts before the scenario is read."""

from __future__ import annotations

from typing import Any

from p2p.config.units import parse_quantity
from scenarios.loading.problems import Problems

SHARES = {"tcsr": "train_per_round", "mer": "exchange_with"}


def shares_to_counts(data: dict[str, Any], problems: Problems) -> None:
    """Sets `protocol.train_per_round` from `tcsr` and `exchange_with` from `mer`, in place."""
    protocol = data.get("protocol")
    clients: Any = data.get("clients")
    if not isinstance(protocol, dict):
        return
    for share, count in SHARES.items():
        value = protocol.get(share)
        if value in (None, "none"):
            continue
        if protocol.get(count) not in (None, "none"):
            problems.wrong(("protocol", share), value, f"says the same as `{count}`; keep one of them")
        elif _is_count(clients) and _is_share(value):
            # A small fraction of few clients must not round to an empty cohort.
            protocol[count] = max(1, round(parse_quantity(value, "") * clients))
            del protocol[share]


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


def _is_share(value: Any) -> bool:
    """Returns whether the value is a fraction in (0, 1]; otherwise reading the section reports the problem."""
    try:
        return 0 < parse_quantity(value, "") <= 1
    except ValueError:
        return False
