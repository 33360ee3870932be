"""Where an objective is not used as written, the summary, the final table and the plan say so."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from p2p.config.errors import UserError
from scenarios.loading.load import load_scenario
from scenarios.metrics.headline.headline_rows import headline_rows
from scenarios.planning.plan import make_plan
from scenarios.running.run import run_scenario


def run(out: Path, *overrides: str) -> dict[str, Any]:
    """Runs the catalog's smallest scenario; the summary."""
    return dict(run_scenario(load_scenario("tiny", list(overrides)), out)[0])


@pytest.mark.slow
def test_the_printed_loss_is_the_control_and_says_where_it_is_undefined(tmp_path: Path) -> None:
    """Fed-nore-2 as printed learns what cross-entropy learns, to the bit, and is flagged."""
    plain = run(tmp_path / "plain")
    printed = run(tmp_path / "printed", "objective={kind: fednore2, lam: 200, reading: printed}")
    clients = load_scenario("tiny").clients
    note = (
        f"fednore2: c >= 1 for {clients} of {clients} clients, where the printed loss is undefined; all train as with "
    )
    assert "objective" not in plain
    assert printed["objective"] == {"kind": "fednore2", "undefined": clients, "notes": [note + "cross-entropy"]}
    assert printed["digest"] == plain["digest"]
    assert (tmp_path / "printed" / "model.safetensors").read_bytes() == (
        tmp_path / "plain" / "model.safetensors"
    ).read_bytes()
    assert ("objective", note + "cross-entropy") in list(headline_rows(printed))


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["fednore2", "fednore_both"])
def test_a_capped_constant_is_told(tmp_path: Path, kind: str) -> None:
    """Summary and plan name the cap and the clients."""
    override = f"objective={{kind: {kind}, lam: 200, c_max: 0.5}}"
    clients = load_scenario("tiny").clients
    note = f"{kind}: c is capped at 0.5 for {clients} of {clients} clients"
    assert run(tmp_path / "run", override)["objective"] == {"kind": kind, "capped": clients, "notes": [note]}
    assert note in make_plan(load_scenario("tiny", [override]))["about"]
    assert note not in make_plan(load_scenario("tiny", [override.replace("200", "0.001")]))["about"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "objective",
    [
        "{kind: fedprox, mu: 1e6}",
        "{kind: fednore1, lam: 1e6, sigma: 1e6, penalty: printed}",
        "{kind: fednore2, lam: 1e6}",
    ],
)
def test_the_strongest_objective_runs_to_the_end(tmp_path: Path, objective: str) -> None:
    """Training may diverge, which is a result and no error; beyond the bound a strength is refused."""
    assert run(tmp_path / "run", f"objective={objective}")["stopped_because"] == "all rounds done"
    with pytest.raises(UserError, match="must be <= 1"):
        load_scenario("tiny", [f"objective={objective.replace('1e6', '1e7')}"])


def test_all_problems_of_an_objective_are_told_at_once() -> None:
    """Each with its path, value and rule."""
    with pytest.raises(UserError) as caught:
        load_scenario("tiny", ["objective={kind: fednore2, lam: -1, reading: loud, c_max: 1}", "training.batch_size=0"])
    told = str(caught.value)
    for part in ("objective.lam = -1", "objective.reading = loud", "objective.c_max = 1", "training.batch_size = 0"):
        assert part in told
    with pytest.raises(UserError, match=r"objective.kind = fednore: unknown kind"):
        load_scenario("tiny", ["objective={kind: fednore}"])
