"""Pages as text: what they hold, what they refuse, and that they are the same for the same run."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from p2p.config.errors import UserError
from p2p.log.log import Log
from scenarios.cli.main import main
from scenarios.metrics.communication.roles import Roles
from scenarios.metrics.headline.headline_rows import headline_rows
from scenarios.metrics.headline.run_facts import RunFacts
from scenarios.report.data.message_columns import FATES, collect_message_columns
from scenarios.report.data.node_sample import active_nodes, shown_nodes
from scenarios.report.data.round_series import bytes_until, spectral_gaps
from scenarios.report.data.run_data import read_run_data
from scenarios.report.embed import packed, script_json
from scenarios.report.html import text
from scenarios.report.page import comparison_page, page_data, report_page
from scenarios.run_folder.summary import summarise
from scenarios.run_folder.writer import RunFolder

HOSTILE = "</script><script>alert(1)</script><!--"


@pytest.fixture
def write(tmp_path: Path, random_log: Callable[..., Log], scenario: SimpleNamespace) -> Callable[..., Path]:
    """Writes the folder of a random run; `killed` leaves only its parts."""

    def make(name: str = "story", killed: bool = False, log: Log | None = None) -> Path:
        log = random_log(3) if log is None else log
        story = SimpleNamespace(**{**vars(scenario), "name": name})
        folder = RunFolder.create(tmp_path / f"run{len(list(tmp_path.iterdir()))}", name, 7)
        settings = {"name": name, "clients": 6, "seed": 7, "rounds": 3, "evaluation": {"target_accuracy": 0.7}}
        folder.begin(json.dumps(settings), {"format": 1, "versions": {"peerveil": "0"}})
        if killed:
            folder.write_part(log, 3)
        else:
            folder.finish(log, summarise(_facts(story, log)))
        return folder.path

    return make


def _facts(story: Any, log: Log) -> RunFacts:
    return RunFacts(
        scenario=story,
        log=log,
        rounds_completed=3,
        stopped_because="all rounds done",
        simulated_s=30.0,
        wall_s=1.0,
        privacy={"published": None, "rigorous": {"local": np.inf, "unit": "client"}, "notes": [HOSTILE]},
        linkability={"address": None, "content": None, "chance": None},
        collected_accuracy=0.75,
    )


@pytest.mark.slow
def test_the_same_run_gives_the_same_page(write: Callable[..., Path], tmp_path: Path) -> None:
    """Byte for byte, wherever the folder lies; and nothing in it points elsewhere."""
    first = write()
    shutil.copytree(first, tmp_path / "copy")
    page = report_page(read_run_data(first))
    assert page == report_page(read_run_data(tmp_path / "copy"))
    own = page.split("<body>")[1].split('<script type="application/json"')[0]
    assert not re.search(r"(?:src|href)=\"(?!#)", own)
    assert len(page) < 15_000_000


@pytest.mark.slow
def test_the_headline_stands_on_the_page(write: Callable[..., Path]) -> None:
    """Every line of the final table, word for word."""
    account = read_run_data(write())
    page = report_page(account)
    for label, told in headline_rows(account.summary):
        assert text(label) in page
        assert text(told) in page


@pytest.mark.slow
def test_accuracy_before_aggregation_is_labelled_as_without_noise(write: Callable[..., Path]) -> None:
    """Under the picture, in its legend and in the table beside it: those models never leave their owners."""
    page = report_page(read_run_data(write("labels")))
    assert "before aggregation, as trained: without clipping and noise" in page
    assert 'name: "before aggregation, no clipping, no noise"' in page
    assert "mean before (no noise)" in page


def test_hostile_text_cannot_leave_its_place(write: Callable[..., Path]) -> None:
    """A scenario's name and notes end no script and open no tag, on both kinds of page."""
    account = read_run_data(write(name=HOSTILE))
    for page in (report_page(account), comparison_page([account, account])):
        assert page.count("<script") == 3
        assert page.count("</script>") == 3
        assert "alert(1)</script>" not in page


@given(st.text())
def test_json_in_a_page_is_json_and_no_markup(content: str) -> None:
    """It reads back as it was and holds none of the characters that HTML or scripts act on."""
    made = script_json({"content": content})
    assert json.loads(made)["content"] == content.encode("utf-8", "replace").decode()
    assert not set(made) & set("<>&\u2028\u2029")


