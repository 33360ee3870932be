"""The page of a run and the comparison of three, in a real browser."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from scenarios.cli.main import main
from scenarios.running.live_page import serve_live_page
from scenarios.running.progress import RoundDone
from scenarios.serving.loopback import serving
from scenarios.serving.site import Site

pytestmark = pytest.mark.slow
CHARTS = (
    *("accuracy-rounds", "accuracy-time", "bytes-rounds", "bytes-nodes", "time-rounds", "load-rounds"),
    *("timeline", "topology", "gap"),
    *("dropouts-rounds", "dropouts-moments", "epsilon-views", "spent-published", "spent-rigorous", "seen"),
)


@pytest.fixture(scope="module")
def report(run_folders: list[Path]) -> Path:
    """The page of one run."""
    assert main(["report", str(run_folders[1])]) == 0
    return run_folders[1] / "report.html"


@pytest.fixture(scope="module")
def shown(visit: Any, report: Path) -> Any:
    """That page, opened once: every test leaves it usable for the next."""
    return visit(report)


def test_the_page_draws_every_section_and_requests_nothing(visit: Any, report: Path, shown: Any) -> None:
    """No console message, no request but the page itself, a drawing in every chart, both themes."""
    for opened in (shown, visit(report, "dark")):
        assert opened.complaints == []
        assert [url for url in opened.requests if not url.startswith(("file:", "data:", "blob:"))] == []
        drawn = opened.page.eval_on_selector_all(".plot[data-drawn] .main-svg", "found => found.length")
        assert drawn >= len(CHARTS)
        for name in CHARTS:
            assert opened.page.locator(f"#{name}[data-drawn]").count() == 1, name
            assert opened.page.locator(f"#{name}").get_attribute("aria-label")


def test_the_theme_can_be_switched(shown: Any) -> None:
    """The button turns the ground dark and back."""
    page = shown.page
    ground = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(ground)
    page.click("#theme")
    assert page.evaluate(ground) != light
    page.click("#theme")
    assert page.evaluate(ground) == light


def test_numbers_on_the_page_are_those_of_the_folder(shown: Any, report: Path) -> None:
    """What the charts hold equals the tables and the summary."""
    import pyarrow.parquet as pq

    page, folder = shown.page, report.parent
    summary = json.loads((folder / "summary.json").read_text())
    rounds = pq.read_table(folder / "rounds.parquet").to_pydict()
    mean = page.evaluate("Array.from(document.getElementById('accuracy-rounds').data.at(-1).y)")
    assert mean == rounds["accuracy_after_mean"]
    sent = page.evaluate("PV.data.rounds.bytes")
    assert sum(sum(amounts) for amounts in sent.values()) == summary["bytes"]["sent"] == sum(rounds["bytes"])
    spans = page.evaluate("PV.pictureSpans.columns.node.length")
    assert spans == pq.read_table(folder / "spans.parquet").num_rows
    messages = page.evaluate("Array.from(PV.pictureMessages.columns.size_bytes).reduce((a, b) => a + b, 0)")
    assert messages == summary["bytes"]["sent"]
    text = page.inner_text("#headline")
    assert "0.610 collected model" in text
    assert summary["headline"]["epsilon"]["verdict"] in text


def test_the_timeline_zooms_and_shows_messages(shown: Any) -> None:
    """Buttons, keys and the mouse change the shown time; a chosen node brings arrows; rounds can be chosen."""
    page = shown.page
    width = "(() => { const [a, b] = document.getElementById('timeline').layout.xaxis.range; return b - a; })()"
    wide = page.evaluate(width)
    page.click("#zoom-in")
    assert page.evaluate(width) == pytest.approx(wide / 2)
    page.focus("#timeline")
    page.keyboard.press("+")
    assert page.evaluate(width) == pytest.approx(wide / 4)
    page.click("#zoom-reset")
    assert page.evaluate(width) == pytest.approx(wide, rel=0.05)
    box = page.locator("#timeline .nsewdrag").first.bounding_box()
    y = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + box["width"] * 0.3, y)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.6, y, steps=4)
    page.mouse.up()
    page.wait_for_function(f"{width} < {wide * 0.5}")
    traces = "document.getElementById('timeline').data.map(trace => trace.name)"
    assert "critical path" in page.evaluate(traces)
    assert "2 delivered" not in page.evaluate(traces)
    page.select_option("#timeline-node", "0")
    assert "3 delivered" in page.evaluate(traces)
    page.select_option("#timeline-round", "3")
    assert "Round 3" in page.inner_text("#timeline-status")


def test_the_slider_changes_the_graph_and_nodes_stay(shown: Any) -> None:
    """Another round has other edges between nodes at the same places; colours and the matrix can be chosen."""
    page = shown.page
    places = "JSON.stringify(document.getElementById('topology').data.at(-1).x)"
    edges = "JSON.stringify(document.getElementById('topology').data.map(trace => trace.x))"
    before, stood = page.evaluate(edges), page.evaluate(places)
    page.focus("#topology-round")
    page.keyboard.press("ArrowRight")
    assert page.inner_text("#topology-number") == "2"
    assert page.evaluate(edges) != before
    assert page.evaluate(places) == stood
    for colour in ("traffic", "accuracy", "published", "rigorous"):
        page.select_option("#topology-colour", colour)
    page.select_option("#topology-edges", "fate")
    assert "lost" in page.inner_text("#topology-status")
    page.select_option("#topology-view", "matrix")
    assert page.evaluate("document.getElementById('topology').data[0].type") == "heatmap"


def test_every_fold_lists_its_numbers(shown: Any) -> None:
    """The tables behind the charts fill when opened."""
    page = shown.page
    page.eval_on_selector_all("details.data", "folds => folds.forEach(fold => { fold.open = true; })")
    page.wait_for_timeout(200)
    filled = page.eval_on_selector_all("details.data table tbody", "bodies => bodies.filter(b => b.rows.length).length")
    assert filled == len(CHARTS)


def test_three_runs_are_compared(visit: Any, run_folders: list[Path], tmp_path: Path) -> None:
    """Same axes for all, a table with differences, and a slider that tells what accuracy costs."""
    out = tmp_path / "comparison.html"
    assert main(["report", *map(str, run_folders), "-o", str(out)]) == 0
    opened = visit(out)
    page = opened.page
    assert opened.complaints == []
    assert page.evaluate("document.getElementById('compare-rounds').data.length") == 3
    assert page.locator("#figures thead th").all_inner_texts()[-1] == "fast"
    # All three columns are in sight at 1366 pixels, and differences only after the switch.
    sizes = "(box => [box.scrollWidth, box.clientWidth])(document.querySelector('#figures .scroll'))"
    needed, there = page.evaluate(sizes)
    assert needed <= there
    assert not page.locator(".difference").first.is_visible()
    page.locator("#differences").check()
    assert page.locator(".difference").first.is_visible()
    # On a small screen the table scrolls under its first column, and the page itself does not.
    page.set_viewport_size({"width": 400, "height": 800})
    before = page.locator("#figures tbody th").first.bounding_box()
    page.evaluate("document.querySelector('#figures .scroll').scrollLeft = 200")
    assert page.locator("#figures tbody th").first.bounding_box() == before
    # Charts follow a new width a moment later.
    for _ in range(50):
        if page.evaluate("document.documentElement.scrollWidth") <= 400:
            break
        page.wait_for_timeout(100)
    assert page.evaluate("document.documentElement.scrollWidth") <= 400
    assert "not reached" in page.inner_text("#cost-table")
    page.locator("#cost-target").fill("0.3")
    assert "not reached" not in page.inner_text("#cost-table")
    reached = page.locator("#cost-table tbody tr").nth(2).inner_text()
    assert reached.split("\t")[:2] == ["fast", "1"]


def test_hostile_names_stay_text(visit: Any, hostile_folder: Path, hostile_name: str, tmp_path: Path) -> None:
    """Markup in a scenario's name is shown as text on both kinds of page and runs nothing."""
    assert main(["report", str(hostile_folder)]) == 0
    out = tmp_path / "comparison.html"
    assert main(["report", str(hostile_folder), str(hostile_folder), "-o", str(out)]) == 0
    for path in (hostile_folder / "report.html", out):
        opened = visit(path)
        assert opened.complaints == []
        assert opened.page.locator("main img, main script").count() == 0
        assert "<script>alert(1)</script>" in opened.page.inner_text("h1")


