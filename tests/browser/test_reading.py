"""Pages can be read at any width and in both themes: nothing cut, nothing squeezed, ticks that mean something."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from scenarios.cli.main import main

pytestmark = pytest.mark.slow
WIDTHS = [1280, 400]
OUTSIDE = """all => all.flatMap(one => {
  const box = one.getBoundingClientRect(), inside = one.closest("figure").getBoundingClientRect();
  return box.width && (box.right > inside.right + 1 || box.left < inside.left - 1) ? [one.textContent] : [];
})"""
NARROWEST = "all => Math.min(...all.map(one => one.getBoundingClientRect().width))"


@pytest.fixture(scope="module")
def pages(run_folders: list[Path], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A run's page and a comparison of three."""
    base = tmp_path_factory.mktemp("pages")
    assert main(["report", str(run_folders[0]), "-o", str(base / "run.html")]) == 0
    assert main(["report", *map(str, run_folders), "-o", str(base / "three.html")]) == 0
    return {"run": base / "run.html", "three": base / "three.html"}


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", ["run", "three"])
def test_nothing_is_cut(visit: Any, pages: dict[str, Path], name: str, width: int) -> None:
    """Legends and titles of axes stay in their frames, the page does not scroll sideways, cells have room."""
    page = visit(pages[name], "dark", width).page
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    for texts in (".legendtext", ".xtitle", ".ytitle", ".annotation-text"):
        assert page.eval_on_selector_all(texts, OUTSIDE) == []
    if name == "run" and width == 400:
        assert page.eval_on_selector_all(".facts td", NARROWEST) > 100
        assert page.eval_on_selector_all(".facts th", NARROWEST) > 60


@pytest.mark.parametrize("width", WIDTHS)
def test_all_three_runs_are_in_sight(visit: Any, pages: dict[str, Path], width: int) -> None:
    """Without scrolling; keys of settings are broken between words only."""
    page = visit(pages["three"], "light", width).page
    heads = page.locator("#figures thead th")
    assert heads.count() == 4
    box = heads.nth(3).bounding_box()
    assert box["x"] + box["width"] <= width


@pytest.mark.parametrize("width", WIDTHS)
def test_ticks_mean_something(visit: Any, pages: dict[str, Path], width: int) -> None:
    """Rounds and counts are whole; labels of a log axis are numbers in rising order, never a bare digit of a decade."""
    page = visit(pages["run"], "light", width).page
    for chart in ("accuracy-rounds", "bytes-rounds", "time-rounds", "gap", "spent-rigorous"):
        ticks = page.locator(f"#{chart} .xtick text").all_text_contents()
        assert [float(tick) % 1 for tick in ticks] == [0.0] * len(ticks), chart
        assert len(ticks) >= 2
    counts = page.locator("#seen .colorbar .cbaxis text").all_text_contents()
    assert counts
    assert all(float(count) % 1 == 0 for count in counts if count != "updates")
    for axis in ("#epsilon-views .xtick text", "#spent-rigorous .ytick text"):
        values = [float(text) for text in page.locator(axis).all_text_contents()]
        assert len(values) >= 2, axis
        assert values == sorted(values), axis
    # Views are proved at 60, 40, 30 and 20, and claimed at 1.5: the axis spans them.
    assert page.evaluate("document.getElementById('epsilon-views').layout.xaxis.range.map(end => 10 ** end)")[1] > 60


def test_services_without_data_cover_nothing(visit: Any, pages: dict[str, Path]) -> None:
    """Proxy and server are drawn with the messages that they exchange, not in the way of others' edges."""
    page = visit(pages["run"], "light", 1280).page
    drawn = "document.getElementById('topology').data.filter(one => one.customdata).map(one => one.name)"
    assert "proxy" not in page.evaluate(drawn)
    page.check("#topology-control")
    assert "proxy" in page.evaluate(drawn)


def test_equal_lines_are_all_seen(visit: Any, pages: dict[str, Path]) -> None:
    """The first of a comparison is the widest, so that it shows beside a later one on top of it."""
    page = visit(pages["three"], "light", 1280).page
    widths = page.evaluate("document.getElementById('compare-rounds').data.map(one => one.line.width)")
    assert widths == sorted(widths, reverse=True)
    assert len(set(widths)) == 3


def test_equal_questions_and_transports_are_said_once(pages: dict[str, Path]) -> None:
    """All three runs ask the same."""
    text = pages["three"].read_text(encoding="utf-8")
    assert text.count("Does it show?</") == 1
    assert '<th scope="row">transport</th>' not in text


@pytest.mark.parametrize("width", WIDTHS)
def test_names_of_rows_and_bars_do_not_touch(visit: Any, tmp_path: Path, width: int) -> None:
    """Forty peers in a timeline: as many names as there is room for; proxy and server share one below their bars."""
    changes = ["--set", "clients=40", "--set", "data.samples=400", "--set", "protocol.train_per_round=36"]
    assert main(["run", "tiny", *changes, "--set", "learning=none", "--quiet", "--out", str(tmp_path / "run")]) == 0
    assert main(["report", str(tmp_path / "run")]) == 0
    page = visit(tmp_path / "run" / "report.html", "light", width).page
    boxes = "all => all.map(one => one.getBoundingClientRect())"
    rows = sorted((box["top"], box["bottom"]) for box in page.eval_on_selector_all("#timeline .ytick text", boxes))
    assert len(rows) > 10
    assert all(upper[1] <= lower[0] + 2 for upper, lower in pairwise(rows))
    names = page.locator("#bytes-nodes .xtick text")
    assert names.last.text_content() == "proxy,server"
    assert names.last.is_visible()
    bars = sorted(box["left"] for box in page.eval_on_selector_all("#bytes-nodes .xtick text", boxes))
    assert min(right - left for left, right in pairwise(bars)) > 12