@given(st.lists(st.integers(-(2**31), 2**31 - 1)))
def test_packed_columns_unpack(values: list[int]) -> None:
    """The bytes are the numbers, in the type that is named."""
    import base64

    column = packed(np.array(values, dtype=np.int64))
    assert np.frombuffer(base64.b64decode(column["data"]), dtype=f"<{column['type']}").tolist() == values


@pytest.mark.slow
def test_a_killed_run_shows_what_it_had(write: Callable[..., Path]) -> None:
    """Its figures come from the parts, and the first note says so."""
    account = read_run_data(write(killed=True))
    assert "killed" in account.notes[0]
    assert account.summary["rounds_completed"] == 3
    assert account.summary["bytes"]["sent"] == int(account.log.messages["size_bytes"].sum())
    assert page_data(account)["rounds"]["round"] == [1, 2, 3]
    assert "This run was killed" in report_page(account)


def test_missing_and_older_tables_are_noted(write: Callable[..., Path]) -> None:
    """A lost table leaves the others; a column that an older version did not write is filled."""
    import pyarrow.parquet as pq

    folder = write()
    (folder / "privacy.parquet").unlink()
    (folder / "spans.parquet").write_bytes(b"no parquet")
    messages = pq.read_table(folder / "messages.parquet").drop_columns(["origin", "destination", "previous"])
    pq.write_table(messages, folder / "messages.parquet")
    account = read_run_data(folder)
    assert "privacy.parquet is missing" in " ".join(account.notes)
    assert "spans.parquet is damaged" in " ".join(account.notes)
    assert "it has no origin, destination, previous" in " ".join(account.notes)
    assert (account.log.messages["origin"] == account.log.messages["sender"]).all()
    assert page_data(account)["pictures"]["spans"]["rounds"] == []


def test_foreign_folders_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing, a file, another program's summary, a newer format: one line on stderr and exit code 2."""
    empty, foreign, newer = tmp_path / "empty", tmp_path / "foreign", tmp_path / "newer"
    for folder in (empty, foreign, newer):
        folder.mkdir()
    (foreign / "summary.json").write_text('{"hello": 1, "nodes": {"clients": 3}}')
    (newer / "summary.json").write_text('{"format": 99}')
    for path in (tmp_path / "nowhere", empty, foreign, newer):
        assert main(["report", str(path)]) == 2
        assert "RUN = " in capsys.readouterr().err


def test_faults_are_marked_if_recorded(write: Callable[..., Path]) -> None:
    """`faults.parquet` is optional; its rows reach the timeline."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    folder = write()
    columns = {"start_s": [1.0, 4.0], "end_s": [2.0, np.inf], "kind": ["crash", "cut"], "who": ["3", "1, 2"]}
    pq.write_table(pa.table(columns), folder / "faults.parquet")
    faults = page_data(read_run_data(folder))["pictures"]["faults"]
    assert faults == [[1.0, 2.0, "crash", "3"], [4.0, 30.0, "cut", "1, 2"]]


def test_figures_equal_the_tables(write: Callable[..., Path]) -> None:
    """Rounds, bytes by kind and by node, dropouts and spans on the page are the folder's."""
    account = read_run_data(write())
    data = page_data(account)
    by_kind = {kind: sum(amounts) for kind, amounts in data["rounds"]["bytes"].items()}
    assert by_kind == account.summary["bytes"]["by_kind"]
    assert data["rounds"]["accuracy_after_mean"] == [record["accuracy_after_mean"] for record in account.log.rounds]
    assert sum(data["traffic"]["bars"]["sent"]) == account.summary["bytes"]["sent"]
    counts = data["dropouts"]["counts"]["missing"]["late"]
    assert sum(counts.values()) == account.summary["missing"]["by_reason"]["late"]
    assert data["rounds"]["bytes_so_far"][-1] == bytes_until(account.log, np.array([30.0]))[0]


