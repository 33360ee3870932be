"""Reads a run's tables into the rounds of the brute-force oracle, row by row; shares no code with the product."""

from __future__ import annotations

from typing import Any

from scenarios.composition.simulation import Simulation
from tests.by_hand import messages
from tests.privacy.accounting.oracle import Form, Release, Round

RECEIVERS = -1
CUT_OFF = ("partition", "sender_down", "receiver_down")


def rounds_of(simulation: Simulation) -> list[Round]:
    """Every round in which something was released."""
    table = simulation.log.privacy
    numbers = sorted({int(number) for number in table["round"]})
    rows = messages(simulation.log)
    return [_round(simulation, number, [row for row in rows if row["round"] == number]) for number in numbers]


def _round(simulation: Simulation, number: int, rows: list[dict[str, Any]]) -> Round:
    found, shared = Round(), simulation.sharing is not None
    _add_releases(found, simulation, number)
    clients = [release.client for release in found.releases]
    for sender, receiver in _reached(simulation, rows, "update"):
        found.received |= {(receiver, row) for row, client in enumerate(clients) if client == sender}
    if shared:
        _add_knowledge(found, simulation, number, rows)
        senders = {row["origin"] for row in rows if row["kind"] == "update"}
        if simulation.topology != "gossip" and simulation.scenario.anonymity.sealed is not False:
            found.kept = {row for row, client in enumerate(clients) if client not in senders}
    table = simulation.log.aggregations
    averaged: dict[tuple[int, float], list[int]] = {}
    for when, node, contributor, at_s, void in zip(
        *(table[name].tolist() for name in ("round", "aggregator", "contributor", "at_s", "void")), strict=True
    ):
        if when == number and not void:
            averaged.setdefault((node, at_s), []).append(contributor)
    for (node, _), members in averaged.items():
        found.used |= {(row, node) for row, client in enumerate(clients) if client in members}
        inputs = [row for row, client in enumerate(clients) if client in members]
        if len(inputs) == len(members) and not _altered(simulation):
            extra = _repairs(simulation, number, node) if shared else _aggregate_noise(found, simulation, node, inputs)
            found.sums.append((_weights(simulation, [clients[row] for row in inputs], inputs), extra))
        else:
            found.sums += [([row], {}) for row in inputs]
    return found


def _altered(simulation: Simulation) -> bool:
    """Whether a mean may hold updates that were altered on their way; all that is in one then counts as seen."""
    kinds = {type(fault).__name__ for fault in simulation.scenario.faults}
    return simulation.scenario.anonymity.sealed is False and "Corrupt" in kinds


def _weights(simulation: Simulation, clients: list[int], inputs: list[int]) -> dict[int, float]:
    """The weight of each release in a mean, from the records of its client."""
    rule = simulation.scenario.aggregate.weights
    if rule == "uniform":
        return dict.fromkeys(inputs, 1.0 / len(inputs) if simulation.sharing is None else 1.0)
    records = simulation.samples_per_training / simulation.scenario.training.epochs
    total = sum(records[client] for client in (range(len(records)) if rule == "records_of_all" else clients))
    return {row: records[client] / total for row, client in zip(inputs, clients, strict=True)}


def _aggregate_noise(found: Round, simulation: Simulation, node: int, inputs: list[int]) -> Form:
    """The noise that an aggregator added to a mean, and knows."""
    noise = simulation.scenario.aggregate.noise
    if noise is None or simulation.noise is None:
        return {}
    name = ("aggregate", len(found.sums))
    std = noise.sigma if noise.sigma is not None else (noise.multiplier or 0.0) * simulation.noise.clip_norm
    found.variances[name] = (std / len(inputs) if noise.on == "sum" else std) ** 2
    found.known.add((node, name))
    return {name: 1.0}


