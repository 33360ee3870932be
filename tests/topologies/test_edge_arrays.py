"""Orders of edge arrays, against numpy's."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from topologies.edge_arrays import Ids, distinct, stable_order

NODES = st.one_of(st.integers(0, 5), st.integers(0, 2**31 - 1))


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
@given(values=st.lists(NODES, max_size=60))
def test_stable_order_is_that_of_a_stable_sort(values: list[int], dtype: type[np.signedinteger]) -> None:
    """Equal values stand as they stood; also for the largest numbers, and for none."""
    array: Ids = np.array(values).astype(dtype)
    assert stable_order(array).tolist() == np.argsort(array, kind="stable").tolist()


@given(values=st.lists(st.one_of(NODES, st.integers(0, 2**62)), max_size=60))
def test_distinct_values_are_those_of_numpy(values: list[int]) -> None:
    """Sorted, each once; what was given stays as it is."""
    array: Ids = np.array(values, dtype=np.int64)
    assert distinct(array).tolist() == np.unique(array).tolist()
    assert array.tolist() == values
