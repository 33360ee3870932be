"""Whole scenario files: what loads, what is refused, and that all of it is told at once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from nodes.protocols.gossip import Gossip
from nodes.protocols.rotating_leader import RotatingLeader
from p2p.config.distributions import Constant, Empirical, Lognormal
from p2p.config.errors import UserError
from privacy.mechanisms.clip_and_noise import GaussianNoise
from scenarios.loading.catalog import catalog
from scenarios.loading.load import dump_scenario, load_scenario, parse_scenario
from scenarios.schema import Scenario

SMALL = """
name: small
rounds: 2
clients: 6
data: {name: synthetic, samples: 60}
model: linear
protocol: {kind: gossip, train_per_round: 4, exchange_with: 2}
"""


def problems_of(text: str, *overrides: str, **options: Any) -> list[str]:
    """The problems of a text that must be refused."""
    with pytest.raises(UserError) as caught:
        parse_scenario(text, overrides=overrides, **options)
    return caught.value.problems


def test_a_small_scenario_gets_its_defaults() -> None:
    """Six required keys are enough."""
    scenario = parse_scenario(SMALL)
    assert scenario.privacy is None
    assert scenario.seed == 0
    assert scenario.learning == "torch"
    assert scenario.compute == Constant(value=200.0)
    assert scenario.plugins == {}


def test_the_design_s_own_example_loads() -> None:
    """Every key of the catalog's main scenario ends where it belongs."""
    scenario = load_scenario("adpdfl-gossip")
    assert scenario.protocol == Gossip(train_per_round=70, exchange_with=50)
    assert scenario.network.uplink == Lognormal(median=2.5e6, sigma=0.5)
    assert scenario.network.retransmit.timeout == 2.0
    assert scenario.privacy is not None
    assert scenario.privacy.delta == 1e-5
    assert scenario.evaluation.target_accuracy == 0.7


@pytest.mark.parametrize("name", sorted(catalog()))
def test_every_catalog_scenario_loads_and_comes_back(name: str) -> None:
    """It carries its file's name, asks a question, and its resolved form loads to an equal scenario."""
    scenario = load_scenario(name)
    assert scenario.name == name
    assert scenario.question.endswith((".", "?"))
    assert parse_scenario(dump_scenario(scenario)) == scenario


def test_the_catalog_is_complete() -> None:
    """What the issue promises is there."""
    promised = {"adpdfl-gossip", "adpdfl-leader", "gossip-plain", "leader-plain", "fedavg", "dp-fedavg", "tiny"}
    sizes = {f"adpdfl-{kind}-{data}" for kind in ("gossip", "leader") for data in ("mnist", "cifar10")}
    assert promised | sizes <= catalog().keys()


def test_twins_differ_in_privacy_alone() -> None:
    """A comparison means something only if nothing else differs."""
    for private, plain in (("adpdfl-gossip", "gossip-plain"), ("adpdfl-leader", "leader-plain")):
        one = load_scenario(private, ["privacy=none", "name=x", "question=q"])
        assert one == load_scenario(plain, ["name=x", "question=q"])


def test_shares_of_clients_become_counts() -> None:
    """`tcsr: 0.7, mer: 0.5` of 100 clients are 70 and 50."""
    text = SMALL.replace("train_per_round: 4, exchange_with: 2", "tcsr: 0.7, mer: 50%").replace("6", "100")
    scenario = parse_scenario(text)
    assert scenario.protocol == Gossip(train_per_round=70, exchange_with=50)
    assert parse_scenario(dump_scenario(scenario)) == scenario


