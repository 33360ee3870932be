"""Records what each observer sees while a run goes on; it draws nothing and changes nothing.

Rows are read when a round closes. Vectors are taken by reference when they are sent and read after the round's own
learning has been computed, so that watching computes no value earlier or in other company.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nodes.adversaries.observers import Observer
from nodes.adversaries.sightings import Sightings
from nodes.adversaries.traffic import Members, TrafficReader
from nodes.learning.byte_counts_only import NoLearning
from nodes.learning.deferred_learning import DeferredLearning
from nodes.learning.deferred_vectors import Vector
from nodes.messaging.sent_payloads import Sent
from nodes.round_record import RoundRecord
from p2p.log.log import Log
from privacy.attacks.observation_columns import ADDRESS_BYTES, COLUMNS, UNKNOWN

Arrays = dict[str, NDArray[Any]]
_FLOAT_BYTES = 4


@dataclass(slots=True)
class Watch:
    """One observer during a run: what it has seen since the last part, and which vectors it has kept.

    Attributes:
        places: by round, the row of each distinct vector in the tensor of that round
        stopped: whether the limit was reached; rounds from then on have no vectors
    """

    observer: Observer
    nodes: tuple[int, ...]
    places: dict[int, dict[int, int]] = field(default_factory=dict)
    model_rounds: list[int] = field(default_factory=list)
    vector_bytes: int = 0
    stopped: bool = False
    _parts: list[Arrays] = field(default_factory=list)

    @property
    def keeps_models(self) -> bool:
        """Whether models of the view are kept; those of a model observer are all it sees."""
        return self.observer.keep.snapshots or self.observer.kind == "model"

    def add_rows(self, seen: Sightings, dimension: int, learning: DeferredLearning | NoLearning) -> None:
        """Adds rows with the vectors that are new among them."""
        vectors, fresh = self._number_vectors(seen.payloads, dimension, learning.learns)
        columns = {name: getattr(seen, name) for name in COLUMNS if name != "vector"} | {"vector": vectors}
        part: Arrays = {f"rows.{name}": columns[name].astype(dtype) for name, dtype in COLUMNS.items()}
        padded = b"".join(address.ljust(ADDRESS_BYTES, b"\0") for address in seen.addresses)
        part["rows.sender"] = np.frombuffer(padded, np.uint8).reshape(-1, ADDRESS_BYTES)
        part["truth.origin"] = seen.origin.astype("i4")
        if not getattr(learning, "paused", False):
            part |= {f"round-{number}": np.stack([sent.value.array() for sent in new]) for number, new in fresh.items()}
        self._parts.append(part)

    def add_models(self, round_number: int, models: NDArray[np.float32] | None, count: int, dimension: int) -> None:
        """Adds the models of the view after a round; None while a replay has none."""
        if not count or not self._has_room(round_number, count * dimension * _FLOAT_BYTES):
            return
        self.model_rounds.append(round_number)
        self.vector_bytes += count * dimension * _FLOAT_BYTES
        if models is not None:
            self._parts.append({f"model-{round_number}": models})

    def take(self) -> list[Arrays]:
        """Returns the parts since the last call, and forgets them."""
        parts, self._parts = self._parts, []
        return parts

    def header(self) -> dict[str, Any]:
        """Returns what the file says about itself."""
        keep = self.observer.keep
        return {
            "name": self.observer.called,
            "kind": self.observer.kind,
            "nodes": list(self.nodes),
            "asked_rounds": keep.rounds,
            "limit_bytes": int(keep.limit),
            "vector_bytes": self.vector_bytes,
            "limit_reached": self.stopped,
            "kept_rounds": sorted(self.places),
            "model_rounds": self.model_rounds,
        }

    def _number_vectors(
        self, payloads: Sequence[Sent | None], dimension: int, learns: bool
    ) -> tuple[NDArray[np.int64], dict[int, list[Sent]]]:
        """Returns the place of each row's vector, and by round the vectors that are new."""
        numbers = np.full(len(payloads), UNKNOWN)
        readable = [
            (row, sent) for row, sent in enumerate(payloads) if sent is not None and isinstance(sent.value, Vector)
        ]
        # Rounds, not rows, are kept or left out: half a round would look like a smaller cohort to an attack.
        wanted = self._rounds_with_room([sent for _, sent in readable] if learns else [], dimension)
        fresh: dict[int, list[Sent]] = {}
        for row, sent in readable:
            if sent.round_number not in wanted:
                continue
            places = self.places.setdefault(sent.round_number, {})
            if sent.number not in places:
                places[sent.number] = len(places)
                fresh.setdefault(sent.round_number, []).append(sent)
            numbers[row] = places[sent.number]
        self.vector_bytes += sum(map(len, fresh.values())) * dimension * _FLOAT_BYTES
        return numbers, fresh

    def _rounds_with_room(self, sent: Sequence[Sent], dimension: int) -> set[int]:
        """Returns the rounds whose vectors are kept; a round once begun is kept whole."""
        distinct: dict[int, set[int]] = {}
        for one in sent:
            distinct.setdefault(one.round_number, set()).add(one.number)
        found, new_bytes = set(), 0
        for number, vectors in sorted(distinct.items()):
            round_bytes = len(vectors) * dimension * _FLOAT_BYTES
            if number in self.places or self._has_room(number, new_bytes + round_bytes):
                found.add(number)
                new_bytes += round_bytes
        return found

    def _has_room(self, round_number: int, more_bytes: int) -> bool:
        keep = self.observer.keep
        # Round 0 is the first model, from which the updates of round 1 start: kept whichever rounds are asked for.
        if not keep.includes(round_number) and round_number:
            return False
        # Once full, full for good: a later, smaller round would leave a gap that nothing tells from silence.
        self.stopped = self.stopped or self.vector_bytes + more_bytes > keep.limit
        return not self.stopped