def test_pictures_alone_open_too(visit: Any, run_folders: list[Path], tmp_path: Path) -> None:
    """`topology -o t.html` and `timeline -o t.html` are pages with one picture."""
    for command, argument in (("topology", "--round"), ("timeline", "--rounds")):
        out = tmp_path / f"{command}.html"
        assert main([command, str(run_folders[0]), argument, "2", "-o", str(out)]) == 0
        opened = visit(out)
        assert opened.complaints == []
        assert "Round 2" in opened.page.inner_text(f"#{command}-status")


def test_a_graph_shows_directions_figures_and_unreached_members(visit: Any, tmp_path: Path) -> None:
    """A directed ring of which some train: arrowheads along the edges, crosses, and the figures of each round."""
    scenario = tmp_path / "ring.yaml"
    scenario.write_text(
        "{name: ring, rounds: 3, clients: 12, seed: 3, data: {name: synthetic, samples: 240}, model: linear, "
        "learning: none, protocol: {kind: gossip, train_per_round: 8, graph: {kind: ring, directed: true}, "
        "redraw: never}}"
    )
    assert main(["topology", str(scenario), "-o", str(tmp_path / "ring.html")]) == 0
    opened = visit(tmp_path / "ring.html")
    page = opened.page
    traces = page.evaluate(
        "document.getElementById('topology').data.map(one => ({name: one.name, x: Array.from(one.x), "
        "y: Array.from(one.y), symbol: one.marker && one.marker.symbol, angle: one.marker && one.marker.angle}))"
    )
    arrows = next(trace for trace in traces if trace["symbol"] == "arrow")
    for x, y, angle in zip(arrows["x"], arrows["y"], arrows["angle"], strict=True):
        # Clients stand clockwise from the top and send to the next: along the tangent.
        assert math.cos(math.radians(angle - 90) - math.atan2(x, y)) > 0.99
    crosses = next(trace for trace in traces if trace["name"] == "reached no node")
    assert len(crosses["x"]) == 8 - len(arrows["x"])
    assert page.inner_text("#topology-figures").startswith("ring redrawn never: nodes 8, edges ")
    first = page.inner_text("#topology-figures")
    page.focus("#topology-round")
    page.keyboard.press("ArrowRight")
    assert page.inner_text("#topology-figures") != first
    assert opened.complaints == []


