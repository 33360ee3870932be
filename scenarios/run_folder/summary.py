"""Computes a run's summary: every figure is a function of the log and the run's facts."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from p2p.log import records
from p2p.log.log import Log
from scenarios.metrics.communication.traffic import message_totals
from scenarios.metrics.diagnosis import diagnose
from scenarios.metrics.headline.headline import headline
from scenarios.metrics.headline.run_facts import RunFacts
from scenarios.run_folder.arrow_tables import FORMAT, measured_from
from scenarios.run_folder.digest import events_digest, learning_digest


def summarise(facts: RunFacts) -> dict[str, Any]:
    """Returns the content of `summary.json`, headline first; costs and losses cover the measured rounds only."""
    # Digests below use the whole log, so that a warm-up setting does not change them.
    measured = facts if not facts.measure_from else replace(facts, log=measured_from(facts.log, facts.measure_from))
    counts, sizes = message_totals(measured.log.messages)
    return {
        "headline": headline(measured),
        "diagnosis": [finding.to_json() for finding in diagnose(measured.log, facts.roles, facts.limits)],
        "warnings": list(facts.warnings),
        "format": FORMAT,
        "scenario": facts.scenario.name,
        "question": getattr(facts.scenario, "question", None),
        "seed": facts.scenario.seed,
        "protocol": facts.protocol,
        "learning": getattr(facts.scenario, "learning", "torch"),
        "nodes": facts.roles.to_json(),
        "rounds_planned": facts.scenario.rounds,
        "measured_from": facts.measure_from,
        "rounds_completed": facts.rounds_completed,
        "stopped_because": facts.stopped_because,
        "simulated_s": facts.simulated_s,
        "wall_s": facts.wall_s,
        "accuracy": facts.accuracy,
        "collected": {"accuracy": facts.collected_accuracy, "loss": facts.collected_loss},
        "messages": counts,
        "bytes": sizes,
        **_lost_updates(measured.log),
        "privacy": dict(facts.privacy),
        "linkability": dict(facts.linkability),
        "anonymity": {"sealed": facts.sealed, "routing": facts.routing},
        "digest": {"events": events_digest(facts.log), "learning": _learning(facts)},
        "events_depend_on_learning": facts.events_depend_on_learning,
        # Last, so that optional keys follow the documented ones.
        **facts.extra,
    }


def _learning(facts: RunFacts) -> str:
    return learning_digest(facts.log.rounds, facts.client_accuracy, facts.collected_accuracy, facts.collected_loss)


def _lost_updates(log: Log) -> dict[str, Any]:
    usual = {"absence": records.ABSENCES, "missing": records.MISSING, "dropout": records.MISSING}
    keys = {"absence": "absences", "missing": "missing", "dropout": "dropouts"}
    return {keys[what]: _by_reason(log, what, reasons) for what, reasons in usual.items()}


def _by_reason(log: Log, what: str, usual: tuple[str, ...]) -> dict[str, Any]:
    """Counts losses by reason; the usual reasons are listed even at zero, others only when they occurred."""
    reasons = log.dropouts["reason"][log.dropouts["what"] == records.WHAT[what]]
    counts = np.bincount(reasons, minlength=len(records.DROPOUT_REASONS))
    by_reason = {
        word: int(count) for word, count in zip(records.DROPOUT_REASONS, counts, strict=True) if count or word in usual
    }
    return {"total": len(reasons), "by_reason": by_reason}