BAD: list[tuple[list[str], list[str]]] = [
    (["protocl={kind: gossip}"], ["protocl: unknown key; did you mean `protocol`?"]),
    (["protocol.exchange_wiht=2"], ["protocol.exchange_wiht: unknown key; did you mean `exchange_with`?"]),
    (["availability={kind: churn}"], ["availability.mean_up: needs exactly one of mean_up and up"]),
    (
        ["schedule={kind: crd}", "learning=none"],
        [
            "learning = none: has no losses, which `schedule: {kind: crd}` reads",
            "schedule.driven_by = public_loss: needs one model of the round, and with gossip every member has its own",
            "schedule.kind = crd: changes the Gaussian noise of clients, and they add none; add `privacy.noise`",
        ],
    ),
    (
        [
            "schedule={kind: crd, driven_by: public_loss}",
            "privacy={clip: {kind: flat}, noise: {kind: gaussian, sigma: 1}}",
        ],
        ["schedule.driven_by = public_loss: needs one model of the round, and with gossip every member has its own"],
    ),
    (
        ["schedule={kind: crd, beta: 1.5}"],
        ["schedule.beta = 1.5: must be <= 1"],
    ),
    (
        [
            "schedule={kind: crd, driven_by: noisy_losses}",
            "privacy={clip: {kind: flat}, noise: {kind: gaussian, calibrate: {kind: rigorous}}}",
        ],
        ["privacy.noise.calibrate = rigorous: is exact for rounds that are fixed before the run, and crd changes them"],
    ),
    (["schedule={kind: budgets}"], ["schedule: needs `local`, `server` or both; add one"]),
    (
        ["schedule={kind: budgets, local: {epsilon: 1}}"],
        ["schedule.local.sigma = none: is needed: clients' noise is not given as a multiple; add it"],
    ),
    (
        ["aggregate={momentum: 0.5, noise: {multiplier: 1}}"],
        [
            "aggregate.momentum = 0.5: is the memory of one aggregator, and with gossip every member averages other",
            "aggregate.noise = noise: hides nothing of updates without a bound; add `privacy.clip: ",
        ],
    ),
    (
        [
            "aggregate={momentum: 0.5, noise: {sigma: 1, when: after_momentum}}",
            "privacy={clip: flat}",
            "protocol={kind: rotating_leader, train_per_round: 4}",
        ],
        ["aggregate.noise.when = after_momentum: leaves momentum without the leader's noise, and leaders"],
    ),
    (
        ["aggregate={noise: {multiplier: 1, scale: cohort_median}}", "privacy={clip: flat}"],
        ["aggregate.noise.scale = cohort_median: is the median norm that a stage `clip_cohort_median` clips to; add"],
    ),
    (
        ["aggregate={noise: {sigma: 1, scale: cohort_median}}"],
        ["aggregate.noise: `scale` is about `multiplier`; give that, or drop it"],
    ),
    (["aggregate={noise: {}}"], ["aggregate.noise: needs exactly one of `multiplier` and `sigma`"]),
    (
        ["aggregate={noise: {sigma: 1}, weights: records}", "noise_shares={sigma_k: 1}", "privacy={clip: flat}"],
        [
            "aggregate.noise = noise: and noise shares are two noises on one sum, of which only one is meant",
            "aggregate.weights = records: would weigh updates twice, since those with noise shares carry weights",
        ],
    ),
    (
        [
            "aggregate={weights: records}",
            "protocol={kind: gossip, train_per_round: 4, graph: ring, mixing: metropolis}",
        ],
        ["aggregate.weights = records: and `protocol.mixing: metropolis` are two weights for one update; drop one"],
    ),
    (
        ["aggregate={step_size: 2}", "protocol={kind: gossip, train_per_round: 4, graph: ring, exchange: model}"],
        ["protocol.exchange = model: averages models, so there is no step to change; drop `aggregate`"],
    ),
    (
        [
            "protocol={kind: central, train_per_round: 4}",
            "privacy={clip: flat}",
            "aggregate={noise: {multiplier: 1.2}}",
            "schedule={kind: budgets, server: {sigma: 1.3}}",
        ],
        ["schedule.server.sigma = 1.3: differs from the multiplier of the noise it is about, which is 1.2; drop it"],
    ),
    (["rounds=many"], ["rounds = many: must be a whole number"]),
    (["rounds=true"], ["rounds = true: must be a whole number"]),
    (["rounds=0"], ["rounds = 0: must be >= 1"]),
    (["seed=-1"], ["seed = -1: must be >= 0"]),
    (["seed=1e3"], ["seed = 1000.0: must be a whole number"]),
    (["clients=1"], ["clients = 1: must be >= 2"]),
    (["training.learning_rate=.nan"], ["training.learning_rate = nan: must be a finite number"]),
    (["network.loss=.nan"], ["network.loss = nan: must be a finite number"]),
    (["network.uplink=-5 Mbit/s"], ["network.uplink = -5 Mbit/s: must be > 0"]),
    (["network.uplink=0"], ["network.uplink = 0: must be > 0"]),
    (["compute=.inf"], ["compute = inf: must be a finite number"]),
    (["learning=jax"], ["learning = jax: must be `torch` or `none`"]),
    (["anonymity.rehash=sometimes"], ["anonymity.rehash = sometimes: must be `every_round`, `chained` or `never`"]),
    (["name=" + "x" * 81], ["name = xxxxx"]),
    (["name="], ["name = none: must be text; put it in quotes"]),
    (["name=../up"], ["name = ../up: names the folder of results"]),
    (["question=[1]"], ["question = [1]: must be text"]),
    (
        ["protocol.exchange_with=4"],
        ["protocol.exchange_with = 4: must be < train_per_round, which is 4: a member exchanges with others"],
    ),
    (["protocol.train_per_round=7"], ["protocol.train_per_round = 7: must be <= clients, which is 6; lower it"]),
    (["protocol={kind: gossip, exchange_with: 2}"], ["protocol.train_per_round = none: is needed; add it, or `tcsr`"]),
    (["protocol={kind: gossip, tcsr: 0.5}"], ["protocol.exchange_with = none: is needed; add it, or `mer`"]),
    (["protocol.tcsr=0.5"], ["protocol.tcsr = 0.5: says the same as `train_per_round`; keep one of them"]),
    (["protocol.mer=0.5"], ["protocol.mer = 0.5: says the same as `exchange_with`; keep one of them"]),
    (["protocol={kind: gossip, tcsr: 1.5, exchange_with: 2}"], ["protocol.tcsr = 1.5: must be <= 1"]),
    (["evaluation.clients=7"], ["evaluation.clients = 7: must be <= clients, which is 6; lower it or write `all`"]),
    (
        ["data.split={kind: shards, classes_per_client: 11}"],
        [
            "data.split.classes_per_client = 11: 66 shards need 66 records, the data has 60; "
            "lower it or raise data.samples"
        ],
    ),
    (["data.samples=5"], ["clients = 6: 6 clients need 6 records, the data has 5; lower it or raise data.samples"]),
    (["data.split=by_client"], ["data.split = by_client: needs to know whose records are whose"]),
    (["data={name: file, path: x.csv}"], ["data.path = x.csv: no such file; it is looked for in"]),
    (["data={name: mnits}"], ["data.name = mnits: unknown name; did you mean `mnist`?"]),
    (["model=cnn"], ["model.kind = cnn: needs records of shape channels x height x width"]),
    (
        ["privacy={clip: flat, noise: {kind: gaussian, calibrate: {kind: adpdfl, epsilon: 30, delta: 1e-5}}}"],
        ["privacy.noise.calibrate.epsilon = 30: Theorem 8 needs epsilon < 2 ln(1/delta) = 23.03"],
    ),
    (
        ["privacy={clip: flat, noise: {kind: gaussian, calibrate: {kind: adpdfl, delta: 1}}}"],
        ["privacy.noise.calibrate.delta = 1: must be < 1"],
    ),
    (["privacy={clip: flat, noise: gaussian}"], ["privacy.noise: needs exactly one of `sigma` and `calibrate`"]),
    (["privacy={clip: {kind: flat, norm: 0}}"], ["privacy.clip.norm = 0: must be > 0"]),
    (
        ["privacy={noise: {kind: gaussian, calibrate: adpdfl}}"],
        ["privacy.clip = none: calibrated noise needs a bound", "privacy.budget.by = published: needs clipping"],
    ),
    (["network.sharing=fast"], ["network.sharing = fast: unknown kind; known are "]),
    (
        ["network.latency={kind: empirical, path: no.csv, column: a}"],
        ["network.latency.path = no.csv: no such file; it is looked for in"],
    ),
    (
        ["protocol.exchange_with=9", "protocol.deadlin=5 s", "protocol.grace=soon"],
        [
            "protocol.deadlin: unknown key; did you mean `deadline`?",
            "protocol.grace = soon: is not a quantity",
            "protocol.exchange_with = 9: must be < train_per_round, which is 4",
        ],
    ),
    (["protocol.exchange_with=x"], ["protocol.exchange_with = x: must be a whole number"]),
    (["clients=99999999999999999999"], ["clients = 1e+20: is too large; whole numbers have at most 18 digits"]),
    (["protocol.train_per_round=x"], ["protocol.train_per_round = x: must be a whole number"]),
    (["rounds"], ["--set rounds: must be path=value; write for example `--set rounds=5`"]),
    (["=5"], ["--set =5: must be path=value"]),
    (["a..b=5"], ["--set a..b=5: must be path=value"]),
    (["rounds=[1"], ["--set rounds=[1: is not valid YAML"]),
    (["rounds.x=5"], ["rounds.x = 5: `rounds` is not a place to set a key in; set the whole of it"]),
    (["evaluation.measure_from=99"], ["evaluation.measure_from = 99: must be <= rounds"]),
    (["faults.0.kind=crash"], ["faults.0.who: needs exactly one of who", "faults.0.start: needs exactly one of start"]),
]


