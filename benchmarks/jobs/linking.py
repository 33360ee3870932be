"""What the attack `linkage` costs on the observations of a long run, read from their files."""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from numpy.typing import NDArray

from benchmarks.figures import Effort, Figure, timed
from p2p.log.records import KIND
from p2p.random_streams import stream
from privacy.attacks.linkage_attack import LinkageAttack
from privacy.attacks.observation_columns import ADDRESS_BYTES, COLUMNS, IN, UNKNOWN
from privacy.attacks.observations import Knowledge, Position, View
from scenarios.run_folder.observation_files import merge_parts, read_observations, read_tensor, write_parts

GOAL_S = 60.0
CLIENTS, MEMBERS = 100, 70
NAME = "peer"


def linkage(effort: Effort) -> list[Figure]:
    """50 rounds of 70 messages with 199,210 parameters each: all methods, and chains over all rounds."""
    rounds, width = (5, 2_000) if effort.quick else (50, 199_210)
    with TemporaryDirectory() as folder:
        _write(Path(folder), rounds, width)
        view = _view(Path(folder))
        cost_s = timed(lambda: LinkageAttack().guess(view), time.process_time)
    detail = f"{rounds} rounds x {MEMBERS} messages x {width:,} parameters, from files"
    return [Figure("linkage over a run", cost_s, "s of CPU", GOAL_S, detail=detail)]


def _write(run: Path, rounds: int, width: int) -> None:
    for number, arrays in enumerate(_rounds(rounds, width), start=1):
        write_parts(run, NAME, number, [arrays])
    kept = list(range(1, rounds + 1))
    merge_parts(run, {NAME: {"kept_rounds": kept, "model_rounds": []}}, keep_parts=False)


def _rounds(rounds: int, width: int) -> Iterator[dict[str, NDArray[np.generic]]]:
    """Yields what a peer sees of each round: each client's own direction, and noise."""
    own = stream(0, "bench", "own").standard_normal((CLIENTS, width), dtype=np.float32)
    for number in range(1, rounds + 1):
        rng = stream(0, "bench", "round", number)
        members = rng.permutation(CLIENTS)[:MEMBERS]
        noise = rng.standard_normal((MEMBERS, width), dtype=np.float32)
        rows = {name: np.full(MEMBERS, UNKNOWN, dtype=dtype) for name, dtype in COLUMNS.items()}
        rows |= {"round": np.full(MEMBERS, number, dtype="i4"), "direction": np.full(MEMBERS, IN, dtype="i1")}
        rows |= {"kind": np.full(MEMBERS, KIND["update"], dtype="i1"), "vector": np.arange(MEMBERS, dtype="i4")}
        rows["at_s"] = 100.0 * number + rng.exponential(size=MEMBERS)
        arrays: dict[str, NDArray[np.generic]] = {f"rows.{name}": column for name, column in rows.items()}
        arrays["rows.sender"] = rng.integers(0, 256, (MEMBERS, ADDRESS_BYTES), dtype=np.uint8)
        yield arrays | {"truth.origin": members.astype("i4"), f"round-{number}": 0.05 * own[members] + noise}


def _view(run: Path) -> View:
    rows, header = read_observations(run, NAME)
    public = {"clients": CLIENTS, "protocol_kind": "gossip"}
    position = Position(name=NAME, kind=NAME, nodes=(0,), vectors=True, snapshots=False, knows={}, public=public)
    tensor = partial(read_tensor, run, NAME)
    return View(
        position=position,
        rows=rows,
        kept_rounds=header["kept_rounds"],
        model_rounds=[],
        knowledge=Knowledge(),
        _tensor=tensor,
    )
