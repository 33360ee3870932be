"""Plain values to dataclasses: what is accepted, and how each mistake is told."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from annotated_types import Ge, Gt

from p2p.config.choices import Choice
from p2p.config.distributions import Constant, DelayPerPair, Distribution, Drawn, Lognormal, RatePerNode, Uniform
from p2p.config.file_paths import FilePath
from p2p.config.units import PositiveSeconds, Rate
from scenarios.loading.plugins import Plugins
from scenarios.loading.problems import Problems
from scenarios.loading.reader import INVALID, Reader


@dataclass(frozen=True, slots=True, kw_only=True)
class Flat:
    norm: Annotated[float, Gt(0)] = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Nothing:
    pass


@dataclass(frozen=True, slots=True, kw_only=True)
class Strict:
    level: int

    def __post_init__(self) -> None:
        if self.level > 9:
            raise ValueError(f"level = {self.level}: must be <= 9; lower it")
        if self.level == 0:
            raise ValueError("makes no sense; use `none`")


CLIPS: dict[str, type] = {"flat": Flat, "none": Nothing, "strict": Strict}
Clip = Annotated[Flat | Nothing | Strict, Choice(CLIPS)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A part.

    Attributes:
        count: how many
    """

    count: Annotated[int, Ge(1)]
    wait: PositiveSeconds = 1.0
    limit: Rate | None = None
    widths: tuple[Annotated[int, Ge(1)], ...] = ()
    sealed: Literal[True, "sizes", False] = True
    clients: Annotated[int, Ge(1)] | Literal["all"] = "all"
    by: Literal["one", "none"] | None = None
    clip: Clip = field(default_factory=Flat)
    other: Clip | None = None
    inner: Flat | None = None
    faults: tuple[Clip, ...] = ()
    uplink: RatePerNode = field(default_factory=lambda: Constant(value=1.0))
    latency: DelayPerPair = field(default_factory=lambda: Constant(value=1.0))
    share: Annotated[Distribution, Drawn("", low=0.0, high=1.0)] = field(default_factory=lambda: Constant(value=0.5))
    file: FilePath | None = None


def read(folder: Path = Path("."), **keys: Any) -> tuple[Any, list[str]]:
    """Reads a Part with a good count unless given."""
    problems = Problems()
    part = Reader(folder, problems, Plugins(False)).read(Part, {"count": 1, **keys}, ("part",))
    return part, problems.lines


GOOD: list[tuple[dict[str, Any], str, Any]] = [
    ({"wait": "40 ms"}, "wait", 0.04),
    ({"wait": 3}, "wait", 3.0),
    ({"limit": "8 Mbit/s"}, "limit", 1e6),
    ({"limit": "none"}, "limit", None),
    ({"limit": None}, "limit", None),
    ({"widths": [3, 4]}, "widths", (3, 4)),
    ({"sealed": False}, "sealed", False),
    ({"sealed": "sizes"}, "sealed", "sizes"),
    ({"clients": 7}, "clients", 7),
    ({"clients": "all"}, "clients", "all"),
    ({"by": "none"}, "by", "none"),
    ({"by": None}, "by", None),
    ({"clip": "none"}, "clip", Nothing()),
    ({"clip": {"kind": "flat", "norm": 2}}, "clip", Flat(norm=2.0)),
    ({"other": "none"}, "other", Nothing()),
    ({"other": None}, "other", None),
    ({"inner": {"norm": 2.5}}, "inner", Flat(norm=2.5)),
    ({"inner": "none"}, "inner", None),
    ({"faults": ["none", {"kind": "strict", "level": 2}]}, "faults", (Nothing(), Strict(level=2))),
    ({"uplink": "1 MB/s"}, "uplink", Constant(value=1e6)),
    ({"uplink": {"kind": "lognormal", "median": "1 kB/s", "sigma": 1}}, "uplink", Lognormal(median=1e3, sigma=1.0)),
    ({"latency": {"kind": "uniform", "low": "20 ms", "high": 1}}, "latency", Uniform(low=0.02, high=1.0)),
]


@pytest.mark.parametrize(("keys", "name", "expected"), GOOD)
def test_good_values_are_read(keys: dict[str, Any], name: str, expected: Any) -> None:
    """Quantities, words, choices and lists become what the field says."""
    part, problems = read(**keys)
    assert problems == []
    assert getattr(part, name) == expected
    assert type(getattr(part, name)) is type(expected)


