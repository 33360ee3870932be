"""Own strategies: imported only when allowed, found beside the scenario, recorded with their fingerprint."""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path
from typing import Any

import pytest

from p2p.config.errors import UserError
from scenarios.cli.main import main
from scenarios.loading.load import dump_scenario, load_scenario, parse_scenario

SCENARIO = """
name: own
rounds: 1
clients: 4
data: digits
model: linear
protocol: {kind: "MODULE:Ring", train_per_round: 3, hops: 2}
"""
MODULE = """
from __future__ import annotations
from dataclasses import dataclass
from typing import Annotated
from annotated_types import Ge
from nodes.protocols.round_rules import RoundRules

@dataclass(frozen=True, slots=True, kw_only=True)
class Ring(RoundRules):
    hops: Annotated[int, Ge(1)] = 1

    def plan_round(self, context):
        raise ZeroDivisionError("no plan")

    def take_part(self, client, assignment):
        yield

@dataclass(frozen=True)
class Hollow:
    pass

class Loose:
    pass
"""


def write(folder: Path, module: str, text: str = MODULE) -> Path:
    """A scenario with its plug-in beside it; each test names its module differently."""
    (folder / f"{module}.py").write_text(text)
    path = folder / "own.yaml"
    path.write_text(SCENARIO.replace("MODULE", module))
    return path


def problem_of(path: Path, **options: Any) -> str:
    """The only problem of a file."""
    with pytest.raises(UserError) as caught:
        load_scenario(path, **options)
    (line,) = caught.value.problems
    return line


def test_plugins_need_leave(tmp_path: Path) -> None:
    """Without the flag nothing is imported, and the cure names it."""
    path = write(tmp_path, "plug_closed")
    line = problem_of(path)
    assert line == "protocol.kind = plug_closed:Ring: would run code of yours; add --allow-plugins if you trust it"
    assert "plug_closed" not in sys.modules


def test_a_plugin_is_read_like_any_strategy(tmp_path: Path) -> None:
    """Its fields are keys, its file's fingerprint is kept, and the search path is as before."""
    path = write(tmp_path, "plug_open")
    before = list(sys.path)
    scenario = load_scenario(path, allow_plugins=True)
    assert sys.path == before
    assert type(scenario.protocol).__name__ == "Ring"
    assert getattr(scenario.protocol, "hops") == 2  # noqa: B009 - not an attribute of the built-in protocols
    digest = hashlib.sha256((tmp_path / "plug_open.py").read_bytes()).hexdigest()
    assert scenario.plugins == {"plug_open:Ring": digest}
    again = parse_scenario(dump_scenario(scenario), folder=tmp_path, allow_plugins=True)
    assert again == scenario


def test_a_plugin_s_keys_are_checked(tmp_path: Path) -> None:
    """Bad values and impossible combinations are told as for any other."""
    path = write(tmp_path, "plug_keys")
    assert problem_of(path, allow_plugins=True, overrides=["protocol.hops=0"]) == "protocol.hops = 0: must be >= 1"
    line = problem_of(path, allow_plugins=True, overrides=["protocol.train_per_round=9"])
    assert line.startswith("protocol.train_per_round = 9: must be <= clients, which is 4")


@pytest.mark.parametrize(
    ("module", "text", "kind", "expected"),
    [
        ("plug_a", "raise SystemExit(3)", "plug_a:Ring", "the module fails on import (SystemExit: 3)"),
        ("plug_b", "1/0", "plug_b:Ring", "the module fails on import (ZeroDivisionError: division by zero)"),
        ("plug_c", "def (", "plug_c:Ring", "the module fails on import (SyntaxError"),
        ("plug_d", "import nowhere_to_be_found", "plug_d:Ring", "the module needs `nowhere_to_be_found`"),
        ("plug_e", MODULE, "plug_e:Rong", "has no `Rong`; check the name"),
        ("plug_f", MODULE, "plug_f:Loose", "must be a dataclass; its fields are the keys of the scenario"),
        ("plug_g", MODULE, "plug_h:Ring", "there is no module `plug_h`; put plug_h.py into"),
        ("plug_k", MODULE, "plug_k:Hollow", "has no `plan_round`, `take_part`, `cohort_size`"),
        ("plug_i", MODULE, "os:system", "must be a dataclass"),
        ("plug_j", MODULE, "plug_j:__import__('os')", "is not a plug-in; write `module:Class`"),
    ],
)
def test_what_goes_wrong_in_a_plugin_is_told(tmp_path: Path, module: str, text: str, kind: str, expected: str) -> None:
    """A plug-in's mistake never becomes a traceback."""
    path = write(tmp_path, module, text)
    line = problem_of(path, allow_plugins=True, overrides=[f'protocol.kind="{kind}"'])
    assert line.startswith(f"protocol.kind = {kind}: ")
    assert expected in line


