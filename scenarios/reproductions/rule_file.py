"""Rule files: the sweep of a result and the rule for its verdict, written before the runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from p2p.config.errors import UserError
from scenarios.loading.yaml_text import parse_yaml
from scenarios.sweeps.sweep_file import Sweep, parse_sweep, value_text

SIZES = ("reduced", "full")


@dataclass(frozen=True, slots=True)
class Rule:
    """How a result is run again, and when its claim counts as reproduced.

    Attributes:
        id: the result
        figure: what is compared: a figure of `runs.parquet`, or a path into `summary.json` such as `accuracy.max`
        sizes: for reduced and full, the keys of a sweep file
        parts: the statements, each with its kind
        printed: printed values beside cells: where (which cells) and value
        assumed: what the paper does not state, and how it was read
        unsaid: what the seeds do not say
        minutes: of one core at reduced size, estimated; cells that other rules share are not counted
    """

    id: str
    figure: str
    sizes: Mapping[str, Mapping[str, Any]]
    parts: Sequence[Mapping[str, Any]]
    printed: Sequence[Mapping[str, Any]]
    assumed: Sequence[str]
    unsaid: str
    minutes: float = 0.0

    def sweep(self, size: str, seeds: int | None) -> Sweep:
        """Returns the sweep of a size, with another number of seeds if asked for."""
        if size not in self.sizes:
            raise UserError(f"--size = {size}: {self.id} has only {', '.join(self.sizes)}")
        keys = {"name": f"reproduce-{self.id}-{size}", **self.sizes[size]} | ({} if seeds is None else {"seeds": seeds})
        lines = [f"{key}: {value_text(value)}" for key, value in keys.items()]
        return parse_sweep("\n".join(lines), self.id, _folder())


@cache
def rules() -> dict[str, Rule]:
    """Returns all rules by id of their result."""
    found = {}
    for path in sorted(_folder().glob("S*/*.yaml"), key=lambda path: path.stem):
        content = parse_yaml(path.read_text(encoding="utf-8"))
        found[path.stem] = Rule(
            path.stem,
            content.get("figure", "accuracy"),
            {size: content[size] for size in SIZES if size in content},
            content["rule"],
            content.get("printed", []),
            content.get("assumed", []),
            content.get("unsaid", ""),
            content["minutes"],
        )
    return found


def _folder() -> Path:
    return Path(str(files("scenarios.reproductions"))) / "rules"
