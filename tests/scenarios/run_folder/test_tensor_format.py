"""What is written is what the library of the format reads."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from safetensors import safe_open
from safetensors.numpy import load_file

from scenarios.run_folder.tensor_format import NAMES, write_arrays


def arrays() -> dict[str, NDArray[np.generic]]:
    """One of each type, and odd shapes: no elements, no dimensions, not contiguous, odd lengths before wide types."""
    found: dict[str, NDArray[np.generic]] = {f"of {name}": np.arange(7).astype(name).reshape(7, 1) for name in NAMES}
    found |= {"empty": np.zeros((0, 3), np.float32), "scalar": np.array(2.5), "none": np.zeros(0, np.int64)}
    return found | {"across": np.arange(12, dtype=np.float32).reshape(3, 4).T, "big": np.arange(3, dtype=">i4")}


@pytest.mark.parametrize("metadata", [None, {"a": "1", "b": "é"}])
def test_the_library_reads_the_same(tmp_path: Path, metadata: dict[str, str] | None) -> None:
    """Values, shapes, types and metadata."""
    write_arrays(tmp_path / "file", arrays(), metadata)
    found = load_file(tmp_path / "file")
    assert found.keys() == arrays().keys()
    for name, array in arrays().items():
        assert found[name].dtype == array.dtype.newbyteorder("=")
        np.testing.assert_array_equal(found[name], array)
    with safe_open(tmp_path / "file", framework="numpy") as file:
        assert file.metadata() == metadata


def test_a_file_without_tensors(tmp_path: Path) -> None:
    """Is one that the library reads, too."""
    write_arrays(tmp_path / "file", {}, None)
    assert load_file(tmp_path / "file") == {}
