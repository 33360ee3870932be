"""The page of a sweep, in a real browser."""

from __future__ import annotations

import json
import shutil
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from scenarios.cli.main import main
from scenarios.metrics.comparison import FIGURES
from scenarios.sweeps.pareto import pareto_front

CHARTS = ("heat", "lines", "coordinates", "pareto")


def _row(sigma: float, cohort: int, seed: int, hostile: str) -> dict[str, Any]:
    row: dict[str, Any] = {"cell": f"{sigma}{cohort}{seed}", "base": hostile, "noise.sigma": sigma, "cohort": cohort}
    row |= {"seed": seed, "state": "done", **dict.fromkeys(FIGURES), "folder": f"../cells/a b{sigma}", "message": None}
    row |= {"accuracy": 0.9 - sigma + 0.01 * seed, "worst_peer": 2 / sigma if sigma else float("inf")}
    return row | {"client_median": 100.0 * cohort, "simulated_s": 3.0 + cohort, "model": 1.0, "published": 8.0}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, hostile_name: str, run_folders: list[Path]) -> Path:
    """A sweep told by hand: three sigmas, two cohorts, two seeds; its base has a hostile name. Sigma 0.5 has a run."""
    path = tmp_path_factory.mktemp("sweep")
    shutil.copytree(run_folders[0], path.parent / "cells" / "a b0.5")
    rows = [
        _row(sigma, cohort, seed, hostile_name) for seed in (1, 2) for sigma in (0.0, 0.1, 0.5) for cohort in (5, 9)
    ]
    other = [_row(0.1, 5, 1, "plain")]
    pq.write_table(pa.Table.from_pylist(rows + other), path / "runs.parquet")
    content = {"format": 1, "name": hostile_name, "question": "Why?", "axes": ["noise.sigma", "cohort"], "remarks": []}
    (path / "cells.json").write_text(json.dumps(content))
    return path


@pytest.mark.slow
def test_the_page_draws_all_charts_and_requests_nothing(visit: Any, folder: Path) -> None:
    """No message, no request but the page; a change of figure and axes draws anew; a hostile name stays text."""
    assert main(["report", str(folder)]) == 0
    opened = visit(folder / "report.html")
    page = opened.page
    assert opened.complaints == []
    assert [url for url in opened.requests if not url.startswith(("file:", "data:", "blob:"))] == []
    for name in CHARTS:
        assert page.locator(f"#{name}[data-drawn]").count() == 1, name
    # Every axis has its name, also the last; what is complete is no note.
    names = page.locator("#coordinates .xtick text")
    assert all(names.nth(place).is_visible() for place in range(names.count()))
    assert page.locator("ul.notes").count() == 0
    page.select_option("#across", "1")
    page.select_option("#down", "2")
    heat = "document.getElementById('heat').data[0]"
    assert page.evaluate("document.getElementById('heat').layout.xaxis.ticktext") == ["0.0", "0.1", "0.5"]
    # Mean over two seeds of 0.9 - sigma + seed / 100.
    assert page.evaluate(f"{heat}.z[0]") == pytest.approx([0.915, 0.815, 0.415])
    page.select_option("#figure", "worst_peer")
    assert page.evaluate(f"{heat}.text[0]") == ["inf", "20", "4"]
    lines = "document.getElementById('lines').layout.annotations"
    assert page.evaluate(f"{lines}[0].text") == "not drawn: 2 infinite values"
    assert opened.complaints == []


@pytest.mark.slow
def test_a_narrow_page_can_be_read(visit: Any, folder: Path) -> None:
    """Labels of neighbouring axes do not touch; only axes that are not drawn are held at a value."""
    assert main(["report", str(folder)]) == 0
    page = visit(folder / "report.html", "light", 400).page
    boxes = "all => all.map(one => one.getBoundingClientRect()).map(box => [box.left, box.right])"
    for labels in ("#coordinates .xtick text", "#coordinates .annotation-text"):
        places = sorted(set(map(tuple, page.eval_on_selector_all(labels, boxes))))
        assert all(left[1] <= right[0] for left, right in pairwise(places) if right[0] - left[0] > 5), labels
    # Names of axes stand below the least values.
    edges = "all => all.map(one => one.getBoundingClientRect()).map(box => [box.top, box.bottom])"
    names, texts = (
        page.eval_on_selector_all(f"#coordinates {part}", edges) for part in (".xtick text", ".annotation-text")
    )
    assert max(bottom for _, bottom in texts) <= min(top for top, _ in names)
    held = [page.locator(f"#hold-{place}") for place in range(3)]
    assert [one.is_visible() for one in held] == [True, False, False]
    page.select_option("#across", "0")
    assert [one.is_visible() for one in held] == [False, True, False]
    assert page.evaluate("document.documentElement.scrollWidth") <= 400


