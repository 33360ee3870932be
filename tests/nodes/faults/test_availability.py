"""When clients are up: churn is drawn by name, traces are read as they stand, and bad ones are told."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import expon, kstest

from nodes.faults.availability import Always, Churn, UpTrace
from p2p.config.distributions import Constant
from p2p.config.errors import UserError


def test_always_is_never_down() -> None:
    """No stretch at all."""
    assert list(Always().down(3, 7)) == []


def test_churn_alternates_and_repeats() -> None:
    """Stretches follow one another, with the means asked for, the same for equal seeds."""
    churn = Churn(mean_up=60.0, mean_down=10.0)
    stretches = np.array(list(islice(churn.down(0, 7), 4000)))
    assert (stretches[:, 1] > stretches[:, 0]).all()
    assert (stretches[1:, 0] > stretches[:-1, 1]).all()
    assert np.mean(stretches[:, 1] - stretches[:, 0]) == pytest.approx(10, rel=0.1)
    assert np.mean(stretches[1:, 0] - stretches[:-1, 1]) == pytest.approx(60, rel=0.1)
    assert list(islice(churn.down(0, 7), 5)) == [tuple(row) for row in stretches[:5].tolist()]
    assert list(islice(churn.down(1, 7), 5)) != list(islice(churn.down(0, 7), 5))


def test_clients_leave_independently_of_each_other() -> None:
    """First up times over many clients are exponential, and those of neighbours have nothing in common."""
    churn = Churn(mean_up=60.0, mean_down=10.0)
    first = np.array([next(churn.down(node, 7)) for node in range(3000)])
    up_s, down_s = first[:, 0], first[:, 1] - first[:, 0]
    assert kstest(up_s, expon(scale=60).cdf).pvalue > 1e-3
    assert kstest(down_s, expon(scale=10).cdf).pvalue > 1e-3
    for one, other in ((up_s, down_s), (up_s[1:], up_s[:-1])):
        assert abs(np.corrcoef(one, other)[0, 1]) < 0.08


def test_churn_by_distributions() -> None:
    """Constant distributions give a clockwork; no client leaves before the start."""
    churn = Churn(up=Constant(value=20.0), down_for=Constant(value=5.0), start=100.0)
    assert list(islice(churn.down(0, 1), 2)) == [(120.0, 125.0), (145.0, 150.0)]


def test_churn_needs_one_of_each() -> None:
    """Neither and both are told."""
    with pytest.raises(UserError, match="mean_up: needs exactly one of mean_up and up"):
        Churn(mean_down=5.0)
    with pytest.raises(UserError, match="mean_down: needs exactly one"):
        Churn(mean_up=5.0, mean_down=5.0, down_for=Constant(value=1.0))


def test_a_trace_says_who_is_up_when(tmp_path: Path) -> None:
    """Gaps between rows are down times; after the last row the node is gone; others are always up."""
    path = tmp_path / "up.csv"
    path.write_text("node,up_s,down_s\n2,10,20\n2,30,40\n0,0,5\n")
    trace = UpTrace(path=str(path))
    assert list(trace.down(2, 0)) == [(0.0, 10.0), (20.0, 30.0), (40.0, np.inf)]
    assert list(trace.down(0, 0)) == [(5.0, np.inf)]
    assert list(trace.down(1, 0)) == []


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("node,up_s,down_s\n1,5,x\n", "line 2: needs numbers node,up_s,down_s"),
        ("node,up_s,down_s\n1,9,5\n", "line 2: up_s must be >= 0 and before down_s"),
        ("node,up_s,down_s\n1,0,9\n1,5,12\n", "node 1 is up from 0 and again from 5; join the rows"),
        ("node,up_s,down_s\n", "has no rows"),
        ("who,from,to\n1,2,3\n", "line 2: needs numbers"),
    ],
)
def test_a_bad_trace_is_told(tmp_path: Path, text: str, told: str) -> None:
    """With its line."""
    path = tmp_path / "up.csv"
    path.write_text(text)
    with pytest.raises(UserError) as caught:
        UpTrace(path=str(path))
    assert told in str(caught.value)
