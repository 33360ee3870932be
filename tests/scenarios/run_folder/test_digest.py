"""Digests: blind to order and codes, not to facts."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from p2p.log.log import Log
from p2p.random_streams import stream
from scenarios.run_folder import digest
from scenarios.run_folder.arrow_tables import LOGGED, WORDS, measured_from
from scenarios.run_folder.digest import events_digest, learning_digest


def _shuffle(log: Log, seed: int) -> None:
    for name in LOGGED:
        table = getattr(log, name)
        order = stream(seed, "shuffle", name).permutation(len(table))
        for column in table.names:
            table[column][:] = table[column][order]


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 1000), tied=st.booleans())
def test_order_of_rows_does_not_matter(random_log: Callable[..., Log], seed: int, tied: bool) -> None:
    """The same facts in another order have the same digest, also where the sorting keys are equal."""
    log = random_log(seed)
    if tied:
        for column in ("sent_s", "sender", "receiver", "kind", "attempt"):
            log.messages[column][:] = 1
    before = events_digest(log)
    _shuffle(log, seed)
    assert events_digest(log) == before


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 1000), data=st.data())
def test_every_changed_fact_shows(random_log: Callable[..., Log], seed: int, data: st.DataObject) -> None:
    """One changed cell in any hashed column changes the digest."""
    log = random_log(seed)
    name = data.draw(st.sampled_from(sorted(digest._COLUMNS)))
    keys, others = digest._COLUMNS[name]
    column = data.draw(st.sampled_from(keys + others))
    values = getattr(log, name)[column]
    row = data.draw(st.integers(0, len(values) - 1))
    before = events_digest(log)
    values[row] = 0.25 if np.isnan(values[row]) else values[row] + 1 if values[row] == 0 else values[row] - 1
    assert events_digest(log) != before


def test_times_are_whole_microseconds(random_log: Callable[..., Log]) -> None:
    """Less than half a microsecond is no difference; ids and what is not promised are none either."""
    log = random_log(2)
    log.messages["sent_s"][:] = np.round(log.messages["sent_s"], 6)
    before = events_digest(log)
    log.messages["sent_s"][:] += 1e-8
    log.messages["used"][:] ^= True
    assert events_digest(log) == before


def test_codes_do_not_matter(random_log: Callable[..., Log], monkeypatch: pytest.MonkeyPatch) -> None:
    """A code table that gains an entry, even at its head, leaves digests alone."""
    log = random_log(3)
    before = events_digest(log)
    words = {name: {c: ("novelty", *w) for c, w in columns.items()} for name, columns in WORDS.items()}
    monkeypatch.setattr(digest, "WORDS", words)
    for name, columns in words.items():
        for column in columns:
            getattr(log, name)[column][:] += 1
    assert events_digest(log) == before


def test_a_log_without_its_rounds_is_an_empty_one(random_log: Callable[..., Log]) -> None:
    """Measured from a round that never came."""
    assert events_digest(measured_from(random_log(4), 9)) == events_digest(Log())


def test_canonical_form() -> None:
    """Anyone can recompute a digest: a header with the words present, then rows of little-endian integers."""
    log = Log()
    log.span(2, 1, "wait", 0.5, 1.0000004)
    log.span(1, 1, "train", 0.25, 0.5)
    header = b"spans 2 start_s= node= name=train,wait round= end_s=\n"
    rows = struct.pack("<10q", 250_000, 1, 0, 1, 500_000, 500_000, 2, 1, 1, 1_000_000)
    others = {
        "messages": "sent_s= sender= receiver= kind= attempt= round= size_bytes= overhead_bytes= arrived_s="
        " outcome= reason= bottleneck=",
        "dropouts": "at_s= node= aggregator= what= round= reason=",
        "graphs": "round= sender= receiver=",
    }
    empty = {name: f"{name} 0 {columns}\n".encode() for name, columns in others.items()}
    whole = b"peerveil events 1\n" + empty["messages"] + header + rows + empty["dropouts"] + empty["graphs"]
    assert events_digest(log) == hashlib.sha256(whole).hexdigest()


def test_learning_digest_sees_the_last_bit(round_record: Callable[..., dict[str, Any]]) -> None:
    """Every learning figure counts to the last bit; times do not."""
    rounds = [round_record(1, 0.0, 1.0), round_record(2, 1.0, 2.0, loss=None)]
    accuracy = np.array([0.5, 0.6])
    told = {learning_digest(rounds, accuracy, 0.6, 1.0)}
    told.add(learning_digest([rounds[0] | {"end_s": 9.0, "cohort": 1}, rounds[1]], accuracy, 0.6, 1.0))
    assert len(told) == 1
    told.add(learning_digest([rounds[0] | {"loss": np.nextafter(0.5, 1)}, rounds[1]], accuracy, 0.6, 1.0))
    told.add(learning_digest(rounds, np.nextafter(accuracy, 1), 0.6, 1.0))
    told.add(learning_digest(rounds, None, 0.6, 1.0))
    told.add(learning_digest(rounds, accuracy, None, 1.0))
    told.add(learning_digest(rounds, accuracy, 0.6, None))
    assert len(told) == 6