def test_too_many_messages_are_summed_then_thinned(random_log: Callable[..., Log]) -> None:
    """Bytes survive the summing; what is left out is noted."""
    log = random_log(5, messages=500)
    log.messages["receiver"][:] = np.maximum(log.messages["receiver"], 0)
    nodes = active_nodes(log)
    whole = collect_message_columns(log, nodes)
    assert whole.note == ""
    assert whole.columns["size_bytes"].sum() == log.messages["size_bytes"].sum()
    summed = collect_message_columns(log, nodes, most=len(whole.columns["round"]) - 1)
    assert "drawn as one" in summed.note
    assert summed.columns["size_bytes"].sum() == log.messages["size_bytes"].sum()
    assert summed.columns["count"].sum() == len(log.messages)
    thinned = collect_message_columns(log, nodes, most=150)
    assert "Only" in thinned.note
    assert len(thinned.columns["round"]) <= 150 or len(np.unique(thinned.columns["round"])) == 1


def test_an_edge_without_message_is_not_sent(random_log: Callable[..., Log]) -> None:
    """The graph's edges that carried nothing are there, with no bytes."""
    log = random_log(1, messages=0)
    flows = collect_message_columns(log, np.arange(6))
    assert {FATES[code] for code in flows.columns["fate"]} == {"not_sent"}
    assert len(flows.columns["round"]) == len(log.graphs)
    assert flows.columns["size_bytes"].sum() == 0


def test_many_nodes_are_sampled_with_the_notable_ones_kept(random_log: Callable[..., Log]) -> None:
    """Services, leaders and dropouts stay; the number is as asked for."""
    log = random_log(2, clients=300, messages=2000)
    chosen = shown_nodes(log, Roles(300), [], most=50)
    assert len(chosen) == 50
    assert {301, 302, 303} <= set(chosen.tolist())
    assert {0, 1} <= set(chosen.tolist())


def test_the_spectral_gap_is_that_of_the_real_averaging() -> None:
    """All average all: gap 1. No node hears another: gap 0. A leader: 1."""
    log = Log()
    for number, leader in ((1, -1), (2, -1), (3, 2)):
        log.rounds.append({"round": number, "leader": leader, "start_s": 0.0, "end_s": 1.0})
        for one in range(3):
            for other in range(3):
                if number != 2 or one == other:
                    log.aggregations.append(round=number, aggregator=one, contributor=other, at_s=1.0, void=False)
    assert spectral_gaps(log) == [1.0, 0.0, 1.0]


def test_the_spectral_gap_is_that_of_the_largest_part_with_the_weights_applied() -> None:
    """A path of three and a member alone: 1 - 2/3 with Metropolis weights, 1/2 with equal ones; never 0 for the one."""
    log = Log()
    log.rounds.append({"round": 1, "leader": -1, "start_s": 0.0, "end_s": 1.0})
    path = [(0, 1), (1, 0), (1, 2), (2, 1)]
    log.graphs.extend(4, round=1, sender=[a for a, _ in path], receiver=[b for _, b in path])
    for contributor, aggregator in [*path, *((node, node) for node in range(4))]:
        log.aggregations.append(round=1, aggregator=aggregator, contributor=contributor, at_s=1.0, void=False)
    assert spectral_gaps(log) == [pytest.approx(0.5)]
    assert spectral_gaps(log, metropolis=True) == [pytest.approx(1 / 3)]


def test_a_run_without_clients_is_an_error(write: Callable[..., Path]) -> None:
    """Roles cannot be told from nothing."""
    folder = write(killed=True)
    (folder / "scenario.yaml").write_text("name: x\n")
    with pytest.raises(UserError, match="how many clients"):
        read_run_data(folder)


@pytest.mark.slow
def test_a_real_run_from_scenario_to_pictures(tmp_path: Path) -> None:
    """`run`, then everything that reads its folder; the scenario alone is enough for a topology."""
    out = tmp_path / "run"
    assert main(["run", "tiny", "--out", str(out), "--quiet"]) == 0
    account = read_run_data(out)
    assert account.notes == ()
    data = page_data(account)
    assert sum(data["traffic"]["bars"]["sent"]) == account.summary["bytes"]["sent"]
    assert all(gap is not None for gap in data["rounds"]["spectral_gap"])
    for command in (["report", str(out)], ["table", str(out)], ["timeline", str(out), "-o", str(tmp_path / "t.json")]):
        assert main(command) == 0
    pictures = [tmp_path / "of-run.svg", tmp_path / "of-scenario.svg"]
    for source, picture in zip((str(out), "tiny"), pictures, strict=True):
        assert main(["topology", source, "--round", "2", "-o", str(picture)]) == 0
    assert pictures[0].read_bytes() == pictures[1].read_bytes()
