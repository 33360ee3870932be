"""Finds the previous state of a run to resume: none, a checkpoint, or a finished run."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from p2p.config.errors import UserError
from scenarios.loading.load import dump_scenario
from scenarios.run_folder.reader import finished_summary
from scenarios.run_folder.writer import check_out, folder_name
from scenarios.running.checkpoint import FILE, Checkpoint, read_checkpoint
from scenarios.schema import Scenario

INCARNATIONS_PER_RESUME = 1 << 16
"""Upper bound on the recoveries of a node between two resumes.

Each attempt numbers its incarnations from a multiple of this, so that no attempt reuses an earlier one's keys.
"""
_ABSENT = "(nothing)"
_FIRST_TRACES = {"checkpoint", ".scenario.yaml.part"}
"""Files of a run that was killed before it had written its scenario."""


@dataclass(frozen=True, slots=True)
class PreviousRun:
    """The state of a run before this attempt.

    Attributes:
        path: its folder; None if there is none yet.
        checkpoint: where to continue; at round 0 if the run has to start over.
        summary: the summary of a finished run, otherwise None.
    """

    path: Path | None
    checkpoint: Checkpoint
    summary: dict[str, Any] | None = None

    @property
    def first_incarnation(self) -> int:
        """The first incarnation number of endpoints, above those of all earlier attempts."""
        return self.checkpoint.resumes * INCARNATIONS_PER_RESUME


def check_resumable(scenario: Scenario) -> None:
    """Rejects resumption of runs whose noise is derived from keys: a resumed run draws other keys.

    Raises:
        UserError: the shares are pairwise.
    """
    if scenario.noise_shares is not None and scenario.noise_shares.share_as == "pairwise":
        rule = "a resumed run has other keys, and the noise follows from them; run it anew, or use `seed`"
        raise UserError(f"noise_shares.share_as = pairwise: {rule}")


def fresh_run(scenario: Scenario) -> PreviousRun:
    """Returns the state of a run that starts from the beginning."""
    return PreviousRun(None, Checkpoint(scenario_sha256=_fingerprint(scenario)))


def find_previous_run(scenario: Scenario, out: Path | None) -> PreviousRun:
    """Returns the run of this scenario in `out`, or its newest one in `runs/`, unfinished ones first.

    Raises:
        UserError: `out` holds another run or other files, or an unusable checkpoint.
    """
    found = _newest(scenario) if out is None else out
    if found is None or not found.is_dir() or not any(found.iterdir()):
        check_out(out)
        return fresh_run(scenario)
    # Killed within its first moments: the folder is reused and the run starts over.
    if {path.name for path in found.iterdir()} <= _FIRST_TRACES:
        return PreviousRun(found, fresh_run(scenario).checkpoint)
    if not (found / "scenario.yaml").is_file():
        raise UserError(f"--out = {found}: holds no run to resume; name the folder of one, or leave --resume out")
    _check_same(scenario, found)
    summary = finished_summary(found)
    if summary is not None:
        return PreviousRun(found, fresh_run(scenario).checkpoint, summary)
    checkpoint = read_checkpoint(found) or fresh_run(scenario).checkpoint
    # Equal keys do not suffice: a plug-in's code may have changed, and the fingerprint covers it.
    if checkpoint.scenario_sha256 != _fingerprint(scenario):
        raise UserError(f"--resume = {found / FILE}: belongs to another scenario or plug-in; start the run anew")
    return PreviousRun(found, replace(checkpoint, resumes=checkpoint.resumes + 1))


def _newest(scenario: Scenario) -> Path | None:
    """Returns the most recently written unfinished run of exactly this scenario, else a finished one."""
    name, keys = folder_name(scenario.name, scenario.seed), _keys(dump_scenario(scenario))
    folders = [path for path in Path("runs").glob(f"{name}*") if (path / "scenario.yaml").is_file()]
    same = [path for path in folders if _difference(_stored(path), keys) is None]
    # Unfinished before finished, then the most recent.
    return max(same, key=lambda path: (finished_summary(path) is None, _changed_s(path)), default=None)


def _changed_s(path: Path) -> float:
    # A checkpoint is replaced inside its subfolder, which does not change the run folder's own time.
    return max(file.stat().st_mtime for file in (path, path / FILE) if file.exists())


def _fingerprint(scenario: Scenario) -> str:
    content = [dump_scenario(scenario), sorted(scenario.plugins.items())]
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()


def _check_same(scenario: Scenario, path: Path) -> None:
    differs = _difference(_stored(path), _keys(dump_scenario(scenario)))
    if differs is not None:
        key, there, here = differs
        # Every key is written out, defaults too: an absent one is new in the scenario, or in peerveil.
        if there == _ABSENT:
            why = "has no such key; it was begun with another scenario, or by another version of peerveil"
            raise UserError(f"{key} = {here}: the run in {path} {why}; resume with those, or name another --out")
        cure = "resume with the scenario as it was, or name another --out"
        raise UserError(f"{key} = {here}: the run in {path} has {there}; {cure}")


def _stored(path: Path) -> dict[str, Any]:
    try:
        return _keys((path / "scenario.yaml").read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else "is no YAML"
        raise UserError(f"--resume = {path / 'scenario.yaml'}: cannot be read ({why}); start the run anew") from error


def _keys(text: str) -> dict[str, Any]:
    from scenarios.loading.yaml_text import parse_yaml

    content = parse_yaml(text)
    return content if isinstance(content, dict) else {}


def _difference(there: Any, here: Any, key: str = "") -> tuple[str, Any, Any] | None:
    """Returns the first key whose values differ, with both values; None if all are equal."""
    if isinstance(there, Mapping) and isinstance(here, Mapping):
        # In the order of the scenario at hand, then keys that only the stored one has.
        for name in (*here, *(name for name in there if name not in here)):
            inner = f"{key}.{name}" if key else str(name)
            found = _difference(there.get(name, _ABSENT), here.get(name, _ABSENT), inner)
            if found is not None:
                return found
        return None
    return None if there == here else (key or "scenario", there, here)