BAD: list[tuple[dict[str, Any], str]] = [
    ({"count": 0}, "part.count = 0: must be >= 1"),
    ({"count": "5"}, 'part.count = "5": must be a whole number'),
    ({"count": True}, "part.count = true: must be a whole number"),
    ({"count": 1.5}, "part.count = 1.5: must be a whole number"),
    ({"count": None}, "part.count = none: must be a whole number"),
    ({"count": 1e30}, "part.count = 1e+30: is too large; whole numbers have at most 18 digits"),
    ({"count": float("inf")}, "part.count = inf: must be a whole number"),
    ({"wait": 0}, "part.wait = 0: must be > 0"),
    ({"wait": "5 parsecs"}, "part.wait = 5 parsecs: has an unknown unit; use one of ns, us, ms, s, sec, min, h, d"),
    ({"wait": float("nan")}, "part.wait = nan: must be a finite number"),
    ({"wait": "soon"}, "part.wait = soon: is not a quantity; write for example `40 ms`"),
    ({"wait": [1]}, "part.wait = [1]: must be a quantity; write for example `40 ms`"),
    ({"widths": 3}, "part.widths = 3: must be a list; write for example `[1, 2]`"),
    ({"widths": [3, 0]}, "part.widths.1 = 0: must be >= 1"),
    ({"sealed": "maybe"}, "part.sealed = maybe: must be true, `sizes` or false"),
    ({"clients": 0}, "part.clients = 0: must be >= 1 or `all`"),
    ({"clients": "none"}, "part.clients = none: must be a whole number or `all`"),
    ({"clip": "flatt"}, "part.clip = flatt: unknown kind; did you mean `flat`?"),
    ({"clip": {"kind": "strict"}}, "part.clip.level: required key is missing; add it (it has no default)"),
    ({"clip": {"norm": 1}}, "part.clip.kind: required key is missing; kind is one of flat, none, strict"),
    ({"clip": 3}, "part.clip = 3: must be a mapping with `kind`; kind is one of flat, none, strict"),
    ({"clip": {"kind": ["x"]}}, "part.clip.kind = [x]: unknown kind; known are flat, none, strict"),
    ({"clip": {"kind": "flat", "nrm": 1}}, "part.clip.nrm: unknown key; did you mean `norm`?"),
    ({"clip": {"kind": "flat", "norm": 0}}, "part.clip.norm = 0: must be > 0"),
    ({"clip": {"kind": "flat", "norm": float("inf")}}, "part.clip.norm = inf: must be a finite number"),
    ({"clip": {"kind": "strict", "level": 10}}, "part.clip.level = 10: must be <= 9; lower it"),
    ({"clip": {"kind": "strict", "level": 0}}, "part.clip: makes no sense; use `none`"),
    ({"clip": "os:system"}, "part.clip = os:system: would run code of yours; add --allow-plugins if you trust it"),
    ({"clip": "a b:c"}, "part.clip = a b:c: is not a plug-in; write `module:Class`"),
    ({"inner": [1]}, "part.inner = [1]: must be a mapping; known keys are norm"),
    ({"faults": {}}, "part.faults = {}: must be a list; put it in [ ], or write a line with `- ` for each entry"),
    ({"faults": ["flat", "x"]}, "part.faults.1 = x: unknown kind; known are flat, none, strict"),
    ({"uplink": "uniform"}, "part.uplink = uniform: needs its numbers; write for example `{kind: uniform, ...}`"),
    ({"uplink": {"kind": "unifrom"}}, "part.uplink.kind = unifrom: unknown kind; did you mean `uniform`?"),
    ({"uplink": 0}, "part.uplink = 0: must be > 0"),
    (
        {"latency": {"kind": "uniform", "low": "2 s", "high": "1 s"}},
        "part.latency.high = 1: must be >= low, which is 2",
    ),
    ({"share": {"kind": "pareto", "minimum": 0.1, "shape": 2}}, "part.share: draws from 0.1 to inf"),
    ({"file": "nowhere.csv"}, "part.file = nowhere.csv: no such file; it is looked for in"),
    ({"file": 3}, "part.file = 3: must be the name of a file"),
    ({"cuont": 3}, "part.cuont: unknown key; did you mean `count`?"),
]


@pytest.mark.parametrize(("keys", "expected"), BAD, ids=[line[:40] for _, line in BAD])
def test_bad_values_are_told(keys: dict[str, Any], expected: str) -> None:
    """Each mistake gives one line with path, value, rule and cure."""
    part, problems = read(**keys)
    assert (part is INVALID) == ("unknown key" not in expected)
    assert len(problems) == 1
    assert problems[0].startswith(expected)


def test_all_problems_come_at_once() -> None:
    """Nothing stops at the first mistake."""
    _, problems = read(count=0, wait="x", uplink={"kind": "pareto", "minimum": -1, "shape": 0}, odd=1)
    assert [line.split()[0].rstrip(":") for line in problems] == [
        "part.odd",
        "part.count",
        "part.wait",
        "part.uplink.minimum",
        "part.uplink.shape",
    ]


def test_a_required_key_is_missed() -> None:
    """A missing key tells what it is for."""
    problems = Problems()
    Reader(Path("."), problems, Plugins(False)).read(Part, {}, ())
    assert problems.lines == ["count: required key is missing; add it (how many)"]


def test_control_characters_are_never_echoed() -> None:
    """A terminal must not obey a scenario file."""
    odd: dict[str, Any] = {"\x07key\n": 1, "clip": "\x1b[31m\u202e"}
    _, problems = read(Path("."), **odd)
    assert len(problems) == 2
    assert all(line.isprintable() for line in problems)


def test_files_are_found_beside_the_scenario(tmp_path: Path) -> None:
    """A relative path is taken from the scenario's folder and made absolute."""
    (tmp_path / "x.csv").write_text("a\n1\n")
    part, problems = read(tmp_path, file="x.csv")
    assert problems == []
    assert part.file == str(tmp_path / "x.csv")
