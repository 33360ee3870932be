"""The attack `non_neighbours` on runs: what is known of the mixing matrix, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from scenarios.cli.main import main
from tests.scenarios.running.resumed_runs import MODELS, run

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("each_round_is_written")]
WATCHED = "adversaries=[{kind: peer, who: 1}, {kind: model}]"
ATTACK = "attacks=[{kind: non_neighbours}]"
COMMON = ("faults=[]", "clients=8", "rounds=6", "network.loss=0", "availability=always", WATCHED, ATTACK)


def gossip(graph: str) -> str:
    return (
        f"protocol={{kind: gossip, train_per_round: 8, {graph}, exchange: model, mixing: metropolis, deadline: 90 s}}"
    )


def attacked(out: Path, *overrides: str) -> dict[str, Any]:
    """The entry of the one position that can."""
    (entry,) = run(out, *COMMON, *overrides)["attacks"]
    return dict(entry)


def test_a_fixed_ring_is_public(tmp_path: Path) -> None:
    """Each round reaches one client further in both directions: all eight after three."""
    entry = attacked(tmp_path / "run", gossip("graph: ring, redraw: never"))
    assert entry["by"] == "peer"
    assert entry["mixing_known"], entry["mixing_unknown"]
    assert "assumes that it recognises its neighbours from round to round" in entry["headline"]
    assert entry["non_neighbours"] == entry["averaging"]["exposed"] == entry["training"]["exposed"] == 5


def test_a_fresh_graph_is_known_to_those_who_get_it_under_lasting_addresses(tmp_path: Path) -> None:
    """The figures are the same; only who knows the matrix differs."""
    drawn = gossip("exchange_with: 2, graph: random_regular, redraw: every_round").replace("metropolis", "uniform")
    hidden = attacked(tmp_path / "hidden", drawn)
    changing = attacked(tmp_path / "changing", drawn, "anonymity.hand_out=graph")
    lasting = attacked(tmp_path / "lasting", drawn, "anonymity.hand_out=graph", "anonymity.rehash=never")
    assert [entry["mixing_known"] for entry in (hidden, changing, lasting)] == [False, False, True]
    assert "neighbours only" in hidden["mixing_unknown"]
    assert "addresses change" in changing["mixing_unknown"]
    assert "if it knew the mixing matrix" in hidden["headline"]


def test_a_graph_that_is_handed_out_under_new_addresses_is_known_by_assumption(tmp_path: Path) -> None:
    """A random graph that stays: the output says what joining its copies rests on, and nothing if addresses last."""
    drawn = gossip("exchange_with: 2, graph: random_regular, redraw: never").replace("metropolis", "uniform")
    changing = attacked(tmp_path / "changing", drawn, "anonymity.hand_out=graph")
    lasting = attacked(tmp_path / "lasting", drawn, "anonymity.hand_out=graph", "anonymity.rehash=never")
    assert changing["mixing_known"]
    assert lasting["mixing_known"]
    assert "joins the graphs of different rounds by their form" in changing["mixing_assumes"]
    assert f"assumes that {changing['mixing_assumes']}" in changing["headline"]
    assert not lasting["mixing_assumes"]
    assert "assumes" not in lasting["headline"]


def test_lost_messages_hide_the_matrix(tmp_path: Path) -> None:
    """What is planned is public, what arrived elsewhere is not."""
    slow = "faults=[{kind: slow, fraction: 0.3, factor: 1000}]"
    entry = attacked(tmp_path / "run", gossip("graph: ring, redraw: never"), slow)
    assert "were lost" in entry["mixing_unknown"]


@pytest.mark.parametrize(
    ("overrides", "by", "told"),
    [
        ((), "peer", "no models are exchanged; use `protocol: {kind: gossip, exchange: model}`"),
        ((MODELS,), "model", "it receives no models from neighbours; take a peer"),
    ],
)
def test_what_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], overrides: tuple[str, ...], by: str, told: str
) -> None:
    """One message with the cure."""
    run(tmp_path / "run", *overrides, WATCHED)
    assert main(["attack", "non_neighbours", str(tmp_path / "run"), "--by", by]) == 2
    assert told in capsys.readouterr().err
