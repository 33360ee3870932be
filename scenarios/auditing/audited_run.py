"""One run with canaries, and the scores that each view has for them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nodes.adversaries.canaries import AllReceivers, Canaries, CanaryTrainer
from nodes.adversaries.observers import Keep, ModelObserver
from p2p.config.errors import UserError
from p2p.log.records import KIND
from p2p.random_streams import stream
from privacy.audits.settings import Audit
from scenarios.build import build
from scenarios.composition.simulation import Simulation
from scenarios.schema import Scenario

Scores = NDArray[np.float64]
UNLIMITED = Keep(limit=1e18)
_ONLY_GAUSSIAN = "the add/remove figure is proved for Gaussian noise only; set `audit.neighbours: replace`"


@dataclass(slots=True)
class CanarySighting:
    """An update of a canary that reached other nodes: its inner product with the canary's direction, and the nodes."""

    canary: int
    round_number: int
    score: float
    by: set[int] = field(default_factory=set)


@dataclass(slots=True)
class ViewScores:
    """What a run shows of its canaries.

    Attributes:
        heard: by round and vector, the updates of canaries that were received
        models: by round, the inner products of the step of an aggregate, or of the collected model, with all directions
    """

    heard: dict[tuple[int, int], CanarySighting] = field(default_factory=dict)
    models: dict[int, Scores] = field(default_factory=dict)


@dataclass(slots=True)
class Scorer:
    """Scores what observers saw, part by part.

    Args:
        sign: -1 where messages carry models, from which updates are subtracted.
        middle: the score of an update halfway between the two that a coin picks from.
        first: the first model, which messages that carry models contain.
    """

    canaries: Canaries
    sign: float
    middle: float
    first: NDArray[np.float32]
    scores: ViewScores = field(default_factory=ViewScores)
    _before: NDArray[np.float32] | None = None
    _vectors: dict[int, list[NDArray[np.float32]]] = field(default_factory=dict)

    def add(self, parts: Mapping[str, list[dict[str, Any]]]) -> None:
        """Adds what was seen since the last call."""
        for part in parts["everyone"]:
            self._add_messages(part)
        for part in parts["model"]:
            # A collected model comes after all aggregates.
            for number, models in sorted((int(key[6:]), part[key]) for key in part if key[:6] in ("model-", "round-")):
                self._add_model(number, models.mean(axis=0))

    def _add_messages(self, part: dict[str, Any]) -> None:
        for name in (key for key in part if key.startswith("round-")):
            # Row by row: a later part of the same round goes on counting.
            self._vectors.setdefault(int(name[6:]), []).extend(part[name])
        mine = (part["rows.kind"] == KIND["update"]) & np.isin(part["truth.origin"], self.canaries.nodes)
        mine &= part["rows.vector"] >= 0
        canary = np.searchsorted(self.canaries.nodes, part["truth.origin"][mine])
        columns = (part[f"rows.{name}"][mine].tolist() for name in ("round", "vector", "by"))
        for who, number, place, by in zip(canary.tolist(), *columns, strict=True):
            heard = self.scores.heard.get((number, place))
            if heard is None:
                heard = self.scores.heard[number, place] = CanarySighting(who, number, self._score(who, number, place))
            heard.by.add(by)
        # Vectors of a round are scored when they first arrive; late copies need their number only.
        for number in self._vectors:
            self._vectors[number] = [row[:0] for row in self._vectors[number]]

    def _score(self, who: int, number: int, place: int) -> float:
        vector = self._vectors[number][place]
        direction = self.canaries.directions[who]
        update = vector if self.sign > 0 else self.first - vector
        return float(update @ direction) - self.middle

    def _add_model(self, number: int, model: NDArray[np.float32]) -> None:
        if self._before is not None:
            # A step subtracts updates from the model.
            steps = (self.canaries.directions @ (self._before - model)).astype(np.float64)
            # Weights in an aggregate are not known here, so the median stands for the middle of in and out.
            self.scores.models[number] = steps - np.median(steps) if self.middle else steps
        self._before = model


def run_with_canaries(
    scenario: Scenario, audit: Audit, number: int, data_dir: Path | None, threads: int | None
) -> tuple[Simulation, Canaries, ViewScores]:
    """Runs a scenario once with canaries; returns the run, its canaries and their scores."""
    watchers: Any = (AllReceivers(name="everyone", keep=UNLIMITED), ModelObserver(keep=UNLIMITED))
    watched = replace(scenario, adversaries=watchers, attacks=(), audit=None)
    seen: list[Scorer] = []

    def look(row: Mapping[str, Any]) -> None:
        recorder = simulation.observer.recorder
        if recorder is not None and seen:
            seen[0].add(recorder.take())

    simulation = build(watched, data_dir=data_dir, threads=threads, listeners=[look])
    learning, recorder = simulation.deferred_learning, simulation.observer.recorder
    if learning is None or recorder is None or simulation.noise is None:
        raise ValueError("an audit needs learning and noise")
    if audit.neighbours == "add_remove" and simulation.noise.losses:
        raise UserError(f"audit.neighbours = add_remove: {_ONLY_GAUSSIAN}", scenario.name)
    nodes = _nodes(audit, scenario)
    canaries = Canaries.drawn(nodes, learning.dimension, audit.seed, number, audit.neighbours)
    norm = simulation.noise.clip_norm
    middle = norm / 2.0 if audit.neighbours == "add_remove" else 0.0
    still = audit.others == "still"
    # The noise of each run has a seed of its own; shares of noise keep the scenario's, so there is one run of them.
    learning.audit(lambda trainer: CanaryTrainer(trainer, canaries, norm, still=still), (audit.seed << 32) + number + 1)
    models = getattr(scenario.protocol, "exchange", "update") == "model"
    seen.append(Scorer(canaries, -1.0 if models else 1.0, middle, learning.first_model().array()))
    simulation.run()
    recorder.finish(simulation.log)
    seen[0].add(recorder.take())
    return simulation, canaries, seen[0].scores


def _nodes(audit: Audit, scenario: Scenario) -> NDArray[np.int64]:
    count = scenario.clients if audit.canaries == "all" else min(audit.canaries, scenario.clients)
    drawn: NDArray[np.int64] = stream(audit.seed, "audit canaries").permutation(scenario.clients)[:count]
    return np.sort(drawn)
