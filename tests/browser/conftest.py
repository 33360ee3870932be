"""A real browser and the pages of small runs, made once for all tests of this folder."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from p2p.log import records
from p2p.log.log import Log
from p2p.random_streams import stream
from scenarios.metrics.headline.run_facts import RunFacts
from scenarios.run_folder.summary import summarise
from scenarios.run_folder.writer import RunFolder

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

_FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


@dataclass(frozen=True)
class Opened:
    """A page with what went wrong on it, and what it asked others for."""

    page: Page
    complaints: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Debian's Chromium; tests that need it are skipped where it is missing."""
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    path = shutil.which("chromium") or shutil.which("chromium-browser")
    if path is None:
        pytest.skip("chromium is not installed: apt-get install chromium")
    with sync_api.sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=path, args=list(_FLAGS))
        yield started
        started.close()


class Opener:
    """Opens pages from disk and listens to their troubles."""

    def __init__(self, browser: Browser) -> None:
        self._browser = browser

    def __call__(self, path: Path, scheme: str = "light", width: int = 1366) -> Opened:
        """Opens a page and waits until every chart is drawn."""
        context = self._browser.new_context(color_scheme=scheme, viewport={"width": width, "height": 900})  # type: ignore[arg-type]
        opened = Opened(context.new_page())
        page = opened.page
        page.on("console", lambda message: opened.complaints.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: opened.complaints.append(str(error)))
        page.on("dialog", lambda dialog: opened.complaints.append(dialog.message))
        page.on("request", lambda request: opened.requests.append(request.url))
        page.goto(path.as_uri())
        page.wait_for_selector("body[data-ready]", timeout=60_000)
        return opened


@pytest.fixture(scope="session")
def visit(browser: Browser) -> Opener:
    """Opens pages."""
    return Opener(browser)


@dataclass(frozen=True, kw_only=True)
class Evaluation:
    """The accuracy whose price is asked for."""

    target_accuracy: float = 0.5


@dataclass(frozen=True, kw_only=True)
class Story:
    """The few things of a scenario that a summary reads."""

    name: str
    seed: int = 7
    question: str = "Does it show?"
    rounds: int = 3
    clients: int = 6
    evaluation: Evaluation = field(default_factory=Evaluation)


def _make_log(seed: int, clients: int = 6, rounds: int = 3, gain: float = 0.2) -> Log:
    """A gossip run told by hand: everyone trains, sends to the next two, and waits; client 1 drops out each round."""
    random, log = stream(seed, "browser"), Log()
    for number in range(1, rounds + 1):
        start_s = 10.0 * (number - 1)
        _add_round(log, number, start_s, gain * number)
        for node in range(clients):
            _add_client(log, number, node, clients, start_s, float(random.uniform(1, 3)))
        log.dropout("dropout", number, 1, "late", start_s + 9)
        log.dropout("absence", number, 2, "offline", start_s + 1)
    return log


def _add_round(log: Log, number: int, start_s: float, accuracy: float) -> None:
    record: dict[str, Any] = {
        "round": number,
        "start_s": start_s,
        "end_s": start_s + 10,
        "cohort": 6,
        "leader": -1,
        "skipped": False,
    }
    record |= {"updates_used": 12, "updates_missing": 0, "noise_std": 0.1, "loss": 1.0}
    for when, part in (("before", 0.8), ("after", 1.0)):
        for what, shift in (("max", 0.05), ("mean", 0.0), ("min", -0.05)):
            record[f"accuracy_{when}_{what}"] = accuracy * part + shift
    log.rounds.append(record)


def _add_client(log: Log, number: int, node: int, clients: int, start_s: float, trained_s: float) -> None:
    sent_s = start_s + trained_s
    log.span(node, number, "train", start_s, sent_s)
    log.span(node, number, "wait", sent_s, start_s + 9)
    for receiver in sorted({(node + 1) % clients, (node + number) % clients} - {node}):
        _add_message(log, number, node, receiver, sent_s, kind="update", lost=node == 1)
        log.graphs.append(round=number, sender=node, receiver=receiver)
        if node != 1:
            log.aggregations.append(round=number, aggregator=receiver, contributor=node, at_s=start_s + 9, void=False)
    _add_message(log, number, node, clients, start_s + 9, kind="control")
    spent = {"mu2": 1.0, "published": 0.5 * number, "rigorous": 20.0 * number, "budget_left": 0.5}
    log.privacy.append(
        round=number, node=node, release=number, noise_std=0.1, trainings=0, record=float("nan"), **spent
    )


def _add_message(
    log: Log, number: int, sender: int, receiver: int, sent_s: float, kind: str, lost: bool = False
) -> None:
    log.messages.append(
        kind=records.KIND[kind],
        round=number,
        sender=sender,
        receiver=receiver,
        size_bytes=1000 + sender,
        overhead_bytes=64,
        attempt=1,
        sent_s=sent_s,
        left_s=sent_s + 0.5,
        arrived_s=float("nan") if lost else sent_s + 1,
        outcome=records.OUTCOME["lost" if lost else "delivered"],
        reason=records.REASON["random" if lost else ""],
        bottleneck=records.BOTTLENECKS.index("uplink"),
        left_bytes=1000 + sender,
        used=not lost,
        origin=sender,
        destination=receiver,
        previous=records.NO_NODE,
    )


def _make_run(path: Path, name: str, seed: int = 7, **log_changes: float) -> Path:
    """A whole run folder of that log."""
    log = _make_log(seed, **log_changes)  # type: ignore[arg-type]
    story = Story(name=name, seed=seed)
    privacy = {
        "published": {"epsilon": 1.5, "delta": 1e-5, "formula": "Theorem 8"},
        "rigorous": {"local": 60.0, "peer": {"worst": 40.0, "median": 30.0}, "model": 20.0, "unit": "client"},
        "notes": [f"note of {name}"],
    }
    facts = RunFacts(
        scenario=story,
        log=log,
        rounds_completed=len(log.rounds),
        stopped_because="all rounds done",
        simulated_s=log.rounds[-1]["end_s"],
        wall_s=1.0,
        privacy=privacy,
        linkability={"address": 0.0, "content": 0.5, "chance": 0.1},
        collected_accuracy=0.61,
    )
    folder = RunFolder.create(path, name, seed)
    folder.begin(f"name: {json.dumps(name)}\nclients: 6\nseed: {seed}\n", {"format": 1, "versions": {"peerveil": "0"}})
    folder.finish(log, summarise(facts))
    return path


@pytest.fixture(scope="session")
def hostile_name() -> str:
    """A name that tries to be markup, to end a script and to break a line."""
    return "<script>alert(1)</script><img src=x onerror=alert(2)>&\u2028'\"|_$="


@pytest.fixture(scope="session")
def run_folders(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Three runs of different accuracy."""
    base = tmp_path_factory.mktemp("runs")
    return [_make_run(base / name, name, gain=gain) for name, gain in (("slow", 0.1), ("middle", 0.2), ("fast", 0.3))]


@pytest.fixture(scope="session")
def hostile_folder(tmp_path_factory: pytest.TempPathFactory, hostile_name: str) -> Path:
    """A run whose name tries to be markup."""
    return _make_run(tmp_path_factory.mktemp("hostile") / "run", hostile_name)
