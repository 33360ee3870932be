"""The files of `peerveil new NAME --protocol`: a protocol plug-in, a scenario that uses it, and its test."""

from __future__ import annotations

import keyword
import re
from importlib.util import find_spec
from pathlib import Path
from string import Template

from p2p.config.errors import UserError
from scenarios.loading.problems import shown


def protocol_files(target: Path) -> dict[Path, str]:
    """Returns the texts of the three files by path, all in the folder of `target`.

    Raises:
        UserError: the name is not valid for a Python module, or an installed module has it.
    """
    module = re.sub(r"\W", "_", target.stem, flags=re.ASCII)
    if not module.isidentifier() or keyword.iskeyword(module) or module.startswith("_"):
        raise UserError(f"{shown(target.stem)}: must start with a letter, to name a Python module")
    # The scenario's folder comes last on the import path, so an installed module would shadow the plug-in.
    if find_spec(module) is not None:
        raise UserError(f"{shown(module)}: is the name of an installed module; choose another name")
    names = {
        "name": target.stem,
        "file": target.name,
        "module": module,
        "cls": "".join(part.capitalize() for part in module.split("_")),
    }
    texts = {target: SCENARIO, target.parent / f"{module}.py": PROTOCOL, target.parent / f"test_{module}.py": TEST}
    return {path: Template(text).substitute(names) for path, text in texts.items()}


SCENARIO = """\
# A scenario with a protocol of its own: ${module}.py, beside this file.
# Run it with `peerveil run ${file} --allow-plugins`; `peerveil new OTHER` writes a file with all keys.
name: ${name}
question: How does my own protocol do?
rounds: 3
clients: 12
data: {name: synthetic, samples: 600, features: 10, classes: 4}
model: {kind: mlp, hidden: [16]}
protocol: {kind: "${module}:${cls}", train_per_round: 6, hops: 2}
"""

PROTOCOL = '''\
"""A custom protocol: members form a ring, and each receives updates from its predecessors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np
from annotated_types import Ge

from nodes.protocols.api import Assignment, Client, Disclosure, RoundContext, RoundPlan, RoundRules, Steps, stream


@dataclass(frozen=True, slots=True, kw_only=True)
class ${cls}(RoundRules):
    """Each member sends its update to the next `hops` members of a ring that is redrawn every round.

    Fields are keys of the scenario's `protocol` section; those that all protocols share come from RoundRules.

    Attributes:
        hops: how many members ahead an update travels
        collect: the final model is one random client's, or the mean of all
    """

    hops: Annotated[int, Ge(1)] = 1
    collect: Literal["random", "mean"] = "random"

    def plan_round(self, context: RoundContext) -> RoundPlan:
        """Plans the round's edges at the proxy. Draw from a named stream, never from a global generator."""
        ring = stream(context.seed, "ring", context.round_number).permutation(context.members)
        hops = min(self.hops, len(ring) - 1)
        edges = [np.column_stack([ring, np.roll(ring, -hop)]) for hop in range(1, hops + 1)]
        return RoundPlan({"update": np.concatenate(edges)})

    def disclosure(self) -> Disclosure:
        """Declares what leaves a client: updates, which travel on inside models. Without this no epsilon is proved.

        `sends_first`: below, a member publishes its update before it averages any of the round.
        """
        return Disclosure(spread="by_path", sends_first=True)

    def take_part(self, client: Client, assignment: Assignment) -> Steps:
        """Runs a member's round: train, release one noisy update, send it, average the updates that arrive in time."""
        deadline_s = client.deadline_s(assignment, self.deadline)
        own = None
        if (yield from client.train(assignment, deadline_s)):
            own = client.release(assignment)
            client.publish(assignment, own, deadline_s)
        received = yield from client.collect(assignment, "update", deadline_s)
        client.average(assignment, received, own if self.include_own else None)
'''

TEST = '''\
"""The protocol runs, and sends exactly what it should. Run with `pytest test_${module}.py`."""

from __future__ import annotations

import json
from pathlib import Path

from scenarios.cli.main import main

SCENARIO = Path(__file__).with_name("${file}")


def test_a_run_sends_hops_updates_per_member(tmp_path: Path) -> None:
    """Three rounds, six members, two hops: 36 updates, all of them delivered."""
    out = tmp_path / "run"
    assert main(["run", str(SCENARIO), "--allow-plugins", "--quiet", "--out", str(out)]) == 0
    summary = json.loads((out / "summary.json").read_text())
    assert summary["rounds_completed"] == 3
    assert summary["messages"]["by_kind"]["update"] == 3 * 6 * 2
    assert summary["messages"]["delivered"] == summary["messages"]["sent"]


def test_a_bad_key_is_reported(capsys) -> None:
    """The fields of the dataclass are checked like every other key."""
    assert main(["check", str(SCENARIO), "--allow-plugins", "--set", "protocol.hops=0"]) == 2
    assert "protocol.hops = 0: must be >= 1" in capsys.readouterr().err
'''