class Recorder:
    """All observers of a run."""

    def __init__(
        self,
        observers: Sequence[Observer],
        clients: int,
        seed: int,
        reader: TrafficReader,
        learning: DeferredLearning | NoLearning,
    ) -> None:
        self._reader, self._learning = reader, learning
        self.watches = {one.called: Watch(one, one.nodes(clients, seed)) for one in observers}
        self._began = False

    def close_round(self, record: RoundRecord, log: Log) -> None:
        """Records what was seen up to the end of a round; called after its learning has been computed."""
        central = record.leader == self._reader.server
        aggregator = (record.leader,) if record.leader in record.aggregated_s or central else ()
        addresses = {node: record.addresses[node] for nodes in record.assigned for node in nodes}
        cohort = Members(record.round_number, record.start_s, addresses)
        self._look(log, record.leader, aggregator, [cohort], record.round_number)

    def end_round(self, round_number: int) -> None:
        """Lets a round's payloads go after the next look; called when its last message has ended."""
        self._reader.payloads.end_round(round_number)

    def finish(self, log: Log) -> None:
        """Records what was seen after the last round: late messages, and the collected model."""
        self._look(log, UNKNOWN, (), [], None)

    def _look(
        self, log: Log, leader: int, aggregator: tuple[int, ...], cohorts: list[Members], closed: int | None
    ) -> None:
        traffic = self._reader.read(log, leader, aggregator, cohorts)
        dimension = self._learning.dimension
        for watch in self.watches.values():
            watch.add_rows(watch.observer.sees(traffic, watch.nodes), dimension, self._learning)
            if closed is not None and watch.keeps_models and isinstance(self._learning, DeferredLearning):
                if not self._began:
                    watch.add_models(0, self._learning.first_model().array()[None, :], 1, dimension)
                nodes = list(watch.observer.models_of(traffic, watch.nodes))
                watch.add_models(closed, self._learning.snapshot(nodes), len(nodes), dimension)
        self._began = self._began or closed is not None
        self._reader.payloads.drop_ended()

    def take(self) -> dict[str, list[Arrays]]:
        """Returns what each observer has seen since the last call, and forgets it."""
        return {name: watch.take() for name, watch in self.watches.items()}

    def headers(self) -> Mapping[str, dict[str, Any]]:
        """Returns what each observer's file says about itself."""
        return {name: watch.header() for name, watch in self.watches.items()}