def _add_releases(found: Round, simulation: Simulation, number: int) -> None:
    table, noise, sharing = simulation.log.privacy, simulation.noise, simulation.sharing
    assert noise is not None
    charged = [row for row in range(len(table)) if table["round"][row] == number]
    if sharing is None:
        for place, row in enumerate(charged):
            client, own = int(table["node"][row]), ("own", place)
            found.variances[own] = float(table["noise_std"][row]) ** 2
            found.known.add((client, own))
            found.releases.append(Release(client, noise.sensitivity, {own: 1.0}))
        return
    nodes = {int(table["node"][row]) for row in charged}
    uploads = [*sharing.share_log.uploads.get(number, {}).values(), *sharing.share_log.replaced.get(number, [])]
    for upload in sorted((one for one in uploads if one.node in nodes), key=lambda one: one.node):
        own = ("own", len(found.releases))
        found.variances[own] = (sharing.plan.noise_std[upload.node] * upload.weight) ** 2 + upload.independent_std**2
        found.known.add((upload.node, own))
        form: Form = {own: 1.0}
        for share, sign in [*((share, 1.0) for share in upload.sent), *((one.share, -1.0) for one in upload.taken)]:
            name = ("share", share.sender, share.receiver, share.seed)
            found.variances[name] = 1.0
            form[name] = sign * share.std
        found.releases.append(Release(upload.node, noise.sensitivity * upload.weight, form))


def _add_knowledge(found: Round, simulation: Simulation, number: int, rows: list[dict[str, Any]]) -> None:
    assert simulation.sharing is not None
    share_log = simulation.sharing.share_log
    came = _reached(simulation, rows, "share")
    for name in list(found.variances):
        if not isinstance(name, tuple) or name[0] != "share":
            continue
        sender, receiver = int(name[1]), int(name[2])
        found.known.add((sender, name))
        if (sender, receiver) in came or simulation.sharing.plan.settings.share_as == "pairwise":
            found.known.add((receiver, name))
        if simulation.scenario.anonymity.sealed is False:
            found.known.add((RECEIVERS, name))
    told = _reached(simulation, rows, "correction")
    for when, asker, survivor in share_log.answers:
        if when == number and ((survivor, asker) in told or survivor == asker):
            sent, taken = share_log.opened[number][survivor]
            for share in (*sent, *(one.share for one in taken)):
                name = ("share", share.sender, share.receiver, share.seed)
                found.known |= {(asker, name), (RECEIVERS, name)}


def _repairs(simulation: Simulation, number: int, aggregator: int) -> Form:
    assert simulation.sharing is not None
    share_log = simulation.sharing.share_log
    form: Form = {}
    for node in share_log.repairs.get((number, aggregator), ()):
        sent, taken = share_log.answers[number, aggregator, node]
        for share, sign in [*((share, -1.0) for share in sent), *((one.share, 1.0) for one in taken)]:
            name = ("share", share.sender, share.receiver, share.seed)
            form[name] = form.get(name, 0.0) + sign * share.std
    return form


def _reached(simulation: Simulation, rows: list[dict[str, Any]], kind: str) -> set[tuple[int, int]]:
    """Who may have seen whose message of this kind: arrived, under way, cut off, or brought by an intruder's copy."""
    first_intruder = simulation.scenario.clients + 4
    copied = set()
    found = set()
    for row in rows:
        if row["kind"] != kind or row["destination"] < 0:
            continue
        here = row["receiver"] == row["destination"]
        cut = row["outcome"] == "lost" and row["reason"] in CUT_OFF and row["left_bytes"] > 0
        if row["outcome"] == "in_flight" or (here and (row["outcome"] in ("delivered", "rejected") or cut)):
            if row["origin"] >= first_intruder:
                copied.add(row["destination"])
            else:
                found.add((row["origin"], row["destination"]))
    ours = [row for row in rows if row["kind"] == kind and row["origin"] < first_intruder]
    return found | {(row["origin"], row["destination"]) for row in ours if row["destination"] in copied}
