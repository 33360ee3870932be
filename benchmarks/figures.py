"""What the benchmarks find: figures beside their goals, as a table, as JSON, and in docs/performance.md."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

BEGIN, END = "<!-- begin: measured by make bench -->", "<!-- end: measured by make bench -->"


@dataclass(frozen=True, slots=True)
class Figure:
    """One line of the table. `detail` says what the figure was made of."""

    job: str
    value: float
    unit: str
    goal: float
    rule: Literal["at most", "at least"] = "at most"
    detail: str = ""

    @property
    def met(self) -> bool:
        """Whether the goal is reached."""
        return self.value <= self.goal if self.rule == "at most" else self.value >= self.goal

    def row(self) -> list[str]:
        """The line's cells."""
        measured = f"{self.value:.3g} {self.unit}".strip()
        return [self.job, measured, f"{self.rule} {self.goal:g} {self.unit}".strip(), _verdict(self.met), self.detail]


@dataclass(frozen=True, slots=True)
class Effort:
    """How much is measured: `quick` only shows that everything works; `largest` bounds the number of peers."""

    quick: bool = False
    largest: int = 100_000

    @property
    def repetitions(self) -> int:
        """How often each thing is measured; the best counts."""
        return 1 if self.quick else 5


Job = Callable[[Effort], list[Figure]]


def _verdict(met: bool) -> str:
    return "met" if met else "MISSED"


def timed(work: Callable[[], object], clock: Callable[[], float] = time.perf_counter) -> float:
    """Seconds that some work takes."""
    start = clock()
    work()
    return clock() - start


def markdown(figures: Sequence[Figure], facts: Mapping[str, Any]) -> str:
    """The table, and what it was measured on."""
    head = ["job", "measured", "goal", "", "made of"]
    lines = [head, ["---"] * len(head), *(figure.row() for figure in figures)]
    table = "\n".join("| " + " | ".join(cells) + " |" for cells in lines)
    machine = "Python {python}, {cores} cores; bare SimPy did {simpy_timeouts_per_s:,} timeouts a CPU second meanwhile"
    return f"{machine.format(**facts)}.\n\n{table}"


def to_json(figures: Sequence[Figure], facts: Mapping[str, Any]) -> str:
    """Everything, for other programs."""
    keys = ("job", "value", "unit", "rule", "goal", "met", "detail")
    rows = [{key: getattr(figure, key) for key in keys} for figure in figures]
    return json.dumps({"facts": dict(facts), "figures": rows}, indent=1) + "\n"


def put_into(page: Path, table: str) -> None:
    """Replaces what stands between the page's two markers."""
    text = page.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    page.write_text(f"{before}{BEGIN}\n{table}\n{END}{after}", encoding="utf-8")
