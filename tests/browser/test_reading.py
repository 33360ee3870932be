"""Pages can be read at any width and in both themes: nothing cut, nothing squeezed, ticks that mean something."""

from __future__ import annotations

import math
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

import pytest

from scenarios.cli.main import main
from scenarios.reproductions.pictures import draw

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
    dropouts = page.locator("#dropouts-rounds .ytick text").all_text_contents()
    assert dropouts == ["0", "1"]
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


def _least_distance(colours: list[str]) -> float:
    shades = [[int(colour[at : at + 2], 16) for at in (1, 3, 5)] for colour in colours]
    return min(math.dist(*pair) for pair in combinations(shades, 2))


@pytest.fixture(scope="module")
def led(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of a run with handovers: every kind of message that a leader's round waits for."""
    path = tmp_path_factory.mktemp("led") / "run"
    changes = ["--set", "protocol.kind=rotating_leader", "--set", "learning=none", "--set", "rounds=3"]
    assert main(["run", "tiny", *changes, "--quiet", "--out", str(path)]) == 0
    assert main(["report", str(path)]) == 0
    return path / "report.html"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_parts_of_a_bar_have_colours_of_their_own(visit: Any, led: Path, scheme: str) -> None:
    """Waiting for a handover is not waiting for an update; a dark theme's blues are told apart."""
    page = visit(led, scheme, 1280).page
    for chart in ("bytes-rounds", "time-rounds"):
        parts = page.evaluate(f"document.getElementById('{chart}').data.map(one => [one.name, one.marker.color])")
        assert any("handover" in name for name, _ in parts), chart
        assert _least_distance([colour for _, colour in parts]) > 55, (chart, parts)
    lines = page.evaluate("PV.cycle.map(one => (PV.isDark() && PV.inTheDark[one]) || one)")
    assert _least_distance(lines) > 55, lines


def test_numbers_on_bars_can_be_read_in_the_dark(visit: Any, pages: dict[str, Path]) -> None:
    """Almost black on the bars' lighter colours; plotly's own choice is a middle grey."""
    page = visit(pages["three"], "dark", 1280).page
    fills = page.eval_on_selector_all("#cost-bytes .bartext", "all => all.map(one => one.style.fill)")
    assert fills
    assert set(fills) == {"rgb(16, 20, 24)"}


def test_plots_of_reproductions_are_whole(browser: Any, tmp_path: Path) -> None:
    """Beside long names of rows the axis is short, and its caption was cut."""
    settings = {"base": "inversion-cifar10", "update.0.kind": "clip_layers", "update.1.multiplier": 0.0036}
    row = {"settings": settings, "mean": 16.0, "low": 11.0, "high": 22.0, "printed": 20.0}
    draw({"values": [row, row], "figure": "attacks.0.results.0.psnr_db"}, tmp_path / "rows.svg")
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.goto((tmp_path / "rows.svg").as_uri())
    whole = page.locator("svg").bounding_box()
    texts = page.eval_on_selector_all("g[id^=text_]", "all => all.map(one => one.getBoundingClientRect())")
    assert len(texts) > 4
    assert all(whole["x"] <= box["left"] and box["right"] <= whole["x"] + whole["width"] for box in texts)
    page.close()


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
