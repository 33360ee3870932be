"""`peerveil validate`: compares the network model with closed-form cases, flow by flow."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from scenarios.cli.commands.network_model.flows_input import case_of

TOLERANCE = 1e-9


@dataclass(frozen=True, slots=True)
class Case:
    """Flows with arrival times computed by hand."""

    name: str
    sharing: str
    links: Sequence[tuple[float | str, float | str]]
    latency_s: float
    flows: Sequence[tuple[int, int, float, float]]
    expected_s: Sequence[float]

    def found_s(self) -> list[float]:
        """Returns the arrival times of the network model."""
        content: dict[str, Any] = {
            "sharing": self.sharing,
            "nodes": [{"up": up, "down": down} for up, down in self.links],
            "latency_s": self.latency_s,
            "flows": [dict(zip(("src", "dst", "bytes", "start_s"), flow, strict=True)) for flow in self.flows],
        }
        found: list[float] = case_of(content, self.name).arrived_s().tolist()
        return found


WIDE = ("inf", "inf")
CASES = (
    Case("the slower link counts", "ideal", [(10, 1), (1, 4)], 0.5, [(0, 1, 20, 1)], [1 + 20 / 4 + 0.5]),
    Case("no flow waits", "ideal", [(10, 1), WIDE], 0.5, [(0, 1, 20, 0), (0, 1, 20, 0)], [2.5, 2.5]),
    Case("messages leave one by one", "fifo", [(10, 1), WIDE], 0.5, [(0, 1, 20, 0), (0, 1, 30, 0)], [2.5, 5.5]),
    # First bytes reach the receiver at 0.5 and 0.75; it takes 2 s for each, the second waits for the first.
    Case(
        "a receiver serves one by one",
        "fifo",
        [(20, 1), (20, 1), (1, 10)],
        0.5,
        [(0, 2, 20, 0), (1, 2, 20, 0.25)],
        [2.5, 4.5],
    ),
    Case("first bytes tie: by sender", "fifo", [(20, 1), (20, 1), (1, 10)], 0, [(1, 2, 20, 0), (0, 2, 20, 0)], [4, 2]),
    Case("a slow sender is not hurried", "fifo", [(5, 1), (1, 10)], 0.5, [(0, 1, 20, 0)], [4.5]),
    Case(
        "two share, then one has all",
        "fair",
        [(10, 1), WIDE, WIDE],
        0.25,
        [(0, 1, 100, 0), (0, 2, 50, 0)],
        [15.25, 10.25],
    ),
    Case("a newcomer takes its share", "fair", [(10, 1), WIDE], 0, [(0, 1, 100, 0), (0, 1, 80, 5)], [15, 18]),
    Case("incast", "fair", [(10, 1), (10, 1), (10, 1), (1, 3)], 0, [(i, 3, 6, 1) for i in range(3)], [7, 7, 7]),
    # The receiver has 8: one sender uses 1, the other takes 7 (an equal split would give 4). At 70/7 it is alone.
    Case("max-min is no equal split", "fair", [(1, 1), (10, 1), (1, 8)], 0, [(0, 2, 12, 0), (1, 2, 70, 0)], [12, 10]),
    # Node 2 (6 for three flows) holds node 0's first flow at 2, so its second gets 8; all equal sizes: one filling.
    Case(
        "a bottleneck elsewhere leaves room",
        "fair",
        [(10, 1), (99, 1), (1, 6), (1, 99)],
        0,
        [(0, 2, 40, 0), (0, 3, 40, 0), (1, 2, 40, 0), (1, 2, 40, 0)],
        [20, 5, 20, 20],
    ),
    Case("an end frees the link for a start", "fair", [(10, 1), WIDE], 0, [(0, 1, 100, 0), (0, 1, 100, 10)], [10, 20]),
    Case("full duplex", "fair", [(10, 10), (10, 10)], 0, [(0, 1, 100, 0), (1, 0, 100, 0)], [10, 10]),
    Case("nothing, and unlimited links", "fair", [WIDE, WIDE], 0.5, [(0, 1, 0, 1), (1, 0, 1e12, 1)], [1.5, 1.5]),
)


def run(args: argparse.Namespace) -> int:
    """Prints a row per flow; returns 1 if a relative difference exceeds `TOLERANCE`."""
    rows = [row for case in CASES for row in _rows(case)]
    print(json.dumps(rows, indent=2) if args.json else _table(rows))
    return 0 if all(row["difference"] <= TOLERANCE for row in rows) else 1


def _rows(case: Case) -> list[dict[str, Any]]:
    return [
        {
            "case": case.name,
            "sharing": case.sharing,
            "flow": flow,
            "expected_s": float(expected),
            "found_s": found,
            # Relative; the tiny bound only avoids a division by zero.
            "difference": abs(found - expected) / max(abs(expected), 1e-300),
        }
        for flow, (expected, found) in enumerate(zip(case.expected_s, case.found_s(), strict=True))
    ]


def _table(rows: list[dict[str, Any]]) -> str:
    wide = max(len(row["case"]) for row in rows)
    lines = [f"{'case':<{wide}}  sharing  flow  expected_s     found_s  difference"]
    lines += [
        f"{row['case']:<{wide}}  {row['sharing']:<7}  {row['flow']:>4}  {row['expected_s']:>10.4f}  "
        f"{row['found_s']:>10.4f}  {row['difference']:>10.1e}"
        for row in rows
    ]
    worst = max(row["difference"] for row in rows)
    verdict = "all agree" if worst <= TOLERANCE else "SOME DO NOT AGREE"
    return "\n".join(
        [*lines, f"{len(rows)} flows in {len(CASES)} cases: {verdict} (worst relative difference {worst:.1e})"]
    )
