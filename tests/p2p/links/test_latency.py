"""Latencies from places: matrices and regions."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from p2p.config.distributions import Drawn, Uniform
from p2p.config.errors import UserError
from p2p.links.latency import LATENCIES, Matrix, PairLatency, Regions, pair_latencies, read_square

SECONDS = Drawn("s", low=0.0, more=tuple(LATENCIES.items()))
NODES = np.arange(200)


def write(folder: Path, text: str) -> Path:
    """A CSV file with this text."""
    path = folder / "rtt.csv"
    path.write_text(text)
    return path


def problems_of(folder: Path, text: str) -> list[str]:
    """What is wrong with such a file."""
    with pytest.raises(UserError) as caught:
        read_square(write(folder, text))
    return list(caught.value.problems)


@settings(max_examples=30, deadline=None)
@given(data=st.data(), size=st.integers(1, 6), header=st.booleans(), labels=st.booleans())
def test_a_square_file_is_read_as_written(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject, size: int, header: bool, labels: bool
) -> None:
    """With a line of names or without, and then with names of rows or without."""
    numbers = st.floats(0, 1e6, allow_nan=False)
    rows = data.draw(st.lists(st.lists(numbers, min_size=size, max_size=size), min_size=size, max_size=size))
    named = header and labels
    lines = [",".join([*(["from"] if named else []), *(f"city {i}" for i in range(size))])] if header else []
    lines += [",".join([*([f"city {i}"] if named else []), *map(repr, row)]) for i, row in enumerate(rows)]
    path = write(tmp_path_factory.mktemp("csv"), "\n".join(lines) + "\n")
    np.testing.assert_array_equal(read_square(path), rows)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("0,1\n1,x\n", "rtt.csv: line 2, column 2: 'x' is not a number"),
        ("0,-1\n1,0\n", "rtt.csv: line 1, column 2: '-1' must be finite and >= 0"),
        ("0,inf\n1,0\n", "line 1, column 2: 'inf' must be finite"),
        ("0,nan\n1,0\n", "line 1, column 2: 'nan' is not a number"),
        ("0,\n1,0\n", "line 1, column 2: '' is not a number"),
        ("a,b\n0,1\n\n1,?\n", "line 4, column 2: '?' is not a number"),
        (",a,b\na,0,1\nb,1,?\n", "line 3, column 3: '?' is not a number"),
        ("0,1\n1,0\n2,2\n", "line 1 has 2 numbers, the file 3 rows; a matrix must be square"),
        ("0,1\n1\n", "line 2 has 1 numbers, the file 2 rows"),
        ("", "has no rows of numbers"),
        ("a,b\n", "has no rows of numbers"),
        ('0,"1\n', "line 1 is not CSV"),
    ],
)
def test_a_malformed_file_is_told_by_line_and_column(tmp_path: Path, text: str, said: str) -> None:
    """The first problem names the place and the rule."""
    assert said in problems_of(tmp_path, text)[0]


def test_many_bad_cells_are_one_mistake(tmp_path: Path) -> None:
    """A few are named, the others counted."""
    told = problems_of(tmp_path, "\n".join([",".join(["-1"] * 10)] * 10))
    assert len(told) == 6
    assert told[-1] == "path: and 95 more such cells"


def test_a_file_that_is_no_text(tmp_path: Path) -> None:
    """Bytes that are not UTF-8 are a problem, not a traceback."""
    path = tmp_path / "rtt.csv"
    path.write_bytes(b"\xff\xfe\x00,1\n")
    with pytest.raises(UserError, match="cannot be read as CSV"):
        read_square(path)


def test_round_trips_are_halved_and_directions_kept(tmp_path: Path) -> None:
    """100 ms there and back is 50 ms one way; a matrix that is not symmetric stays so; an empty diagonal is 0."""
    path = write(tmp_path, ",100\n60,\n")
    matrix = SECONDS.finish(Matrix(path=str(path), place="in_order"))
    assert pair_latencies(matrix, 1, np.array([0, 1, 0]), np.array([1, 0, 2])).tolist() == [0.05, 0.03, 0.0]
    one_way = SECONDS.finish(Matrix(path=str(path), unit="s", round_trip=False, place="in_order"))
    assert pair_latencies(one_way, 1, np.array([0]), np.array([3])).tolist() == [100.0]


def test_rows_are_drawn_per_node(tmp_path: Path) -> None:
    """Every node keeps its row whichever others ask, and all rows are taken alike."""
    matrix = SECONDS.finish(Matrix(path=str(write(tmp_path, "0,1,2\n1,0,3\n2,3,0\n"))))
    rows = matrix.row_of(7, np.arange(3000))
    assert rows[[5]] == matrix.row_of(7, np.array([5]))
    assert np.bincount(rows, minlength=3).min() > 850


def test_regions_take_half_the_round_trip() -> None:
    """London to Washington DC was 76 ms there and back; within a region `same_region` holds; both ways are equal."""
    distribution = Regions(regions={"eu-west": 0.5, "us-east": 0.5}, same_region=0.002)
    here = distribution.region_of(3, NODES)
    times = pair_latencies(distribution, 3, NODES[:, None], NODES[None, :])
    assert set(np.unique(times).tolist()) == {0.002, 0.038}
    np.testing.assert_array_equal(times == 0.002, here[:, None] == here[None, :])
    np.testing.assert_array_equal(times, times.T)


def test_all_regions_alike_unless_given() -> None:
    """Without shares every region has nodes."""
    distribution = Regions()
    assert len(np.unique(distribution.region_of(1, np.arange(2000)))) == len(distribution.names) == 10


@pytest.mark.parametrize(
    ("regions", "said"),
    [
        ({"atlantis": 1.0}, "regions.atlantis: unknown region; known are us-south"),
        ({"eu-west": 0.5, "us-east": 0.4}, "regions = 0.9: the shares must sum to 1"),
    ],
)
def test_impossible_regions_are_refused(regions: dict[str, float], said: str) -> None:
    """Names that are not in the table, and shares that are no whole."""
    with pytest.raises(UserError, match=said):
        Regions(regions=regions)


@given(st.integers(0, 10**6), st.integers(0, 10**6))
def test_drawn_latencies_are_equal_in_both_directions(one: int, other: int) -> None:
    """A distribution draws for the pair, not for the direction."""
    distribution = Uniform(low=0.02, high=0.12)
    there = pair_latencies(distribution, 5, np.array([one]), np.array([other]))
    back = pair_latencies(distribution, 5, np.array([other]), np.array([one]))
    assert there == back


def test_shape_of_the_models() -> None:
    """What knows both ends of a path is told from what is drawn."""
    assert isinstance(Regions(), PairLatency)
    assert not isinstance(Uniform(low=0, high=1), PairLatency)
