"""Laws of per-node quantities."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from p2p.config.distributions import (
    DISTRIBUTIONS,
    Constant,
    Distribution,
    Drawn,
    Empirical,
    Exponential,
    Lognormal,
    Pareto,
    Uniform,
    Weibull,
    rounded,
)
from p2p.config.errors import UserError
from p2p.config.normal_quantile import normal_quantiles
from p2p.random_streams import draws

RATE = Drawn("bytes/s", low=0.0, low_open=True)
EXAMPLES: dict[str, Distribution] = {
    "constant": Constant(value=3.0),
    "uniform": Uniform(low=1.0, high=2.0),
    "lognormal": Lognormal(median=20.0, sigma=0.5),
    "pareto": Pareto(minimum=2.0, shape=3.0),
    "exponential": Exponential(mean=30.0),
    "weibull": Weibull(scale=10.0, shape=0.7),
    "empirical": Empirical(path="x.csv", column="a", values=(4.0, 1.0, 2.0, 2.0)),
}


def test_every_distribution_is_tried() -> None:
    """The tests below go over the whole table."""
    assert {kind: type(distribution) for kind, distribution in EXAMPLES.items()} == DISTRIBUTIONS


@pytest.mark.parametrize("kind", sorted(EXAMPLES))
def test_quantiles_rise_stay_in_their_support_and_have_their_mean(kind: str) -> None:
    """The inverse distribution function is monotone, bounded by the support, and integrates to the mean."""
    distribution = EXAMPLES[kind]
    u = (np.arange(200_000) + 0.5) / 200_000
    values = distribution.quantiles(u)
    low, high = distribution.support()
    assert values.dtype == np.float64
    assert np.all(np.diff(values) >= 0)
    assert low <= values[0]
    assert values[-1] <= high
    assert values.mean() == pytest.approx(distribution.expectation(), rel=2e-3)


@given(st.lists(st.integers(min_value=0, max_value=10**9), min_size=1, max_size=20))
def test_a_draw_belongs_to_its_id(ids: list[int]) -> None:
    """Whichever other ids draw, an id gets the same value."""
    distribution = Lognormal(median=1.0, sigma=1.0)
    together = distribution.quantiles(draws(7, "uplink", np.array(ids)))
    alone = [distribution.quantiles(draws(7, "uplink", np.array([one])))[0] for one in ids]
    assert together.tolist() == alone


def test_lognormal_is_normal_in_the_logarithm() -> None:
    """Median in the middle; the 97.5% quantile 1.96 sigmas above."""
    distribution = Lognormal(median=100.0, sigma=0.5)
    values = distribution.quantiles(np.array([0.5, 0.9750021048517795]))
    assert values == pytest.approx([100.0, 100.0 * np.exp(0.5 * 1.96)], rel=1e-12)


def test_draws_are_rounded_for_the_clock() -> None:
    """Whole bytes per second, at least one; whole nanoseconds."""
    assert rounded(np.array([0.2, 10.6]), "bytes/s").tolist() == [1.0, 11.0]
    assert rounded(np.array([1.23456789012e-3]), "s").tolist() == [0.001234568]
    assert rounded(np.array([1.5]), "samples/s").tolist() == [1.5]


def test_a_column_is_read_once(tmp_path: Path) -> None:
    """Cells may carry units; the numbers are kept."""
    path = tmp_path / "rates.csv"
    path.write_text("node,rate\n1,8 Mbit/s\n2,1000\n\n")
    distribution = RATE.finish(Empirical(path=str(path), column="rate"))
    path.unlink()
    assert distribution.quantiles(np.array([0.1, 0.9])).tolist() == [1000.0, 1_000_000.0]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("node,speed\n1,2\n", "column = rate: not in rates.csv; its columns are node, speed"),
        ("", "column = rate: not in rates.csv; its columns are none"),
        ("rate\n", "has no rows below the line of column names"),
        ("rate\n5\nfast\n", "column = fast: line 3 of rates.csv is not a quantity; write for example `20 Mbit/s`"),
        ("rate\n-5\n", "column = -5: line 2 of rates.csv must be > 0"),
        ("rate\nnan\n", "line 2 of rates.csv must be a finite number"),
        ("node,rate\n1\n", "line 2 of rates.csv is not a quantity"),
    ],
)
def test_a_bad_column_is_told_with_its_line(tmp_path: Path, text: str, expected: str) -> None:
    """Missing columns, words instead of numbers, numbers out of bounds."""
    path = tmp_path / "rates.csv"
    path.write_text(text)
    with pytest.raises(UserError) as caught:
        RATE.finish(Empirical(path=str(path), column="rate"))
    assert expected in caught.value.problems[0]


def test_unreadable_files_are_told(tmp_path: Path) -> None:
    """A folder, binary rubbish, a file that is gone."""
    (tmp_path / "b.csv").write_bytes(b"rate\n\xff\xfe\n")
    for name in (".", "b.csv", "gone.csv"):
        with pytest.raises(UserError, match="cannot be read as CSV"):
            RATE.finish(Empirical(path=str(tmp_path / name), column="rate"))


def test_many_bad_cells_are_one_mistake(tmp_path: Path) -> None:
    """Five lines and a count."""
    path = tmp_path / "rates.csv"
    path.write_text("rate\n" + "x\n" * 1000)
    with pytest.raises(UserError) as caught:
        RATE.finish(Empirical(path=str(path), column="rate"))
    assert len(caught.value.problems) == 6
    assert "995 more" in caught.value.problems[-1]


def test_reversed_bounds_are_refused() -> None:
    """A uniform distribution needs low <= high."""
    with pytest.raises(UserError, match="high = 1: must be >= low, which is 2"):
        Uniform(low=2.0, high=1.0)


def test_normal_quantiles_are_those_of_scipy() -> None:
    """In the middle, in both tails, and for a single number."""
    from scipy.special import ndtri

    tails = 10.0 ** -np.linspace(0.31, 300, 20_000)
    u = np.concatenate([np.linspace(1e-4, 1 - 1e-4, 20_001), tails, 1.0 - tails[tails > 1e-15]])
    np.testing.assert_allclose(normal_quantiles(u), ndtri(u), rtol=4e-15, atol=1e-16)
    assert normal_quantiles(np.array(0.975)) == pytest.approx(1.959963984540054, rel=1e-15)
