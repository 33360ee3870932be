"""Reads the input of `peerveil flows`: JSON to arrays, or one error with all problems."""

from __future__ import annotations

import json
import math
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from p2p.config.errors import UserError
from scenarios.loading.problems import Problems, printable

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from p2p.transport.flow_arrivals import Flows

KEYS = ("sharing", "nodes", "latency_s", "flows", "grid_s")
NODE_KEYS = ("up", "down")
FLOW_KEYS = ("src", "dst", "bytes", "start_s")
MOST_LINES = 50


@dataclass(frozen=True, slots=True, eq=False)
class FlowCase:
    """Flows, the nodes' link rates (bytes/s), latencies, and the bandwidth sharing model."""

    sharing: str
    up: NDArray[np.float64]
    down: NDArray[np.float64]
    latency_s: NDArray[np.float64]
    flows: Flows
    grid_s: float | None = None

    def arrived_s(self) -> NDArray[np.float64]:
        """Returns the arrival time of each flow."""
        from p2p.transport.flow_arrivals import arrivals

        return arrivals(self.sharing, self.up, self.down, self.latency_s, self.flows, self.grid_s)


def read_case(path: str) -> FlowCase:
    """Reads the case in a file; `-` is standard input."""
    try:
        raw = sys.stdin.buffer.read() if path == "-" else Path(path).read_bytes()
    except OSError as error:
        raise UserError(f"cannot be read ({error.strerror}); give the path of a JSON file", printable(path)) from error
    return parse_case(raw, path)


def parse_case(raw: bytes, source: str) -> FlowCase:
    """Parses the case in JSON text; `source` names it in errors."""
    try:
        # Tolerates the byte order mark that some editors write.
        content = json.loads(raw.decode("utf-8-sig"))
    except json.JSONDecodeError as error:
        where = f"line {error.lineno} column {error.colno}"
        raise UserError(f"{where}: not JSON ({error.msg}); mend it there", printable(source)) from error
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        # rfind gives -1 on the first line, which makes the column count from 1.
        column = error.start - raw.rfind(b"\n", 0, error.start)
        raise UserError(f"line {line} column {column}: not UTF-8 text; save it as UTF-8", printable(source)) from error
    except (RecursionError, ValueError) as error:
        raise UserError("not usable JSON (nested too deeply, or a number too long)", printable(source)) from error
    return case_of(content, source)


def case_of(content: Any, source: str) -> FlowCase:
    """Builds the case from parsed JSON."""
    import numpy as np

    from p2p.transport.flow_arrivals import SHARING_MODELS, Flows

    check = _Check()
    top = check.mapping((), content, KEYS, required=("nodes", "flows"))
    sharing = top.get("sharing", "fair")
    if sharing not in SHARING_MODELS:
        check.problems.wrong(("sharing",), sharing, f"must be one of {', '.join(SHARING_MODELS)}")
    nodes = [
        check.mapping(("nodes", i), node, NODE_KEYS, required=NODE_KEYS)
        for i, node in enumerate(check.sequence(("nodes",), top.get("nodes", [])))
    ]
    rates = np.array(
        [[check.rate(("nodes", i, key), node.get(key, 1)) for key in NODE_KEYS] for i, node in enumerate(nodes)]
    )
    up, down = rates.reshape(-1, 2).T
    latency_s = check.latencies(top.get("latency_s", 0.0), len(nodes))
    rows = [
        check.flow(("flows", i), flow, len(nodes))
        for i, flow in enumerate(check.sequence(("flows",), top.get("flows", [])))
    ]
    grid_s = check.grid(top, sharing)
    # Only meaningful if all nodes and rates could be read.
    if not check.problems.lines:
        check.passable(rows, up, down)
    check.refuse(source)
    table = np.array(rows, dtype=np.float64).reshape(-1, 4)
    flows = Flows(table[:, 0].astype(np.int64), table[:, 1].astype(np.int64), table[:, 2], table[:, 3])
    return FlowCase(sharing, up, down, latency_s, flows, grid_s)


