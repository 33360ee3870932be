"""Run data for reports, from finished, killed and damaged run folders, with notes on missing parts."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np

from p2p.config.errors import UserError
from p2p.log import records
from p2p.log.column_table import Table
from p2p.log.log import Log
from scenarios.metrics.communication.roles import Roles
from scenarios.metrics.headline.run_facts import RunFacts
from scenarios.metrics.privacy.view_labels import RELATION
from scenarios.run_folder import arrow_tables
from scenarios.run_folder.arrow_arrays import from_numpy
from scenarios.run_folder.parquet_files import read_table
from scenarios.run_folder.reader import StoredRun, open_run
from scenarios.run_folder.summary import summarise
from scenarios.run_folder.table_checks import NEVER_NULL

if TYPE_CHECKING:
    import pyarrow as pa

KILLED = "killed"


@dataclass(frozen=True, slots=True)
class RunData:
    """The data of one run for a report.

    Attributes:
        summary: the folder's summary, or one computed from the completed rounds of a killed run.
        notes: messages to the reader about missing or damaged parts.
        damage: those of them that name a damaged table.
        faults: rows `(start_s, end_s, kind, who)`.
    """

    run: StoredRun
    summary: dict[str, Any]
    log: Log
    roles: Roles
    notes: tuple[str, ...]
    faults: tuple[tuple[float, float, str, str], ...]
    damage: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The scenario's name."""
        return str(self.summary.get("scenario", "run"))

    @property
    def target_accuracy(self) -> float | None:
        """The accuracy for which the cost is reported."""
        target = (self.summary["headline"].get("to_target") or {}).get("accuracy")
        return None if target is None else float(target)

    @property
    def protocol(self) -> Mapping[str, Any]:
        """The protocol section of the resolved scenario; empty where it cannot be read."""
        section = self.run.scenario.get("protocol") if isinstance(self.run.scenario, dict) else None
        return section if isinstance(section, dict) else {}

    def label(self, node: int) -> str:
        """Returns the display name of a node."""
        role = self.roles.role(node)
        return f"{role} {node}" if role in {"client", "relay", "intruder"} else role


def read_run_data(path: Path) -> RunData:
    """Reads a run folder; raises a `UserError` only if there is nothing to show."""
    run = open_run(path)
    log, damage = _read_log(run)
    notes = list(damage)
    roles = _roles(run)
    faults = _faults(run, max((float(record["end_s"]) for record in log.rounds), default=0.0), notes)
    if run.summary is None:
        notes.insert(0, f"This run was killed; the figures are those of the {len(log.rounds)} rounds it had finished.")
        return RunData(run, _prefix_summary(run, log), log, roles, tuple(notes), faults, tuple(damage))
    if not isinstance(run.summary.get("headline"), dict):
        raise UserError(f"RUN = {path}: its summary.json has no headline; give a folder that `peerveil run` wrote")
    if str(run.summary.get("stopped_because", "")).startswith("interrupted"):
        notes.insert(0, f"This run was interrupted after {run.summary.get('rounds_completed')} rounds.")
    return RunData(run, run.summary, log, roles, tuple(notes), faults, tuple(damage))


def _read_log(run: StoredRun) -> tuple[Log, list[str]]:
    """Reads every readable table; each unreadable one becomes an empty table and a note."""
    import pyarrow as pa

    log, notes = Log(), []
    for name in arrow_tables.TABLES:
        try:
            arrow = run.table(name)
            if name == "rounds":
                log.rounds = arrow_tables.rounds_from_arrow(arrow)
                continue
            full, missing = _with_every_column(arrow, getattr(log, name))
            # One table at a time, so that a damaged one takes no other with it.
            setattr(log, name, arrow_tables.from_arrow(name, full))
            if missing:
                notes.append(f"{name}.parquet is of another version: it has no {', '.join(missing)}.")
        # A report of a damaged folder shows what is left instead of failing.
        except (UserError, KeyError, ValueError, TypeError, pa.ArrowException) as error:
            notes.append(f"{name}.parquet is {_trouble(run, name, error)}; what it would show is left out.")
    return log, notes


def _trouble(run: StoredRun, name: str, error: Exception) -> str:
    if not _stored(run, name):
        return "missing"
    # The reader's own message names the file and a cure, which the note does itself; its cause is what is wrong.
    details = str(error.__cause__ or error).strip("'\"").splitlines()
    return f"damaged or of another version ({details[0] if details else type(error).__name__})"


def _stored(run: StoredRun, name: str) -> bool:
    return (run.path / f"{name}.parquet").exists() or any(run.path.glob(f"parts/{name}-*.parquet"))


def _with_every_column(arrow: pa.Table, empty: Table) -> tuple[pa.Table, list[str]]:
    """Adds missing columns with neutral values, for folders of other versions; returns the table and their names."""

    missing = [column for column in empty.names if column not in arrow.column_names]
    if NEVER_NULL.intersection(missing):
        raise KeyError(f"has no {min(NEVER_NULL.intersection(missing))}")
    for column in missing:
        # Without relays the origin is the sender, and the destination the receiver.
        substitute = {"origin": "sender", "destination": "receiver"}.get(column)
        kind = empty[column].dtype
        neutral = np.nan if kind.kind == "f" else (column == "used" if kind.kind == "b" else records.NO_NODE)
        values = arrow.column(substitute) if substitute else from_numpy(np.full(arrow.num_rows, neutral, dtype=kind))
        arrow = arrow.append_column(column, values)
    return arrow, missing