@pytest.mark.parametrize(("overrides", "expected"), BAD, ids=[changes[0][:50] for changes, _ in BAD])
def test_every_mistake_is_told(overrides: list[str], expected: list[str]) -> None:
    """The line says path, value, rule and cure; nothing else is complained about."""
    lines = problems_of(SMALL, *overrides)
    assert len(lines) == len(expected)
    for line, start in zip(lines, expected, strict=True):
        assert line.startswith(start)


def test_required_keys_are_missed_all_at_once() -> None:
    """An empty mapping lacks six keys."""
    lines = problems_of("{}")
    assert [line.split(":")[0] for line in lines] == ["name", "rounds", "clients", "data", "model", "protocol"]
    assert lines[1] == "rounds: required key is missing; add it (how many rounds to run at most)"


def test_problems_of_all_sections_come_in_one_message() -> None:
    """The message counts them and names the file."""
    text = SMALL.replace("rounds: 2", "rounds: x\nextra: 1").replace("exchange_with: 2", "exchange_with: 9")
    with pytest.raises(UserError) as caught:
        parse_scenario(text, source="my.yaml")
    assert str(caught.value).splitlines() == [
        "my.yaml: 3 problems",
        caught.value.problems[0].join(["  ", ""]),
        "  rounds = x: must be a whole number",
        "  protocol.exchange_with = 9: must be < train_per_round, which is 4: a member exchanges with others; lower it",
    ]
    assert caught.value.problems[0].startswith("extra: unknown key; known are")


