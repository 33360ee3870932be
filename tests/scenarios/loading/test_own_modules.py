"""Own torch modules are models without ceremony: keys from the constructor, counted, checked; own objectives too."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from p2p.config.errors import UserError
from scenarios.cli.main import main
from scenarios.loading.load import dump_scenario, load_scenario, parse_scenario

SCENARIO = """
name: own
rounds: 2
clients: 4
data: {name: synthetic, samples: 40, test_samples: 10, features: 3, classes: 2}
model: {kind: "own_nets:Net", width: 5}
protocol: {kind: gossip, train_per_round: 3, exchange_with: 1}
"""
MODULE = """
from dataclasses import dataclass
import torch
from torch import nn
from nodes.learning.objectives import Terms

class Net(nn.Module):
    '''Two dense layers.'''

    def __init__(self, shape, classes, width: int = 7, gain=1.5):
        super().__init__()
        self.first, self.second, self.gain = nn.Linear(shape[0], width), nn.Linear(width, classes), gain

    def forward(self, records):
        return self.second(self.first(records).relu() * self.gain)

@dataclass(frozen=True, kw_only=True)
class Squares:
    weight: float = 1.0

    def terms(self, records):
        return Terms(lambda scores, targets: self.weight * (scores - targets))

@dataclass(frozen=True)
class Aimless:
    pass

class Fixed(nn.Module):
    def __init__(self):
        super().__init__()
        self.only = nn.Linear(3, 2)

    def forward(self, records):
        return self.only(records)

class Normed(Fixed):
    def __init__(self, **options):
        super().__init__()
        self.norm = nn.BatchNorm1d(2, **options)

class Stateless(Normed):
    def __init__(self):
        super().__init__(track_running_stats=False)

class Wide(Fixed):
    def __init__(self, classes):
        super().__init__()
        self.only = nn.Linear(3, classes + 1)

class Empty(nn.Module):
    def forward(self, records):
        return records[:, :2]

class Noisy(Fixed):
    def forward(self, records):
        return nn.functional.dropout(self.only(records), 0.5, training=True)

class Broken(Fixed):
    def forward(self, records):
        raise KeyError("lost")
"""


@pytest.fixture
def own(tmp_path: Path) -> Path:
    """A scenario with its module beside it."""
    (tmp_path / "own_nets.py").write_text(MODULE)
    path = tmp_path / "own.yaml"
    path.write_text(SCENARIO)
    return path


@pytest.mark.slow
def test_the_arguments_are_keys(own: Path) -> None:
    """Those from the data are given, the others have the constructor's types and defaults; the dump loads again."""
    scenario = load_scenario(own, allow_plugins=True)
    assert scenario.model.parameters((3,), 2) == 4 * 5 + 6 * 2
    text = dump_scenario(scenario)
    assert "kind: own_nets:Net" in text
    assert "gain: 1.5" in text
    assert parse_scenario(text, folder=own.parent, allow_plugins=True) == scenario
    fixed = load_scenario(own, ["model=own_nets:Fixed"], allow_plugins=True)
    assert fixed.model.parameters((3,), 2) == 8


@pytest.mark.slow
@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        ("{kind: own_nets:Net, width: wide}", "model.width = wide: must be"),
        ("{kind: own_nets:Net, wdth: 3}", "model.wdth: unknown key; did you mean `width`?"),
        ("own_nets:Normed", "model: keeps state beside its parameters (such as BatchNorm); use GroupNorm or LayerNorm"),
        (
            "own_nets:Stateless",
            "model: mixes the records of a batch (BatchNorm), which padding would change; use Group",
        ),
        ("own_nets:Wide", "model: gives [2, 3] for 2 records; it must give 2 scores each"),
        ("own_nets:Empty", "model: has no parameters, so nothing can be learned"),
        ("own_nets:Noisy", "model: draws random numbers of its own (Dropout), so no run could be repeated"),
        ("own_nets:Squares", "model = own_nets:Squares: has no `build`, which a plug-in needs here"),
        ("own_nets:Broken", "plug-in own_nets:Broken: fails (KeyError: 'lost') in "),
    ],
)
def test_check_refuses_what_cannot_be_trained(own: Path, entry: str, expected: str) -> None:
    """With the reason and a cure, before anything runs."""
    with pytest.raises(UserError) as caught:
        load_scenario(own, [f"model={entry}"], allow_plugins=True)
    assert expected in str(caught.value)


@pytest.mark.slow
@pytest.mark.parametrize("objective", ["cross_entropy", "fednore_both", "{kind: own_nets:Squares, weight: 0.5}"])
def test_it_runs_and_repeats(own: Path, objective: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Equal seeds give equal digests, with an objective too; the plan knows the size."""
    digests = []
    for attempt in ("one", "two"):
        out = own.parent / attempt
        command = ["run", str(own), "--allow-plugins", "--quiet", "--set", f"objective={objective}", "--out", str(out)]
        assert main(command) == 0
        digests.append(json.loads((out / "summary.json").read_text())["digest"])
    assert digests[0] == digests[1]
    capsys.readouterr()
    assert main(["plan", str(own), "--allow-plugins", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["model_size"] == 32


@pytest.mark.slow
def test_an_own_objective_needs_its_verb(own: Path) -> None:
    """And is found beside the scenario like any plug-in."""
    with pytest.raises(UserError, match=r"objective = own_nets:Aimless: has no `terms`, which a plug-in needs here"):
        load_scenario(own, ["objective=own_nets:Aimless"], allow_plugins=True)