def _roles(run: StoredRun) -> Roles:
    # A killed run has no summary, but its scenario names the number of clients.
    nodes = (run.summary or {}).get("nodes") or run.scenario
    if not isinstance(nodes, dict) or not isinstance(nodes.get("clients"), int):
        raise UserError(f"RUN = {run.path}: says nowhere how many clients it had; run the scenario again")
    return Roles.from_json(nodes)


def _faults(run: StoredRun, last_s: float, notes: list[str]) -> tuple[tuple[float, float, str, str], ...]:
    """Returns the recorded faults; one without an end lasts until `last_s`."""
    if not (run.path / "faults.parquet").exists():
        return ()
    import pyarrow as pa

    try:
        rows = read_table(run.path / "faults.parquet").to_pylist()
        return tuple(
            (float(row["start_s"]), _end_s(row["end_s"], last_s), str(row["kind"]), str(row["who"]))
            for row in rows
            if row["start_s"] is not None and math.isfinite(row["start_s"])
        )
    except (OSError, pa.ArrowException, KeyError, ValueError, TypeError):
        notes.append("faults.parquet is damaged or of another version; faults are not marked.")
        return ()


def _end_s(end_s: float | None, last_s: float) -> float:
    return last_s if end_s is None or not math.isfinite(end_s) else float(end_s)


def _prefix_summary(run: StoredRun, log: Log) -> dict[str, Any]:
    """Computes a summary from the completed rounds of a killed run; privacy covers the releases charged so far."""
    scenario = run.scenario
    evaluation = scenario.get("evaluation") if isinstance(scenario.get("evaluation"), dict) else {}
    target = evaluation.get("target_accuracy") if evaluation else None
    # Only the keys a summary reads: loading the scenario again could need plug-ins or data files.
    stand_in = SimpleNamespace(
        name=str(scenario.get("name", run.path.name)),
        question=scenario.get("question"),
        seed=scenario.get("seed", 0),
        rounds=scenario.get("rounds", len(log.rounds)),
        clients=scenario.get("clients", 0),
        learning=str(scenario.get("learning", "torch")),
        evaluation=SimpleNamespace(target_accuracy=target if isinstance(target, int | float) else None),
    )
    protocol, anonymity = scenario.get("protocol"), scenario.get("anonymity")
    return summarise(
        RunFacts(
            scenario=stand_in,
            log=log,
            rounds_completed=len(log.rounds),
            stopped_because=KILLED,
            simulated_s=max((record["end_s"] for record in log.rounds), default=0.0),
            # A killed run has not written how long it took.
            wall_s=float("nan"),
            privacy=_privacy_so_far(log, scenario),
            linkability={"address": None, "content": None, "chance": None},
            protocol=str(protocol.get("kind", "")) if isinstance(protocol, dict) else "",
            routing=str(anonymity.get("routing", "assumed")) if isinstance(anonymity, dict) else "assumed",
        )
    )


_NO_CLAIM = "the run was killed before its end, and no formula of a paper was charged so far"


def _privacy_so_far(log: Log, scenario: dict[str, Any]) -> dict[str, Any]:
    section = scenario.get("privacy")
    delta = section.get("delta") if isinstance(section, dict) else None
    published = log.privacy["published"][np.isfinite(log.privacy["published"])]
    local = log.privacy["rigorous"][~np.isnan(log.privacy["rigorous"])]
    # Without a charged release no bound is known.
    proven = float(local.max()) if len(local) else float("inf")
    claim = {"epsilon": float(published.max()), "formula": "so far"} if len(published) else _NO_CLAIM
    known = {"delta": delta} if isinstance(delta, int | float) else {}
    rigorous = {"local": proven, "unit": "client", **known}
    known_so_far = {"published": claim, "rigorous": rigorous, "notes": ["killed: only the local view is known"]}
    return known_so_far | _records_so_far(log, scenario)


def _records_so_far(log: Log, scenario: dict[str, Any]) -> dict[str, Any]:
    """Returns the record-level entry of an unfinished run that protects single records; else nothing."""
    settings = (scenario.get("training") or {}).get("per_sample")
    spent = log.privacy["record"][~np.isnan(log.privacy["record"])]
    if not isinstance(settings, dict) or not len(spent):
        return {}
    worst = float(spent.max())
    how = "inf" if np.isinf(worst) else "bound"
    # The last releases of a killed run may lack their figure, which the round's end fills in.
    because = "the run was killed, and the releases of its last round may not be counted"
    return {"record": {"epsilon": worst, "how": how, "because": because, "relation": RELATION, "unit": "record",
                       "delta": settings.get("delta", 1e-5)}}  # fmt: skip