def test_a_report_is_printed_as_pdf(browser: Any, run_folders: list[Path], tmp_path: Path) -> None:
    """By the installed browser; other endings are refused with those that can be written."""
    out = tmp_path / "report.pdf"
    assert main(["report", str(run_folders[0]), "-o", str(out)]) == 0
    assert out.read_bytes().startswith(b"%PDF-")
    assert main(["report", str(run_folders[0]), "-o", str(tmp_path / "report.doc")]) == 2


def test_without_a_browser_a_pdf_is_refused_with_a_cure(
    run_folders: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It says what can be written instead, and writes nothing."""
    monkeypatch.setenv("PATH", str(tmp_path))
    assert main(["report", str(run_folders[0]), "-o", str(tmp_path / "report.pdf")]) == 2
    assert "write .html and print it" in capsys.readouterr().err
    assert not (tmp_path / "report.pdf").exists()


@pytest.mark.parametrize("width", [1280, 400])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_all_runs_at_a_glance(browser: Any, run_folders: list[Path], width: int, scheme: str) -> None:
    """The served page lists runs, searches, and compares what is ticked; no complaint, no sideways scroll."""
    complaints: list[str] = []
    with serving(Site(run_folders[0].parent).respond) as port:
        context = browser.new_context(color_scheme=scheme, viewport={"width": width, "height": 800})
        page = context.new_page()
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.goto(f"http://127.0.0.1:{port}/")
        page.wait_for_selector("body[data-ready]")
        rows = page.locator("#rows tr")
        assert rows.count() >= len(run_folders)
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        figures = rows.first.locator(".narrow" if width == 400 else "td.number").first
        assert figures.is_visible()
        assert "0.6" in figures.inner_text()
        name = rows.first.locator("a").inner_text()
        page.fill("#search", name.split(",")[0])
        assert 1 <= rows.count() <= len(run_folders)
        page.fill("#search", "")
        assert page.locator("#compare").is_disabled()
        for place in range(2):
            rows.nth(place).locator("input").check()
        page.locator("#compare").click()
        page.wait_for_selector("body[data-ready]", timeout=60_000)
        assert page.locator("#figures").count() == 1
        context.close()
    assert complaints == []


def test_the_watched_page_has_axes_and_its_last_round(browser: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """Ticks on both axes, both epsilons, and the round that came right before the end."""
    first = {"round": 1, "end_s": 10.0, "accuracy_after_mean": 0.5}
    with serve_live_page(True) as live:
        url = capsys.readouterr().err.split()[-1]
        live.begin("watched", "Why?", 3)
        page = browser.new_context().new_page()
        live.round(RoundDone(first, 100, 0, 1.5, 2e4))
        page.goto(url)
        page.wait_for_selector("#rows tr")
        live.round(RoundDone({**first, "round": 2, "end_s": 30.0}, 200, 0, 3.0, 4e4))
    # The block has ended, and with it the server, after the page has asked once more.
    page.wait_for_timeout(300)
    texts = page.locator("#chart text").all_text_contents()
    assert {"0.00", "1.00", "simulated time"} <= set(texts)
    assert page.locator("#rows tr").first.locator("td").all_inner_texts()[0] == "2"
    assert page.locator("#rows tr").first.locator("td").all_inner_texts()[-2:] == ["3", "4e4"]
    assert "The run has ended" in page.inner_text("#status")
    assert "mean accuracy" in texts


def test_all_watched_pages_learn_of_the_end(browser: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """Ticks stand at whole minutes; a second page is told too; a page whose run is gone offers no dead link."""
    with serve_live_page(True) as live:
        url = capsys.readouterr().err.split()[-1]
        live.begin("watched", "Why?", 9)
        live.write_to(Path("runs/one"))
        pages = [browser.new_context().new_page() for _ in range(2)]
        for number in range(1, 8):
            record = {"round": number, "end_s": 170.0 * number, "accuracy_after_mean": 0.1 * number}
            live.round(RoundDone(record, 100, 0, None, None))
        for page in pages:
            page.goto(url)
            page.wait_for_selector("#rows tr")
        assert pages[0].locator("#report a").count() == 1
        ticks = [text for text in pages[0].locator("#chart text").all_text_contents() if text.endswith(" min")]
        assert ticks == ["0 min", "5 min", "10 min", "15 min"]
        # On a phone every figure is in sight, and the axis has more than its origin.
        pages[1].set_viewport_size({"width": 400, "height": 800})
        pages[1].wait_for_timeout(1200)
        table = pages[1].locator(".scroll")
        assert table.evaluate("one => one.scrollWidth - one.clientWidth") <= 0
        assert len([text for text in pages[1].locator("#chart text").all_text_contents() if " min" in text]) >= 3
        killed = browser.new_context().new_page()
        killed.goto(url)
        killed.wait_for_selector("#rows tr")
        killed.route("**/state.json", lambda route: route.abort())
        killed.locator("#status", has_text="ended or was stopped").wait_for()
        assert killed.locator("#report a").count() == 0
        assert killed.inner_text("#report code") == "peerveil report runs/one"
        pages[0].wait_for_timeout(100)
    for page in pages:
        page.wait_for_timeout(300)
        assert page.inner_text("#status").endswith("The run has ended.")
        assert page.locator("#report a").count() == 0