@pytest.mark.slow
@pytest.mark.parametrize("width", [400, 1280])
def test_a_wide_table_scrolls_beside_its_first_column(visit: Any, folder: Path, width: int) -> None:
    """Long settings wrap, the page itself is never wider than the window, and names stay in sight."""
    long = "{kind: crd, beta: 0.9, rounding: floor, driven_by: {kind: public_loss, share: 0.5}}"
    table = pq.read_table(folder / "runs.parquet")
    wide = folder.parent / f"wide-{width}"
    wide.mkdir()
    named = table.set_column(1, "base", pa.array([f"{long} {place % 2}" for place in range(table.num_rows)]))
    pq.write_table(named, wide / "runs.parquet")
    (wide / "cells.json").write_text((folder / "cells.json").read_text())
    assert main(["report", str(wide)]) == 0
    page = visit(wide / "report.html", "light", width).page
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    for section in ("answer", "cells"):
        left = page.evaluate(
            f"""(() => {{ const box = document.querySelector("#{section} .scroll"); box.scrollLeft = 200;
            const name = box.querySelector("tbody th").getBoundingClientRect();
            return [name.left - box.getBoundingClientRect().left, name.width / box.clientWidth]; }})()"""
        )
        assert abs(left[0]) < 1, section
        assert left[1] < 0.5, section


@pytest.mark.slow
def test_a_click_on_a_cell_opens_its_run(visit: Any, folder: Path) -> None:
    """In a page of its own, also if the sweep's page lies elsewhere; a run without a page has a row that says so."""
    elsewhere = folder / "else where" / "page.html"
    elsewhere.parent.mkdir()
    assert main(["report", str(folder), "-o", str(elsewhere)]) == 0
    page = visit(elsewhere).page
    page.select_option("#across", "1")
    with page.expect_popup() as opening:
        _click_heat(page, 0.9)
    opening.value.wait_for_selector("#content")
    assert opening.value.title() == "slow, seed 7"
    _click_heat(page, 0.1)
    row = page.locator("tr:target")
    row.wait_for()
    assert "(no page)" in row.inner_text()
    assert page.locator("#cells a[href$='report.html']").count() == 4


@pytest.mark.slow
def test_axes_that_move_together_are_one(visit: Any, tmp_path: Path) -> None:
    """The charts are full at once; a base without an axis is found wherever that axis is held."""
    rows = [
        _row(sigma, cohort, 1, base) | {"rate": 1 / cohort, "noise.sigma": None if base == "plain" else sigma}
        for base in ("private", "plain")
        for sigma in (0.1, 0.5)[: 1 if base == "plain" else 2]
        for cohort in (5, 9)
    ]
    order = ["cell", "base", "noise.sigma", "cohort", "rate", "seed"]
    rows = [{name: row[name] for name in [*order, *row]} for row in rows]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "runs.parquet")
    content = {"format": 1, "name": "zip", "axes": order[2:5], "together": [["cohort", "rate"]], "remarks": []}
    (tmp_path / "cells.json").write_text(json.dumps(content))
    assert main(["report", str(tmp_path)]) == 0
    opened = visit(tmp_path / "report.html")
    page, heat = opened.page, "document.getElementById('heat')"
    assert page.evaluate(f"{heat}.layout.yaxis.title.text") == "cohort, rate"
    assert page.evaluate(f"{heat}.data[0].z.flat().every(Number.isFinite)")
    assert page.evaluate(f"{heat}.data[0].z.flat().length") == 4
    page.select_option("#across", "2")
    page.select_option("#down", "0")
    assert page.evaluate(f"{heat}.data[0].z.flat().every(Number.isFinite)")
    # A figure that no run has leaves a sentence, and the chart comes back.
    page.select_option("#view", "published")
    page.evaluate("PV.data.combinations.forEach(one => { one.kept = one.figures.model; one.figures.model = {}; })")
    page.select_option("#view", "model")
    assert "No combination" in page.inner_text("#pareto")
    page.select_option("#view", "published")
    assert page.locator("#pareto .main-svg").count() > 0
    assert "No combination" not in page.inner_text("#pareto")
    assert opened.complaints == []


def _click_heat(page: Any, across: float) -> None:
    page.locator("#heat").scroll_into_view_if_needed()
    box = page.locator("#heat .nsewdrag").first.bounding_box()
    place = box["x"] + across * box["width"], box["y"] + 0.25 * box["height"]
    page.mouse.move(*place)
    page.mouse.click(*place)


def test_the_front_is_that_of_brute_force() -> None:
    """A point is on it if no other is as good in everything and better in something; holes are on none."""
    points = [
        {"accuracy": 0.9, "client_median": 10.0, "simulated_s": 5.0, "model": 3.0},
        {"accuracy": 0.9, "client_median": 10.0, "simulated_s": 5.0, "model": 2.0},
        {"accuracy": 0.95, "client_median": 20.0, "simulated_s": 9.0, "model": float("inf")},
        {"accuracy": 0.5, "client_median": 20.0, "simulated_s": 9.0, "model": 2.0},
        {"accuracy": 0.99, "client_median": 1.0, "simulated_s": 1.0, "model": None},
    ]
    assert pareto_front(points, "model") == [1, 2]  # type: ignore[arg-type]
