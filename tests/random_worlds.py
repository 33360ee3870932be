"""Small random worlds, with everything that can go wrong in them, and the totals that must add up."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import fields
from typing import Any

import numpy as np
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from nodes.protocols import PROTOCOLS
from nodes.protocols.graphs import GRAPHS as TABLE
from p2p.log import records
from p2p.transport.sharing import SHARINGS
from scenarios.composition.simulation import Simulation
from scenarios.metrics.communication.traffic import message_totals

GRAPHS: dict[str, Any] = dict(TABLE)
LATENCIES = st.sampled_from(["{kind: uniform, low: 10 ms, high: 400 ms}", "100 ms"])
"""If all are equal, much happens at one instant."""


@st.composite
def worlds(draw: st.DrawFn, kinds: list[str], loss: st.SearchStrategy[float]) -> list[str]:
    """Overrides for a small run of one of the protocols."""
    clients = draw(st.integers(3, 8))
    cohort = draw(st.integers(2, clients))
    kind = draw(st.sampled_from(kinds))
    rules = {
        "kind": kind,
        "train_per_round": cohort,
        "deadline": f"{draw(st.sampled_from([2, 5, 20, 60]))} s",
        "selection": draw(st.sampled_from(["uniform", "first_come"])),
        "send_at": draw(st.sampled_from(["ready", "barrier"])),
        "include_own": draw(st.booleans()),
        "finish": draw(st.sampled_from(["all", "all", "{quorum: 0.5}"])),
        "invite_timeout": "60 s",
        "grace": f"{draw(st.sampled_from([0, 1, 5]))} s",
        "min_updates": draw(st.sampled_from([0, 1, 1, 2])),
    }
    if kind == "rotating_leader":
        # Shorter than many a transfer, so that leaders are declared lost that are merely slow.
        rules["leader_timeout"] = f"{draw(st.sampled_from([1, 2, 5, 30]))} s"
        rules["model_deadline"] = f"{draw(st.sampled_from([5, 20, 60]))} s"
        rules["repeat_leaders"] = draw(st.booleans())
        rules["handover_timeout"] = f"{draw(st.sampled_from([2, 20]))} s"
    if "exchange_with" in {field.name for field in fields(PROTOCOLS[kind])}:
        rules |= draw(graphs(clients, cohort, bool(rules["include_own"])))
    protocol = ", ".join(f"{name}: {str(value).lower()}" for name, value in rules.items())
    up, down = (draw(st.sampled_from(["300 B/s", "1 kB/s", "1 MB/s"])) for _ in range(2))
    return [
        f"clients={clients}",
        f"data.samples={20 * clients}",
        f"seed={draw(st.integers(0, 10_000))}",
        f"rounds={draw(st.integers(1, 3))}",
        f"protocol={{{protocol}}}",
        f"anonymity.sealed={draw(st.sampled_from(['true', 'sizes', 'false']))}",
        f"anonymity.rehash={draw(st.sampled_from(['every_round', 'chained', 'never']))}",
        f"network.sharing={draw(st.sampled_from(sorted(SHARINGS)))}",
        f"network.uplink={up}",
        f"network.downlink={down}",
        f"network.latency={draw(LATENCIES)}",
        f"network.loss={draw(loss)}",
        f"network.retransmit={{tries: {draw(st.sampled_from([1, 2, 5]))}, timeout: 2 s}}",
        "compute={kind: lognormal, median: 20 samples/s, sigma: 0.5}",
    ]


@st.composite
def graphs(draw: st.DrawFn, clients: int, cohort: int, include_own: bool) -> dict[str, Any]:
    """Keys of a graph that fits: any kind, redraw, mixing and exchange; half of the worlds have the default."""
    degree = draw(st.integers(1, cohort - 1))
    if draw(st.booleans()):
        return {"exchange_with": degree}
    redraw = draw(st.sampled_from(["every_round", "never", "{kind: swaps, edges: 2}"]))
    size = cohort if redraw == "every_round" else clients
    kind = draw(st.sampled_from(sorted(set(GRAPHS) - {"file", "networkx"})))
    free = GRAPHS[kind].free_degree
    keys: dict[str, Any] = {"graph": kind, "redraw": redraw, "exchange": draw(st.sampled_from(["update", "model"]))}
    if GRAPHS[kind]().problem(size, degree if free else None):
        keys |= {"graph": "{kind: networkx, generator: gnm_random_graph, arguments: {m: 4}}"}
    elif kind == "exponential":
        keys |= {"redraw": draw(st.sampled_from([redraw, "one_peer_exponential"]))}
    elif free:
        keys |= {"exchange_with": degree}
    if include_own and kind not in ("random_regular", "exponential") and "networkx" not in keys["graph"]:
        keys |= {"mixing": draw(st.sampled_from(["uniform", "metropolis"]))}
    return keys


LOSSES = st.sampled_from([0.0, 0.05, 0.2, 0.5])
TIMES = int(os.environ.get("PEERVEIL_SOAK") or 1)
MANY = settings(max_examples=60 * TIMES, deadline=None, suppress_health_check=list(HealthCheck))
FEW = settings(max_examples=15 * TIMES, deadline=None, suppress_health_check=list(HealthCheck))


@st.composite
def misfortunes(draw: st.DrawFn, kind: str, clients: int) -> list[str]:
    """Overrides that make things go wrong: up to four faults, churn, a standby or none."""
    chosen = draw(st.lists(one_fault(kind, clients), max_size=4))
    overrides = [f"faults=[{', '.join(chosen)}]"]
    if draw(st.booleans()):
        overrides.append("availability={kind: churn, mean_up: 40 s, mean_down: 6 s}")
    overrides.append(f"proxy={{standby: {str(draw(st.booleans())).lower()}, takeover: 3 s}}")
    return overrides


def one_fault(kind: str, clients: int) -> st.SearchStrategy[str]:
    """A fault as a flow mapping."""
    start = st.sampled_from([0, 1, 3, 8, 20])
    lasts = st.sampled_from([1, 5, 30])
    who = st.one_of(st.integers(0, clients - 1).map(str), st.just(f"0-{clients // 2}"))
    roles = ["proxy", *(["leader"] if kind == "rotating_leader" else []), *(["server"] if kind == "central" else [])]
    phases = st.sampled_from(["invite", "train", "send", "aggregate", "broadcast"])
    window = st.tuples(start, lasts).map(lambda pair: f"start: {pair[0]} s, end: {pair[0] + pair[1]} s")
    chance = st.sampled_from([0.05, 0.3, 1.0])
    return st.one_of(
        st.builds(lambda name, times: f"{{kind: crash, who: {name}, {times}}}", who, window),
        st.builds(lambda role, times: f"{{kind: crash, who: {role}, {times}}}", st.sampled_from(roles), window),
        st.builds(
            lambda name, phase, back: f"{{kind: crash, who: {name}, round: 1, phase: {phase}{back}}}",
            st.sampled_from([*roles, "0", "1"]),
            phases,
            st.sampled_from(["", ", lasts: 5 s", ", lasts: 60 s"]),
        ),
        st.builds(lambda times: f"{{kind: crash, fraction: 0.5, {times}}}", window),
        st.builds(lambda name, times: f"{{kind: slow, who: {name}, factor: 20, {times}}}", who, window),
        st.builds(lambda name, times: f"{{kind: slow_link, who: {name}, factor: 20, {times}}}", who, window),
        st.builds(
            lambda both, times: (
                f"{{kind: partition, between: [0-1, {clients - 1}], both: {str(both).lower()}, {times}}}"
            ),
            st.booleans(),
            window,
        ),
        st.builds(lambda times: f"{{kind: loss, mean_good: 5 s, mean_bad: 3 s, loss_bad: 0.9, {times}}}", window),
        st.builds(lambda p, times: f"{{kind: corrupt, probability: {p}, {times}}}", chance, window),
        st.builds(lambda p, times: f"{{kind: duplicate, probability: {p}, {times}}}", chance, window),
        st.builds(lambda p, times: f"{{kind: reorder, probability: {p}, delay: 2 s, {times}}}", chance, window),
        st.builds(lambda times: f"{{kind: intruder, every: 500 ms, {times}}}", window),
    )


OBJECTIVES = st.sampled_from(
    [
        "cross_entropy",
        "hinge",
        "{kind: fedprox, mu: 0.1}",
        "{kind: fednore1, lam: 0.1}",
        "{kind: fednore2, lam: 0.1, reading: scaled}",
        "{kind: fednore_both, lam: 0.1}",
    ]
)


@st.composite
def aggregate_section(draw: st.DrawFn, kind: str, noise: str, weights: Sequence[str]) -> str:
    """An `aggregate` section that fits the protocol; `noise` is the size of its noise, empty for none."""
    rules: dict[str, Any] = {
        "weights": draw(st.sampled_from(weights)),
        "step_size": draw(st.sampled_from([1.0, 0.5])),
        "momentum": draw(st.sampled_from([0.0, 0.5])) if kind != "gossip" else 0.0,
    }
    if noise and draw(st.booleans()):
        # Leaders hand momentum on, which must have its noise by then.
        when = draw(st.sampled_from(["before_momentum", *(["after_momentum"] if kind == "central" else [])]))
        rules["noise"] = f"{{{noise}, on: {draw(st.sampled_from(['mean', 'sum']))}, when: {when}}}"
    return f"aggregate={{{', '.join(f'{name}: {value}' for name, value in rules.items())}}}"


WEIGHTS = ("uniform", "records", "records_of_all", "loss_and_records")


@st.composite
def aggregations(draw: st.DrawFn, kind: str) -> list[str]:
    """An `aggregate` section and a bound on updates, in some of the worlds."""
    if draw(st.integers(0, 2)):
        return []
    noise = draw(st.sampled_from(["", ", noise: {kind: gaussian, sigma: 4}"]))
    return [f"privacy={{clip: flat{noise}}}", draw(aggregate_section(kind, "multiplier: 2", WEIGHTS))]


ACCOUNTED = (
    "{kind: gaussian, sigma: 4}",
    "{kind: gaussian, multiplier: 5}",
    "{kind: laplace, epsilon: 2}",
    "{kind: binomial, levels: 4, trials: 600}",
    "{kind: binomial, levels: 4, trials: 600, rotate: true}",
    "{kind: asgp_sound, positives: 3}",
)
LEAKY = ("asgp", "snlc", "{kind: gaussian, multiplier: 2, scale: own_norm, per_record: true}")


@st.composite
def staged(draw: st.DrawFn, kind: str, clients: int) -> list[str]:
    """Overrides with a list of stages that fits the protocol, an aggregate, and a budget where all is accounted for."""
    sparse = ["", "", "{kind: top_k, rate: 0.3}", "{kind: mask, rate: 0.3}"]
    sparse += ["{kind: mask, rate: 0.3, by: last_aggregate, refresh: 2}"] if kind != "gossip" else []
    first, bound = draw(st.sampled_from(sparse)), draw(st.sampled_from([0.5, 2.0]))
    own = ", ".join(str(bound * (1 + node % 3)) for node in range(clients))
    clips = ["clip", "clip_layers", "{kind: clip_coordinates, bound: 0.1}", f"{{kind: clip, norm: [{own}]}}"]
    clips += [f"{{kind: clip, norm: {bound}, clip_object: {what}}}" for what in ("gradient", "weights")]
    clip, noise = draw(st.sampled_from([*clips, "clip_own_median"])), draw(st.sampled_from([*ACCOUNTED, *LEAKY]))
    noise = "{kind: gaussian, multiplier: 2, per_record: true}" if clip == "clip_own_median" else noise
    proved = noise in ACCOUNTED and "top_k" not in first
    median = kind != "gossip" and draw(st.booleans())
    after = [draw(st.sampled_from(["", "", "{kind: top_k, rate: 0.5}"])), "clip_cohort_median" if median else ""]
    listed = ", ".join(stage for stage in (first, clip, noise, *after) if stage)
    budget = draw(st.sampled_from(["{by: none}", *(["{by: rigorous, epsilon: 40}"] if proved else [])]))
    found = [f"privacy={{budget: {budget}}}", f"update=[{listed}]"]
    if draw(st.booleans()):
        size = (
            "multiplier: 1.2, scale: cohort_median" if median else "" if clip == "clip_own_median" else "multiplier: 2"
        )
        weights = WEIGHTS if "none" in budget else WEIGHTS[:-1]
        found.append(draw(aggregate_section(kind, size, weights)))
    return found


@st.composite
def extras(draw: st.DrawFn, kind: str, cohort: int, clients: int) -> list[str]:
    """Overrides that add relays, privacy budgets and noise shares, each in some of the worlds."""
    overrides = []
    if draw(st.integers(0, 3)) == 0:
        hops = draw(st.integers(1, 2))
        overrides += ["anonymity.routing=relay", f"anonymity.relays={hops + 1}", f"anonymity.hops={hops}"]
    protected = draw(st.sampled_from(["none", "short form", "stages"]))
    if protected == "short form":
        overrides.append("privacy={clip: flat, noise: {kind: gaussian, sigma: 4}}")
    overrides += [f"objective={draw(OBJECTIVES)}"] if draw(st.booleans()) else []
    if protected != "stages" and draw(st.integers(0, 5)) == 0:
        overrides.append("schedule={kind: budgets, local: {epsilon: 0.5, delta: 0.001, sigma: 1.5}}")
    if protected == "stages":
        return [*overrides, *draw(staged(kind, clients))]
    # Refused beside what it does not go with: tests leave such worlds out.
    overrides += draw(aggregations(kind))
    if cohort >= 3 and not any("aggregate=" in text for text in overrides) and draw(st.integers(0, 3)) == 0:
        policy = draw(st.sampled_from(["none", "omit"] if kind == "gossip" else ["none", "omit", "correct"]))
        shares = {
            "sigma_k": 0.2,
            "policy": policy,
            "share_as": draw(st.sampled_from(["seed", "vector"])),
            "when_short": draw(st.sampled_from(["skip", "fill"])),
            "least_shares": draw(st.integers(1, 2)),
            "correct_within": "5 s",
            "deadline": "1 s",
        }
        overrides.append(f"noise_shares={{{', '.join(f'{name}: {value}' for name, value in shares.items())}}}")
    return overrides


@st.composite
def troubled_worlds(draw: st.DrawFn, kinds: Sequence[str] = tuple(sorted(PROTOCOLS))) -> list[str]:
    """A small run of any protocol in which anything may go wrong."""
    world = draw(worlds(list(kinds), LOSSES))
    clients = int(next(text for text in world if text.startswith("clients=")).partition("=")[2])
    kind = next(kind for kind in PROTOCOLS if any(f"{{kind: {kind}," in text for text in world))
    cohort = int(
        next(text for text in world if "train_per_round: " in text).split("train_per_round: ")[1].split(",")[0]
    )
    more = draw(extras(kind, cohort, clients))
    # Noise shares need as many updates in every sum, which only the default graph gives.
    if any("graph: " in text for text in world):
        more = [text for text in more if not text.startswith(("noise_shares=", "aggregate="))]
    return [*world, *draw(misfortunes(kind, clients)), *more]


@st.composite
def quiet_worlds(draw: st.DrawFn) -> list[str]:
    """A run to which little happens, over links that differ, some of them short."""
    clients = draw(st.integers(4, 25))
    cohort = draw(st.integers(2, clients))
    finish = draw(st.sampled_from(["all", "{quorum: 0.6}"]))
    rates = ["1 kB/s", "10 kB/s", *(f"{{kind: lognormal, median: {rate} kB/s, sigma: 0.7}}" for rate in (2, 8, 40))]
    limited = draw(st.sampled_from(["proxy_uplink", "server_uplink", "server_downlink", ""]))
    return [
        f"clients={clients}",
        f"data.samples={20 * clients}",
        f"seed={draw(st.integers(0, 10_000))}",
        f"rounds={draw(st.integers(1, 2))}",
        f"protocol={{kind: gossip, train_per_round: {cohort}, exchange_with: {draw(st.integers(1, cohort - 1))}, "
        f"finish: {finish}, deadline: {draw(st.sampled_from([3, 60]))} s, "
        f"selection: {draw(st.sampled_from(['uniform', 'first_come']))}, "
        f"send_at: {draw(st.sampled_from(['ready', 'barrier']))}}}",
        f"anonymity.sealed={draw(st.sampled_from(['true', 'sizes', 'false']))}",
        "network.sharing=fair",
        f"network.uplink={draw(st.sampled_from(rates))}",
        f"network.downlink={draw(st.sampled_from([*rates, '100 kB/s']))}",
        f"network.latency={draw(LATENCIES)}",
        f"network.loss={draw(st.sampled_from([0.0, 0.0, 0.1]))}",
        "compute={kind: lognormal, median: 20 samples/s, sigma: 0.5}",
        *([f"network.{limited}=5 kB/s"] if limited else []),
    ]


@st.composite
def smooth_worlds(draw: st.DrawFn) -> list[str]:
    """Gossip that nothing disturbs, or not for long; over links that differ, downlinks too."""
    clients = draw(st.integers(3, 30))
    cohort = draw(st.integers(2, clients))
    shapes = [(2, 0.5), (2, 1.5), (20, 0.5), (20, 1.5)]
    rates = [
        "3 kB/s",
        "11 B/s",
        *(f"{{kind: lognormal, median: {rate} kB/s, sigma: {sigma}}}" for rate, sigma in shapes),
    ]
    early = [f"{{kind: {kind}, who: 0, start: 0 s, end: 3 s}}" for kind in ("crash", "slow_link, factor: 3")]
    faults = draw(st.sampled_from(["", "", *early]))
    spread = draw(st.sampled_from([0.1, 1.0, 3.0]))
    return [
        f"clients={clients}",
        f"data.samples={20 * clients}",
        f"seed={draw(st.integers(0, 10_000))}",
        f"rounds={draw(st.integers(1, 3))}",
        f"protocol={{kind: gossip, train_per_round: {cohort}, exchange_with: {draw(st.integers(1, cohort - 1))}, "
        f"deadline: {draw(st.sampled_from([20, 600]))} s, invite_window: {draw(st.sampled_from([1, 30]))} s, "
        f"include_own: {draw(st.sampled_from(['true', 'false']))}, "
        f"send_at: {draw(st.sampled_from(['ready', 'barrier']))}, grace: {draw(st.sampled_from([0, 5]))} s}}",
        f"anonymity.sealed={draw(st.sampled_from(['sizes', 'false', 'true']))}",
        f"anonymity.hand_out={draw(st.sampled_from(['neighbours', 'graph']))}",
        f"network.sharing={draw(st.sampled_from(sorted(SHARINGS)))}",
        f"network.uplink={draw(st.sampled_from(rates))}",
        f"network.downlink={draw(st.sampled_from([*rates, '4 kB/s', '30 kB/s', '1 MB/s', '1 GB/s']))}",
        f"network.latency={draw(st.one_of(LATENCIES, st.just('5 s')))}",
        f"compute={{kind: lognormal, median: 20 samples/s, sigma: {spread}}}",
        *([f"faults=[{faults}]"] if faults else []),
    ]


def balance(simulation: Simulation) -> np.ndarray[Any, Any]:
    """Checks the totals as they stand now and returns every row's outcome."""
    table = simulation.log.messages
    counts, sizes = message_totals(table)
    for totals in (counts, sizes):
        assert totals["sent"] == sum(totals[word] for word in records.OUTCOMES)
        assert totals["sent"] == sum(totals["by_kind"].values())
    outcomes = table["outcome"].copy()
    for kind in np.unique(table["kind"]):
        rows = table["kind"] == kind
        by_outcome = np.bincount(outcomes[rows], weights=table["size_bytes"][rows], minlength=4)
        assert by_outcome.sum() == sizes["by_kind"][records.KINDS[kind]]
    arrived = np.isin(outcomes, (records.OUTCOME["delivered"], records.OUTCOME["rejected"]))
    assert np.isfinite(table["arrived_s"][arrived]).all()
    assert np.isnan(table["arrived_s"][outcomes == records.OUTCOME["lost"]]).all()
    assert (table["reason"][np.isin(outcomes, (0, 1))] == 0).all()
    assert (table["reason"][np.isin(outcomes, (2, 3))] != 0).all()
    assert (table["left_bytes"] <= table["size_bytes"]).all()
    assert (table["overhead_bytes"] > 0).all()
    assert (table["overhead_bytes"] <= table["size_bytes"]).all()
    return outcomes