def test_a_failing_constructor_is_told(tmp_path: Path) -> None:
    """Whatever it raises."""
    key = "    hops: Annotated[int, Ge(1)] = 1\n"
    text = MODULE.replace(key, key + "    def __post_init__(self) -> None:\n        raise KeyError('x')\n")
    path = write(tmp_path, "plug_post", text)
    assert "the plug-in cannot be set up (KeyError: 'x')" in problem_of(path, allow_plugins=True)


def test_two_scenarios_may_have_modules_of_one_name(tmp_path: Path) -> None:
    """Each gets its own."""
    for folder, default in (("one", 5), ("two", 6)):
        (tmp_path / folder).mkdir()
        path = write(tmp_path / folder, "plug_twin", MODULE.replace("= 1", f"= {default}"))
        path.write_text(path.read_text().replace(", hops: 2", ""))
        scenario = load_scenario(path, allow_plugins=True)
        assert getattr(scenario.protocol, "hops") == default  # noqa: B009


FAULTY = """
from dataclasses import dataclass
from nodes.datasets.client_split import Iid
from nodes.datasets.dataset import SplitChoice
from nodes.datasets.registry import Synthetic

@dataclass(frozen=True)
class Hollow:
    pass

@dataclass(frozen=True)
class Failing:
    def build(self, shape, classes):
        return 1 / 0

@dataclass(frozen=True)
class WrongType:
    def build(self, shape, classes):
        return "a module"

@dataclass(frozen=True)
class NoData:
    split: SplitChoice = Iid()
    def load(self, data_dir, seed):
        return None

@dataclass(frozen=True)
class Moody(Synthetic):
    def records(self):
        raise OSError("gone")
"""
BROKEN = [
    ("check", "model", "kind", "Hollow", "has no `build`, which a plug-in needs here; add what is missing"),
    ("check", "data", "name", "Hollow", "has no `load`, `split`, which a plug-in needs here"),
    ("check", "data", "name", "Moody", "fails (OSError: gone) in "),
    ("run", "model", "kind", "Failing", "fails (ZeroDivisionError: division by zero) in "),
    ("run", "model", "kind", "WrongType", "fails (AttributeError: "),
    ("run", "data", "name", "NoData", "fails (AttributeError: "),
    ("plan", "data", "name", "NoData", "fails (AttributeError: "),
    ("run", "protocol", "kind", "Ring", "fails (ZeroDivisionError: no plan) in "),
]


@pytest.mark.slow
@pytest.mark.parametrize(("command", "part", "key", "name", "expected"), BROKEN)
def test_a_plugin_that_breaks_its_contract_is_one_message(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str, part: str, key: str, name: str, expected: str
) -> None:
    """It names the plug-in and the line; exit code 2."""
    (tmp_path / "plug_broken.py").write_text(MODULE + FAULTY)
    more = "train_per_round: 3" if part == "protocol" else ""
    entry = f'{part}={{{key}: "plug_broken:{name}"{", " if more else ""}{more}}}'
    scenario = tmp_path / "own.yaml"
    scenario.write_text(TINY)
    extra = ["--out", str(tmp_path / "out"), "--quiet"] if command == "run" else []
    assert main([command, str(scenario), "--allow-plugins", "--set", entry, *extra]) == 2
    told = capsys.readouterr().err
    assert expected in told
    assert "Traceback" not in told


TINY = """
name: own
rounds: 1
clients: 4
data: {name: synthetic, samples: 40, test_samples: 10, features: 3, classes: 2}
model: linear
protocol: {kind: gossip, train_per_round: 3, exchange_with: 1}
"""
