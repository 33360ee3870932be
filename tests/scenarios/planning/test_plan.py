"""A plan says beforehand what a run then does."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

from p2p.config.errors import UserError
from scenarios.build import build
from scenarios.cli.main import main
from scenarios.composition.simulation import Simulation
from scenarios.loading.catalog import catalog
from scenarios.loading.load import load_scenario
from scenarios.metrics.communication.traffic import message_totals
from scenarios.metrics.privacy.privacy_report import report_privacy
from scenarios.planning.plan import make_plan
from scenarios.planning.wire_bytes import transmissions
from scenarios.schema import Scenario

SIZE = ("clients=20", "data.samples=400", "rounds=8", "learning=none")
GOSSIP = "protocol={kind: gossip, train_per_round: 14, exchange_with: 5}"
LEADER = "protocol={kind: rotating_leader, train_per_round: 14}"
CENTRAL = "protocol={kind: central, train_per_round: 14}"
TORUS = "protocol={kind: gossip, train_per_round: 14, graph: torus, redraw: never, exchange: model}"
PROTOCOLS = pytest.mark.parametrize(
    "protocol", [GOSSIP, LEADER, CENTRAL, TORUS], ids=["gossip", "leader", "central", "torus"]
)
SPARE = "privacy={clip: flat, noise: {kind: gaussian, sigma: 4}, budget: {by: rigorous, epsilon: 4}}"
ADPDFL = "privacy={clip: flat, noise: {kind: gaussian, calibrate: {kind: adpdfl, epsilon: 8}}}"
CLASSES = (
    "privacy={clip: flat, noise: {kind: gaussian, sigma: 6}, "
    "budget: {classes: [{clients: 0-4, epsilon: 1}, {clients: 5-19, epsilon: 5}]}}"
)


def scenario(*overrides: str) -> Scenario:
    """Twenty clients, eight rounds, nothing learned."""
    return load_scenario("tiny", [*SIZE, *overrides])


def run(*overrides: str) -> Simulation:
    """The same, run."""
    simulation = build(scenario(*overrides))
    simulation.run()
    return simulation


@pytest.mark.slow
@PROTOCOLS
@pytest.mark.parametrize(
    "change",
    ["seed=3", SPARE, "anonymity.hand_out=graph", "anonymity.sealed=false", "anonymity={routing: relay, relays: 5}"],
)
def test_bytes_by_kind_are_those_of_the_run(protocol: str, change: str) -> None:
    """Without loss, every kind within 2 per cent."""
    planned = make_plan(scenario(protocol, change))["bytes"]["total"]["by_kind"]
    real = {
        kind: amount
        for kind, amount in message_totals(run(protocol, change).log.messages)[1]["by_kind"].items()
        if amount
    }
    assert planned.keys() == real.keys()
    for kind, amount in real.items():
        assert planned[kind] == pytest.approx(amount, rel=0.02), kind


@pytest.mark.parametrize("seed", range(4))
def test_steps_of_unconnected_members_are_planned(seed: int) -> None:
    """Three of twenty members of a ring are mostly no neighbours; their releases enter their own models."""
    rare = ("protocol={kind: gossip, train_per_round: 3, graph: ring, redraw: never, exchange: model}", f"seed={seed}")
    planned, real = make_plan(scenario(*rare, SPARE)), report_privacy(run(*rare, SPARE))
    assert planned["privacy"]["rigorous"]["model"] == pytest.approx(real["rigorous"]["model"], rel=1e-9)


def test_listed_weights_are_planned() -> None:
    """Metropolis weights come with the assignments."""
    weighted = (TORUS, "protocol.mixing=metropolis", "rounds=2")
    planned = make_plan(scenario(*weighted))["bytes"]["total"]["by_kind"]["control"]
    assert planned == pytest.approx(message_totals(run(*weighted).log.messages)[1]["by_kind"]["control"], rel=0.002)
    assert planned > 1.01 * make_plan(scenario(TORUS, "rounds=2"))["bytes"]["total"]["by_kind"]["control"]


@pytest.mark.slow
@PROTOCOLS
@pytest.mark.parametrize("privacy", [SPARE, CLASSES, "seed=4", "protocol.include_own=false"])
def test_rounds_and_epsilons_are_those_of_the_run(protocol: str, privacy: str) -> None:
    """It stops in the same round for the same reason, after as many releases, with the same epsilons."""
    plan, real = make_plan(scenario(protocol, privacy)), run(protocol, privacy)
    outcome, report = real.proxy.outcome, report_privacy(real)
    assert plan["rounds"]["possible"] == outcome.rounds_completed
    assert plan["rounds"]["because"] == outcome.stopped_because
    assert plan["rounds"]["first_exhaustion_round"] == report["first_exhaustion_round"]
    for view in ("local", "model", "receiver"):
        assert plan["privacy"]["rigorous"][view] == pytest.approx(report["rigorous"][view], rel=1e-9)
    assert plan["privacy"]["rigorous"]["peer"]["worst"] == pytest.approx(report["rigorous"]["peer"]["worst"], rel=1e-9)
    for group, told in zip(plan["classes"], report["budget"], strict=True):
        assert (group["epsilon"], group["clients"]) == (told["epsilon"], told["clients"])
        assert group["participations"] == pytest.approx(told["releases"])
        assert group["exhausted_at_the_end"] == told["exhausted"]


@pytest.mark.slow
@PROTOCOLS
def test_seconds_are_about_those_of_the_run(protocol: str) -> None:
    """The first rounds stand for all of them."""
    plan, real = make_plan(scenario(protocol)), run(protocol)
    assert plan["simulated_s"]["total"] == pytest.approx(float(real.clock.now), rel=0.15)


@pytest.mark.slow
def test_loss_enters_by_its_expectation() -> None:
    """At 20 per cent loss and five tries a message is sent 1.25 times on average."""
    assert transmissions(0.2, 5) == pytest.approx(1.2496)
    loss = ("network={loss: 0.2, retransmit: {tries: 5, timeout: 1 s}}", "protocol.deadline=200 s")
    planned = make_plan(scenario(GOSSIP, *loss))["bytes"]["total"]["by_kind"]["update"]
    assert planned == pytest.approx(message_totals(run(GOSSIP, *loss).log.messages)[1]["by_kind"]["update"], rel=0.05)


@pytest.mark.slow
def test_noise_is_set_against_the_clip_norm() -> None:
    """The norm of d normal numbers is s sqrt(d); a mean of k has sqrt(k) times less."""
    plan = make_plan(scenario(GOSSIP, "privacy={clip: {kind: flat, norm: 2}, noise: {kind: gaussian, sigma: 0.5}}"))
    noise = plan["noise_to_signal"]
    assert noise["release"] == pytest.approx(0.5 * plan["model_size"] ** 0.5 / 2)
    assert noise["mean"] == pytest.approx(noise["release"] / 6**0.5)


def test_what_does_not_fit_is_refused() -> None:
    """Before anything large is tried: the need, the largest part, what there is, and a cure."""
    with pytest.raises(UserError) as error:
        make_plan(scenario(GOSSIP), memory_bytes=10_000_000)
    assert "needs about" in str(error.value)
    assert "there are 10 MB; use fewer clients, or give --memory" in str(error.value)
    huge = scenario(GOSSIP, "clients=5000000", "data.samples=5000000", "learning=torch", "model.hidden=[4000]")
    with pytest.raises(UserError, match=r"\(models .*; use fewer clients, a smaller model or `learning: none`"):
        make_plan(huge, memory_bytes=10**10)


@pytest.mark.slow
def test_long_runs_are_extrapolated() -> None:
    """A million rounds are not gone through; the end of the budget is found by expectation."""
    long = scenario(GOSSIP, "rounds=1000000", "privacy.noise.sigma=400", "privacy.budget={by: rigorous, epsilon: 8}")
    plan = make_plan(long)
    assert "extrapolated" in " ".join(plan["about"])
    allowed = plan["classes"][0]["releases_allowed"]
    assert plan["rounds"]["possible"] == pytest.approx(allowed * 20 / 14, rel=0.1)


@pytest.mark.slow
def test_the_command_prints_table_and_json(capsys: pytest.CaptureFixture[str]) -> None:
    """Both say the same; a bad amount of memory is one line and exit code 2."""
    assert main(["plan", "tiny", "--set", "rounds=3"]) == 0
    text = capsys.readouterr().out
    for word in ("all 3 can be held", "epsilon at the end", "verdict", "bytes per round", "simulated time", "memory"):
        assert word in text
    assert main(["plan", "tiny", "--seed", "5", "--json"]) == 0
    plan: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert (plan["seed"], plan["rounds"]["because"]) == (5, "all rounds done")
    assert main(["plan", "tiny", "--memory", "much"]) == 2
    assert "--memory = much: is not a quantity" in capsys.readouterr().err


@pytest.mark.slow
def test_a_plan_needs_no_torch() -> None:
    """Nor anything else that takes long to import."""
    code = (
        "import sys\nfrom scenarios.cli.main import main\nmain(['plan', 'tiny', '--json'])\n"
        "print(sorted({'torch', 'sklearn', 'pyarrow', 'networkx'} & set(sys.modules)), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr.strip() == "[]"


CATALOG = [name for name in catalog() if not name.endswith(("mnist", "cifar10", "shakespeare-lstm"))]
"""The entries that need no data folder."""


@pytest.mark.slow
@pytest.mark.parametrize("name", CATALOG)
def test_every_catalog_scenario_can_be_planned(name: str) -> None:
    """No figure of a plan is called proved."""
    planned = make_plan(load_scenario(name))
    assert planned["bytes"]["total"]["by_kind"]
    assert set(planned["privacy"]["rigorous"]["how"].values()) <= {"projected", "inf"}


@pytest.mark.parametrize("protocol", [GOSSIP, LEADER], ids=["gossip", "leader"])
def test_noise_is_planned_for_the_records_that_clients_have(protocol: str) -> None:
    """Under an uneven split the least noise, of the client with most records, decides."""
    uneven = (protocol, "data.split={kind: dirichlet, alpha: 0.3}", ADPDFL)
    planned = make_plan(scenario(*uneven))["privacy"]["rigorous"]
    found = report_privacy(run(*uneven))["rigorous"]
    assert planned["local"] == pytest.approx(found["local"], rel=1e-9)


@pytest.mark.parametrize(("timeout_s", "lost"), [(0.05, 6), (0.051, 0)])
def test_a_leader_timeout_below_the_latency_is_told(timeout_s: float, lost: int) -> None:
    """The plan warns exactly where the run then loses its rounds, since grants expire on their way to the leader."""
    protocol = f"protocol={{kind: rotating_leader, train_per_round: 5, leader_timeout: {timeout_s}, deadline: 5 s}}"
    scenario = load_scenario("tiny", ["learning=none", "rounds=6", "network.latency=50 ms", protocol])
    simulation = build(scenario)
    simulation.run()
    assert sum(record["updates_used"] == 0 for record in simulation.log.rounds) == lost
    told = [line for line in make_plan(scenario)["about"] if "leader_timeout" in line]
    text = "protocol.leader_timeout = 0.05 s: is not above the median latency from the proxy, 0.05 s, so leaders"
    assert [line.startswith(text) for line in told] == [True] * bool(lost)


@pytest.mark.slow
def test_a_plan_warns_of_what_the_run_is_diagnosed_with() -> None:
    """A leader whose uplink needs longer for its models than there is time: told before the run as after it."""
    from scenarios.metrics.communication.roles import Roles
    from scenarios.metrics.diagnosis import diagnose
    from scenarios.metrics.limits import limits_of

    slow = (
        LEADER,
        "model={kind: bytes, size: 1 MB}",
        "network.uplink=1 Mbit/s",
        "protocol.model_deadline=20 s",
        "rounds=3",
    )
    planned = make_plan(scenario(*slow))["diagnosis"]
    simulation = run(*slow)
    found = [one.to_json() for one in diagnose(simulation.log, Roles(20), limits_of(simulation))]
    assert planned == found
    assert any(one["code"] == "deadline_uplink" and "the leader's uplink needs" in one["problem"] for one in planned)
    assert make_plan(scenario(LEADER))["diagnosis"] == []


@pytest.mark.slow
def test_a_plan_counts_what_churn_sends_again() -> None:
    """Cut-off messages and handovers to members that were away, in runs twice as long as the plan's trial."""
    churn = "availability={kind: churn, mean_up: 60 s, mean_down: 10 s}"
    planned, real, without = [], [], []
    for seed in range(3):
        changes = (LEADER, churn, "model={kind: bytes, size: 1 MB}", "rounds=100", "clients=30", f"seed={seed}")
        planned.append(make_plan(scenario(*changes))["bytes"]["total"]["sent"])
        real.append(message_totals(run(*changes).log.messages)[1]["sent"])
        without.append(make_plan(scenario(*changes, "availability=always"))["bytes"]["total"]["sent"])
    assert planned == pytest.approx(real, rel=0.1)
    assert abs(sum(without) - sum(real)) > 2 * abs(sum(planned) - sum(real))