@pytest.mark.parametrize("text", ["", "5", "- a\n- b", "just words", "null"])
def test_a_scenario_is_a_mapping(text: str) -> None:
    """Anything else is refused with a hint."""
    assert problems_of(text) == ["must be a mapping of keys to values; start with `name: ...`"]


def test_overrides_change_what_is_read() -> None:
    """Words, numbers, mappings, whole sections, and keys of sections that were a bare word."""
    scenario = parse_scenario(
        SMALL,
        overrides=[
            "privacy={clip: flat}",
            "privacy.noise={kind: gaussian, sigma: 0.1}",
            "network.uplink=1 MB/s",
            "network.latency.kind=constant",
            "network.latency.value=5 ms",
            "model.kind=mlp",
            "model.hidden=[4]",
            "data=digits",
            "data.split.kind=dirichlet",
            "data.split.alpha=0.1",
        ],
    )
    assert scenario.privacy is not None
    assert scenario.privacy.noise == GaussianNoise(sigma=0.1)
    assert scenario.network.uplink == Constant(value=1e6)
    assert scenario.network.latency == Constant(value=0.005)
    assert dump_scenario(scenario).count("alpha: 0.1") == 1


def test_a_changed_kind_leaves_the_old_kind_s_keys_behind() -> None:
    """Shared keys stay, `exchange_with` goes; set by hand, it is refused."""
    scenario = load_scenario("adpdfl-gossip", ["protocol.kind=rotating_leader"])
    assert scenario.protocol == RotatingLeader(train_per_round=70)
    lines = problems_of(SMALL, "protocol.kind=rotating_leader", "protocol.exchange_with=3")
    assert lines[0].startswith("protocol.exchange_with: unknown key")


