"""Rules across sections; each applies only if all the sections it needs could be read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from nodes.datasets.client_split import ByClient, Shards
from nodes.datasets.plays import Shakespeare
from nodes.datasets.published import Adult, Cifar10, Mnist
from nodes.datasets.registry import Digits, Synthetic
from nodes.faults.fault_kinds import fault_problems
from nodes.faults.targets import parse_nodes
from nodes.learning.model_kinds.models import ByteCount, Cnn, Linear, Mlp
from nodes.learning.sequences.sequence_models import Lstm
from nodes.protocols import roles_of
from nodes.protocols.central import Central
from nodes.protocols.gossip import Gossip
from nodes.protocols.graphs import kind_name
from nodes.protocols.rotating_leader import RotatingLeader
from p2p.config.errors import UserError
from privacy.calibration.strategies import RigorousCalibration
from privacy.noise_shares.settings import NoiseShares
from privacy.settings import Privacy
from privacy.stages.order import kind_of as stage_kind
from scenarios.loading.checks.adversary_checks import (
    ATTACKED_PARTS,
    attack_findings,
    audit_findings,
    observer_findings,
    reserved_findings,
)
from scenarios.loading.checks.aggregate_checks import aggregate_findings
from scenarios.loading.checks.budget_checks import budget_findings, model_view_findings
from scenarios.loading.checks.graph_checks import graph_findings, is_default_exchange, privacy_fits_graph
from scenarios.loading.checks.schedule_checks import schedule_findings
from scenarios.loading.privacy_classes import privacy_findings
from scenarios.loading.problems import Path, Problems
from scenarios.loading.ratio_keys import SHARES

Finding = tuple[Path, Any, str]
Check = Callable[..., Iterator[Finding]]
_COUNTS_CANCELLED = (
    "would count noise that cancels as privacy: one who gets all uploads takes it off; drop it and give "
    "`noise_shares.tau_ind`, or set `privacy.budget.by: published` to compare published figures only"
)


def check_parts(parts: Mapping[str, Any], problems: Problems) -> None:
    """Adds a problem for every impossible combination among the readable sections."""
    for names, check in CHECKS:
        if all(name in parts for name in names) and not (check in _ABOUT_GRAPH and _graph_is_unreadable(problems)):
            for path, value, rule in check(*(parts[name] for name in names)):
                # One problem per key: a value that could not be read would only be reported twice.
                if not problems.about(path) and not problems.about(_ratio_key(path)):
                    problems.wrong(path, value, rule)
    _check_within_parts(parts, problems)


def _ratio_key(path: Path) -> Path:
    """Returns the ratio key of a count: `protocol.tcsr` for `protocol.train_per_round`.

    An invalid ratio leaves the count missing, which is not a second problem.
    """
    shares = {count: share for share, count in SHARES.items()}
    return (*path[:-1], shares.get(str(path[-1]), path[-1]))


def _name_fits_folder(name: str) -> Iterator[Finding]:
    if not name.isprintable() or "/" in name or "\\" in name or name.strip(" .") != name:
        yield ("name",), name, "names the folder of results; use letters, digits, spaces, - _ and . inside"


def _cohort_fits(protocol: Any, clients: int) -> Iterator[Finding]:
    # A plug-in protocol may have no such key; the rule then holds.
    cohort = getattr(protocol, "train_per_round", 2)
    if cohort is None:
        yield ("protocol", "train_per_round"), None, "is needed; add it, or `tcsr` as a share of all clients"
    elif cohort > clients:
        yield ("protocol", "train_per_round"), cohort, f"must be <= clients, which is {clients}; lower it"


def _exchange_fits(protocol: Any) -> Iterator[Finding]:
    if not hasattr(protocol, "exchange_with"):
        return
    cohort, others = protocol.train_per_round, protocol.exchange_with
    if not getattr(getattr(protocol, "graph", None), "free_degree", True):
        if others is not None:
            rule = (
                f"is fixed by the graph {kind_name(protocol.graph)}; drop it (or `mer`), or take a graph that does not"
            )
            yield ("protocol", "exchange_with"), others, rule
    elif others is None:
        yield ("protocol", "exchange_with"), None, "is needed; add it, or `mer` as a share of all clients"
    elif cohort is not None and others >= cohort and not _over_clients(protocol):
        rule = f"must be < train_per_round, which is {cohort}: a member exchanges with others; lower it"
        yield ("protocol", "exchange_with"), others, rule


def _over_clients(protocol: Any) -> bool:
    """Returns whether the graph is one of all clients, so that the cohort does not limit the degree."""
    return bool(getattr(getattr(protocol, "redraw", None), "over_clients", False))


def _evaluation_fits(evaluation: Any, clients: int) -> Iterator[Finding]:
    if evaluation.clients != "all" and evaluation.clients > clients:
        yield (
            ("evaluation", "clients"),
            evaluation.clients,
            f"must be <= clients, which is {clients}; lower it or write `all`",
        )


def _records_suffice(data: Any, clients: int) -> Iterator[Finding]:
    # The size of a user's file is known only after loading it.
    records = data.records() if hasattr(data, "records") else None
    split: Any = getattr(data, "split", None)
    if records is None or not hasattr(split, "needs"):
        return
    needed = split.needs(clients)
    if needed > records:
        path: Path = ("data", "split", "classes_per_client") if isinstance(split, Shards) else ("clients",)
        value = split.classes_per_client if isinstance(split, Shards) else clients
        what = f"{needed} shards" if isinstance(split, Shards) else f"{clients} clients"
        cure = "raise data.samples" if hasattr(data, "samples") else "use more data"
        yield path, value, f"{what} need {needed} records, the data has {records}; lower it or {cure}"


def _owners_known(data: Any) -> Iterator[Finding]:
    if isinstance(getattr(data, "split", None), ByClient) and getattr(data, "client", None) is None:
        yield ("data", "split"), "by_client", "needs to know whose records are whose; name the column in `client`"


def _model_can_learn(model: Any, learning: str) -> Iterator[Finding]:
    if isinstance(model, ByteCount) and learning != "none":
        yield ("model", "kind"), "bytes", "has no layers to train; set `learning: none`, or take another model"


def _faults_have_targets(faults: Any, protocol: Any, clients: int) -> Iterator[Finding]:
    roles = roles_of(protocol)
    for index, fault in enumerate(faults):
        for problem in fault_problems(fault, clients, roles):
            key, _, rest = problem.partition(" = ")
            value, _, rule = rest.partition(": ")
            yield ("faults", index, key), value, rule


def _records_are_sampled(training: Any) -> Iterator[Finding]:
    private = training.per_sample
    if private is not None and private.sampling == "poisson" and training.batch_size == "all":
        rule = "poisson takes some of the records into each step; give training.batch_size a number, or use `shuffled`"
        yield ("training", "per_sample", "sampling"), "poisson", rule
    if private is not None and private.noise == 0 and private.participations is not None:
        rule = "limits what records may lose, but noise 0 protects none; drop it, or raise noise"
        yield ("training", "per_sample", "participations"), private.participations, rule


def _model_reads_symbols(model: Any, data: Any) -> Iterator[Finding]:
    # Own data sets and files are checked when they are loaded.
    known = isinstance(data, Digits | Synthetic | Mnist | Cifar10 | Adult)
    if isinstance(model, Lstm) and known and len(data.form()[0]) == 1:
        yield ("model", "kind"), "lstm", "reads sequences of symbols, which this data has not; use `shakespeare` or mlp"
    if isinstance(data, Shakespeare) and isinstance(model, Linear | Mlp | Cnn):
        yield ("model", "kind"), type(model).__name__.lower(), "takes codes of characters for amounts; use `lstm`"


def _measured_rounds_exist(evaluation: Any, rounds: int) -> Iterator[Finding]:
    if evaluation.measure_from > rounds:
        rule = f"must be <= rounds, which is {rounds}: nothing would be measured; lower it"
        yield ("evaluation", "measure_from"), evaluation.measure_from, rule


def _shares_fit(
    shares: NoiseShares | None, protocol: Any, privacy: Any, anonymity: Any, clients: int
) -> Iterator[Finding]:
    """What does not go together with an exchange of noise shares."""
    if shares is None:
        return
    yield from _shares_fit_protocol(shares, protocol)
    yield from _shares_fit_privacy(shares, privacy)
    yield from _shares_fit_clients(shares, clients)
    if shares.share_as == "pairwise" and anonymity.sealed is False:
        yield ("noise_shares", "share_as"), "pairwise", "needs keys to agree with; set `anonymity.sealed: true`"
    varied = isinstance(shares.epsilon, tuple) or isinstance(shares.sigma_k, tuple) or shares.weights == "records"
    if shares.share_as == "pairwise" and varied:
        rule = "sends nothing, so peers cannot tell each other's sigma_k; use `seed`, or one sigma_k for all"
        yield ("noise_shares", "share_as"), "pairwise", rule


def _shares_fit_protocol(shares: NoiseShares, protocol: Any) -> Iterator[Finding]:
    gossip = isinstance(protocol, Gossip)
    if not isinstance(protocol, Gossip | RotatingLeader | Central):
        rule = "must be gossip, rotating_leader or central to exchange noise shares; take another or drop them"
        yield ("protocol", "kind"), type(protocol).__name__, rule
        return
    if isinstance(protocol, Gossip) and not is_default_exchange(protocol):
        rule = "need as many updates in every sum; leave graph, redraw, mixing and exchange as they are by default"
        yield ("noise_shares",), "noise shares", rule
    if gossip and shares.policy == "correct":
        rule = "cannot work with gossip: an upload missing at one peer has reached another, which could then take its "
        yield ("noise_shares", "policy"), "correct", rule + "opened noise off; use `none` or `omit`"
    if gossip and shares.weights == "records":
        rule = "needs one sum over the cohort; with gossip every peer sums another one, so use `equal`"
        yield ("noise_shares", "weights"), "records", rule
    if not gossip and shares.partners == "co_recipients":
        rule = "is for gossip; elsewhere all updates meet at one place, so use `random`"
        yield ("noise_shares", "partners"), "co_recipients", rule
    if shares.deadline is not None and shares.deadline >= protocol.deadline:
        rule = f"must be < protocol.deadline, which is {protocol.deadline:g} s: uploads come after shares; lower it"
        yield ("noise_shares", "deadline"), shares.deadline, rule
    least = 3 if isinstance(protocol, RotatingLeader) else 2
    if protocol.train_per_round is not None and protocol.train_per_round < least:
        rule = f"must be >= {least} to exchange noise shares: a leader is no member's partner; raise it"
        yield ("protocol", "train_per_round"), protocol.train_per_round, rule


def _shares_fit_privacy(shares: NoiseShares, privacy: Privacy | None) -> Iterator[Finding]:
    if shares.epsilon is not None and (privacy is None or not np.isfinite(privacy.clip_norm)):
        rule = "needs bounded updates; set `privacy.clip: {kind: flat, norm: 1.0}`, or give `sigma_k` instead"
        yield ("noise_shares", "epsilon"), shares.epsilon, rule
    if privacy is None:
        return
    by, calibration = privacy.resolved_budget().by, privacy.calibration
    if isinstance(calibration, RigorousCalibration) or (calibration is not None and by != "published"):
        yield ("privacy", "noise", "calibrate"), type(calibration).__name__, _COUNTS_CANCELLED
    elif by == "rigorous":
        yield ("privacy", "budget", "by"), "rigorous", _COUNTS_CANCELLED


def _shares_fit_clients(shares: NoiseShares, clients: int) -> Iterator[Finding]:
    for key in ("epsilon", "sigma_k"):
        values = getattr(shares, key)
        if isinstance(values, tuple) and len(values) != clients:
            rule = f"has {len(values)} numbers for {clients} clients; give one for each, or one for all"
            yield ("noise_shares", key), list(values[:3]), rule
    seen: set[int] = set()
    for index, group in enumerate(shares.coalitions):
        named = parse_nodes(group, clients, (), "coalitions")
        for problem in named.problems:
            yield ("noise_shares", "coalitions", index), group, problem.partition(": ")[2]
        if seen & set(named.nodes):
            rule = f"client {min(seen & set(named.nodes))} is in two coalitions; leave it in one"
            yield ("noise_shares", "coalitions", index), group, rule
        seen |= set(named.nodes)


def _stages_fit(privacy: Privacy | None, protocol: Any, shares: NoiseShares | None) -> Iterator[Finding]:
    """What of the stages of an update does not go together with the protocol or with noise shares."""
    for index, stage in enumerate(() if privacy is None else privacy.stages):
        if isinstance(protocol, Gossip) and (why := getattr(stage, "one_aggregator", "")):
            rule = f"does not work with gossip, where every member aggregates: {why}, or another protocol"
            yield ("update", index), stage_kind(stage), rule
        if shares is not None and not getattr(stage, "with_shares", False):
            rule = "cannot carry noise shares, which are added to every coordinate; drop it or `noise_shares`"
            yield ("update", index), stage_kind(stage), rule


CHECKS: tuple[tuple[tuple[str, ...], Check], ...] = (
    (("name",), _name_fits_folder),
    (("protocol", "clients"), _cohort_fits),
    (("protocol",), _exchange_fits),
    (("protocol", "clients"), graph_findings),
    (("privacy", "protocol"), privacy_fits_graph),
    (("evaluation", "clients"), _evaluation_fits),
    (("evaluation", "rounds"), _measured_rounds_exist),
    (("data", "clients"), _records_suffice),
    (("data",), _owners_known),
    (("model", "learning"), _model_can_learn),
    (("training",), _records_are_sampled),
    (("model", "data"), _model_reads_symbols),
    (("faults", "protocol", "clients"), _faults_have_targets),
    (("privacy", "clients", "protocol"), privacy_findings),
    (("noise_shares", "protocol", "privacy", "anonymity", "clients"), _shares_fit),
    (("privacy", "protocol", "noise_shares"), _stages_fit),
    (("reserved", "clients", "data"), reserved_findings),
    (("adversaries", "protocol", "reserved", "clients"), observer_findings),
    (("audit", "learning", "privacy", "noise_shares", "schedule"), audit_findings),
    (("attacks", "adversaries", "data", *ATTACKED_PARTS), attack_findings),
    (("schedule", "privacy", "protocol", "noise_shares", "learning", "aggregate"), schedule_findings),
    (("aggregate", "protocol", "privacy", "noise_shares"), aggregate_findings),
    (("privacy", "aggregate", "schedule"), budget_findings),
    (("privacy", "protocol", "aggregate", "noise_shares"), model_view_findings),
)


_ABOUT_GRAPH = (_exchange_fits, graph_findings, privacy_fits_graph, _shares_fit)


def _graph_is_unreadable(problems: Problems) -> bool:
    """Returns whether the checks would see a default in the place of what could not be read."""
    return any(line.startswith(("protocol.graph", "protocol.redraw")) for line in problems.lines)


def _check_within_parts(parts: Mapping[str, Any], problems: Problems) -> None:
    """Adds the contradictions a section finds in itself, and a model that does not accept the data's shape."""
    privacy: Any = parts.get("privacy")
    data: Any = parts.get("data")
    model: Any = parts.get("model")
    if privacy is not None:
        problems.add(privacy.problems())
    form = data.form() if hasattr(data, "form") else None
    if form is not None and hasattr(model, "parameters"):
        # The model itself knows which shapes it accepts.
        try:
            model.parameters(*form)
        except UserError as error:
            problems.add(error.problems)
