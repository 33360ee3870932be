"""Builds the view of an observer from a run folder, and the truth by which guesses are scored."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nodes.datasets.preparation import all_records
from nodes.protocols.gossip import Gossip
from p2p.config.errors import UserError
from p2p.random_streams import stream
from privacy.attacks.exposure import Mixing
from privacy.attacks.observations import Knowledge, Position, Records, Truth, View
from scenarios.attacking.claims import claims_about, noise_std
from scenarios.attacking.mixing_matrices import mixing_of
from scenarios.attacking.positions import position_of
from scenarios.loading.writing.field_docs import keys_of
from scenarios.run_folder.observation_files import observed_names, read_observations, read_tensor, read_truth
from scenarios.run_folder.reader import open_run
from scenarios.schema import Scenario


@dataclass(frozen=True)
class AttackedRun:
    """A run folder with its scenario, from which views are made."""

    path: Path
    scenario: Scenario
    summary: Mapping[str, Any]
    data_dir: Path | None = None

    @property
    def positions(self) -> list[Position]:
        """The observers whose files the folder has."""
        scenario, there = self.scenario, set(observed_names(self.path))
        parts = {key.name: getattr(scenario, key.name) for key in keys_of(Scenario)}
        return [position_of(one, parts, scenario.seed) for one in scenario.adversaries if one.called in there]

    def view(self, position: Position) -> View:
        """Returns all that an attack from this position may read."""
        rows, header = read_observations(self.path, position.name)
        return View(
            position=self._with_form(position),
            rows=rows,
            kept_rounds=header["kept_rounds"],
            model_rounds=header["model_rounds"],
            knowledge=self._knowledge(position),
            _tensor=partial(read_tensor, self.path, position.name),
        )

    def _with_form(self, position: Position) -> Position:
        """Returns the position with the form of the data, which a user's file tells only when it is read."""
        if position.public["data_shape"] is not None:
            return position
        loaded = self._data[0]
        form = {"data_shape": loaded.shape, "classes": loaded.classes}
        return replace(position, public={**position.public, **form})

    def truth(self, position: Position, tried: int = 0) -> Truth:
        """Returns what guesses from this position are scored by.

        Args:
            tried: comparisons with the run's epsilons that were made before.
        """
        # Records that the observer knows as members are no test of its guesses.
        known = int(position.knows["members"])
        return Truth(
            origin=read_truth(self.path, position.name),
            trained_on=lambda node: self._records(self._members(node)[known:]),
            kept_out=lambda node: self._records(self._kept_out(node)),
            test=self._test,
            victims=self._victims,
            noise_std=noise_std(self.summary),
            claims=claims_about(self.summary, position.kind),
            tried=tried,
            mixing=self._mixing,
            seed=self.scenario.seed,
        )

    def _mixing(self) -> tuple[Sequence[Mixing], bool]:
        scenario = self.scenario
        protocol = scenario.protocol
        if not isinstance(protocol, Gossip):
            return (), True
        return mixing_of(open_run(self.path).log, protocol, scenario.clients, scenario.rounds)

    def _knowledge(self, position: Position) -> Knowledge:
        knows, training = position.knows, self.scenario.training
        known = int(knows["members"])
        tells = bool(knows["batch_size"])
        return Knowledge(
            # Functions, not records: an attack that does not ask loads no data.
            auxiliary=(lambda: self._auxiliary(int(knows["auxiliary"]))) if knows["auxiliary"] else None,
            own_records=(lambda: self._own(position.nodes)) if knows["own_records"] and position.nodes else None,
            members=(lambda node: self._records(self._members(node)[:known])) if known else None,
            victims=self._victims,
            labels=self._labels_behind(position) if knows["labels"] else None,
            batch_size=training.batch_size if tells else None,
            epochs=training.epochs if tells else None,
        )

    def _labels_behind(self, position: Position) -> Callable[[int], NDArray[np.int64]]:
        """Returns a function from rows to the sorted labels of their senders' records, and to nothing else of them."""
        origin = read_truth(self.path, position.name)
        # Sorted, so that their order tells nothing about the batches of training.
        return lambda row: np.sort(self._records(self._members(int(origin[row]))).labels)

    def _test(self) -> Records:
        loaded = self._data[0]
        return Records(loaded.test_x, loaded.test_y, np.arange(len(loaded.test_y)))

    @property
    def _victims(self) -> tuple[int, ...]:
        return self.scenario.reserved.victim_nodes(self.scenario.clients)

    @cached_property
    def _data(self) -> Any:
        scenario = self.scenario
        return all_records(scenario.data, scenario.clients, self.data_dir, scenario.seed, scenario.reserved)

    def _records(self, numbers: NDArray[np.int64]) -> Records:
        loaded = self._data[0]
        return Records(loaded.train_x[numbers], loaded.train_y[numbers], numbers)

    def _own(self, nodes: tuple[int, ...]) -> Records:
        return self._records(np.concatenate([self._data[1][node] for node in nodes]))

    def _auxiliary(self, count: int) -> Records:
        aside = self._data[2].auxiliary
        if count > len(aside):
            raise UserError(f"knows.auxiliary = {count}: {len(aside)} records are reserved; raise reserved.auxiliary")
        return self._records(aside[:count])

    def _members(self, node: int) -> NDArray[np.int64]:
        """Returns a client's training records in an order of their own: the first ones are those that are known."""
        shuffled: NDArray[np.int64] = stream(self.scenario.seed, "known-members", node).permutation(self._data[1][node])
        return shuffled

    def _kept_out(self, node: int) -> NDArray[np.int64]:
        found = self._data[2].kept_out.get(node)
        if found is None:
            raise UserError(f"reserved.victims: client {node} is none of them, so it has no non-members; add it")
        numbers: NDArray[np.int64] = found
        return numbers
