"""Files of observations: parts are merged without loss, as safetensors itself reads them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from safetensors.numpy import load_file

from p2p.random_streams import stream
from privacy.attacks.observation_columns import ADDRESS_BYTES, COLUMNS
from scenarios.run_folder import observation_files
from scenarios.run_folder.observation_files import merge_parts, write_parts

HEADER = {"kept_rounds": [1, 2], "model_rounds": [1]}


def write(run: Path, number: int, **tensors: NDArray[np.float32]) -> None:
    rows = {f"rows.{name}": np.zeros(1, dtype=dtype) for name, dtype in COLUMNS.items()}
    rows |= {"rows.sender": np.zeros((1, ADDRESS_BYTES), np.uint8), "truth.origin": np.zeros(1, "i4")}
    named = {name.replace("_", "-"): tensor for name, tensor in tensors.items()}
    write_parts(run, "peer", number, [rows | named])


def random(rows: int) -> NDArray[np.float32]:
    return stream(rows, "tensor").standard_normal((rows, 7), dtype=np.float32)


@pytest.mark.parametrize("buffer_bytes", [5, 2**20])
def test_rows_of_a_round_in_several_parts_become_one_tensor(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, buffer_bytes: int
) -> None:
    """A late message of round 1 arrives in round 2; the size of the buffer does not matter."""
    monkeypatch.setattr(observation_files, "_BUFFER_BYTES", buffer_bytes)
    write(tmp_path, 1, round_1=random(3), model_1=random(2))
    write(tmp_path, 2, round_1=random(1), round_2=random(4))
    merge_parts(tmp_path, {"peer": HEADER}, keep_parts=False)
    found = load_file(tmp_path / "observations" / "peer.safetensors")
    assert set(found) == {"round-1", "round-2", "model-1"}
    assert (found["round-1"] == np.concatenate([random(3), random(1)])).all()
    assert (found["round-2"] == random(4)).all()
    assert (found["model-1"] == random(2)).all()