def test_privacy_can_be_switched_off_and_on() -> None:
    """`none` is no privacy; setting a key inside `none` starts anew."""
    assert load_scenario("adpdfl-gossip", ["privacy=none"]).privacy is None
    again = load_scenario("gossip-plain", ["privacy.clip.kind=flat"])
    assert again.privacy is not None


def test_the_seed_argument_wins() -> None:
    """Also over --set."""
    assert load_scenario("tiny", ["seed=3"], seed=9).seed == 9


def test_an_empirical_column_is_read_beside_the_file(tmp_path: Path) -> None:
    """The resolved scenario finds the same file from anywhere."""
    (tmp_path / "up.csv").write_text("rate\n1 MB/s\n2 MB/s\n")
    path = tmp_path / "own.yaml"
    path.write_text(SMALL + "network: {uplink: {kind: empirical, path: up.csv, column: rate}}\n")
    scenario = load_scenario(path)
    assert isinstance(scenario.network.uplink, Empirical)
    assert scenario.network.uplink.values == (1e6, 2e6)
    assert parse_scenario(dump_scenario(scenario)) == scenario


def test_bad_cells_of_a_column_are_problems(tmp_path: Path) -> None:
    """With line and file."""
    (tmp_path / "up.csv").write_text("rate\n1 MB/s\nfast\n")
    text = SMALL + "network: {uplink: {kind: empirical, path: up.csv, column: rate}}\n"
    assert problems_of(text, folder=tmp_path) == [
        "network.uplink.column = fast: line 3 of up.csv is not a quantity; write for example `20 Mbit/s`"
    ]


@pytest.mark.parametrize(
    ("ref", "expected"),
    [
        ("rounds=5", "rounds=5: no scenario, but a setting; each needs its own --set: write `--set rounds=5`"),
        ("adpdfl-gosip", "adpdfl-gosip: neither a file nor in the catalog; did you mean `adpdfl-gossip`?"),
        ("no/such.yaml", "no/such.yaml: no such file; give a path, or a name that `peerveil list` shows"),
        ("x" * 5000, "xxx"),
        ("a\0b", "a\\x00b: neither a file nor in the catalog"),
    ],
)
def test_unknown_scenarios_are_told(ref: str, expected: str) -> None:
    """With a suggestion."""
    with pytest.raises(UserError) as caught:
        load_scenario(ref)
    assert caught.value.problems[0].startswith(expected)


def test_a_folder_is_no_scenario(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It exists, so it is not called missing; a catalog name wins over a folder of that name."""
    with pytest.raises(UserError) as caught:
        load_scenario(tmp_path)
    assert caught.value.problems[0].startswith(f"{tmp_path}: is a folder; give a scenario file inside it")
    (tmp_path / "tiny").mkdir()
    monkeypatch.chdir(tmp_path)
    assert load_scenario("tiny").name == "tiny"


def test_unreadable_files_are_told(tmp_path: Path) -> None:
    """Binary rubbish, and far too much text."""
    path = tmp_path / "x.yaml"
    path.write_bytes(b"\xff\xfe\x00name")
    with pytest.raises(UserError, match="is not UTF-8 text"):
        load_scenario(path)
    path.write_bytes(b"#" * 3_000_000)
    with pytest.raises(UserError, match="is longer than 500000 characters"):
        load_scenario(path)


def test_scenarios_are_frozen_values() -> None:
    """Equal text, equal scenario; it cannot be changed on the way."""
    assert parse_scenario(SMALL) == parse_scenario(SMALL)
    with pytest.raises(AttributeError):
        parse_scenario(SMALL).rounds = 3  # type: ignore[misc]
    assert isinstance(parse_scenario(SMALL), Scenario)