class _Check:
    """Collects problems; each method returns a harmless substitute for an invalid value."""

    def __init__(self) -> None:
        self.problems = Problems()

    def mapping(
        self, path: tuple[str | int, ...], value: Any, keys: tuple[str, ...], required: tuple[str, ...]
    ) -> dict[str, Any]:
        if not isinstance(value, dict):
            self.problems.wrong(path or ("the file",), value, f"must be an object with the keys {', '.join(keys)}")
            return {}
        for key in value:
            if key not in keys:
                self.problems.unknown_key((*path, key), keys)
        for key in required:
            if key not in value:
                self.problems.missing((*path, key), f"add `{key}`")
        return value

    def sequence(self, path: tuple[str | int, ...], value: Any) -> list[Any]:
        if isinstance(value, list):
            return value
        self.problems.wrong(path, value, "must be a list")
        return []

    def number(self, path: tuple[str | int, ...], value: Any, unlimited: bool = False) -> float:
        """Reads a number >= 0."""
        found = _as_float(value)
        if math.isnan(found) or found < 0 or (found == math.inf and not unlimited):
            self.problems.wrong(path, value, f"must be a number >= 0{', or `inf`' if unlimited else ', and finite'}")
            return 1.0
        return found

    def rate(self, path: tuple[str | int, ...], value: Any) -> float:
        """Reads bytes per second; `"inf"` means unlimited."""
        return self.number(path, math.inf if value == "inf" else value, unlimited=True)

    def node(self, path: tuple[str | int, ...], value: Any, nodes: int) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < nodes:
            known = f"nodes are 0 to {nodes - 1}" if nodes else "there are no nodes"
            self.problems.wrong(path, value, f"unknown node; {known}")
            return 0
        return value

    def flow(self, path: tuple[str | int, ...], value: Any, nodes: int) -> tuple[int, int, float, float]:
        flow = self.mapping(path, value, FLOW_KEYS, required=FLOW_KEYS[:3])
        return (
            self.node((*path, "src"), flow["src"], nodes) if "src" in flow else 0,
            self.node((*path, "dst"), flow["dst"], nodes) if "dst" in flow else 0,
            self.number((*path, "bytes"), flow.get("bytes", 0)),
            self.number((*path, "start_s"), flow.get("start_s", 0)),
        )

    def latencies(self, value: Any, nodes: int) -> NDArray[np.float64]:
        """Reads one latency for all pairs, or a matrix with one for each pair."""
        import numpy as np

        if not isinstance(value, list):
            return np.full((nodes, nodes), self.number(("latency_s",), value))
        if len(value) != nodes or any(not isinstance(row, list) or len(row) != nodes for row in value):
            shape = f"must be a number, or {nodes} lists of {nodes} numbers, one for each pair of nodes"
            self.problems.wrong(("latency_s",), value, shape)
            return np.zeros((nodes, nodes))
        pairs = [[self.number(("latency_s", i, j), x) for j, x in enumerate(row)] for i, row in enumerate(value)]
        return np.array(pairs, dtype=np.float64).reshape(nodes, nodes)

    def grid(self, top: dict[str, Any], sharing: Any) -> float | None:
        grid_s = top.get("grid_s")
        if grid_s is None:
            return None
        if sharing != "fair":
            self.problems.wrong(("grid_s",), grid_s, "is for `fair` sharing; leave it out")
        if self.number(("grid_s",), grid_s) == 0:
            self.problems.wrong(("grid_s",), grid_s, "must be > 0; leave it out to be exact")
        return _as_float(grid_s)

    def passable(
        self, rows: list[tuple[int, int, float, float]], up: NDArray[np.float64], down: NDArray[np.float64]
    ) -> None:
        """Checks that every flow with bytes has bandwidth at both ends."""
        for i, (src, dst, size, _) in enumerate(rows):
            for node, key, rates in ((src, "up", up), (dst, "down", down)):
                if size > 0 and rates[node] == 0:
                    rule = f"would never arrive, since nodes.{node}.{key} is 0; raise it, or send 0 bytes"
                    self.problems.wrong(("flows", i, "bytes"), size, rule)

    def refuse(self, source: str) -> None:
        """Raises all problems as one `UserError`, of very many only the first ones."""
        lines = self.problems.lines
        if len(lines) > MOST_LINES:
            # A generated file may be wrong in every one of a million flows.
            lines[MOST_LINES:] = [f"... and {len(lines) - MOST_LINES} more problems of this kind"]
        self.problems.refuse(source)


def _as_float(value: Any) -> float:
    """Returns a JSON number as float, NaN for anything else; JSON integers may exceed the float range."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return math.nan
    try:
        return float(value)
    except OverflowError:
        return math.nan
