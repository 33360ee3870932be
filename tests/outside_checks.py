"""A run's tables checked from outside: every rule is recomputed from the rows of the run folder alone.

Uses none of the code that writes the tables. A rule yields one line of text per row that breaks it.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise
from typing import Any

Row = dict[str, Any]
Rule = Callable[["Tables"], Iterator[str]]

TOLERANCE_S = 1e-9
SERVICES = 4
"""Proxy, standby, tracker and server follow the clients; then come relays and intruders."""
LOSSES = {"random", "burst", "partition", "sender_down", "receiver_down"}
REFUSALS = {"unknown_address", "stale_round", "replay", "corrupt", "not_neighbour"}
ONE_AT_A_TIME = {"invite", "train", "idle", "wait", "down"}
"""Spans of a node's process, which does one thing at a time; the others follow its messages."""


class Tables:
    """The tables as lists of rows, and what several rules look up.

    Args:
        clients: the number of clients; greater node numbers are services, relays and intruders.
        topology: `gossip`, `pseudo_central` (a rotating leader) or `central`.
    """

    def __init__(self, tables: Mapping[str, list[Row]], clients: int, topology: str) -> None:
        self.messages, self.spans, self.dropouts = tables["messages"], tables["spans"], tables["dropouts"]
        self.graphs, self.privacy, self.aggregations = tables["graphs"], tables["privacy"], tables["aggregations"]
        self.rounds = {row["round"]: row for row in tables["rounds"]}
        self.clients, self.topology = clients, topology

        # By round: the distinct pairs (contributor, aggregator) that count.
        self.used: dict[int, set[tuple[int, int]]] = defaultdict(set)
        self.averaged_s: dict[tuple[int, int], float] = {}
        for row in self.aggregations:
            if not row["void"]:
                self.used[row["round"]].add((row["contributor"], row["aggregator"]))
                self.averaged_s[row["round"], row["aggregator"]] = row["at_s"]
        self.edges = {(row["round"], row["sender"], row["receiver"]) for row in self.graphs}
        self.down: dict[int, list[tuple[float, float]]] = defaultdict(list)
        for row in self.spans:
            if row["name"] == "down":
                self.down[row["node"]].append((row["start_s"], row["end_s"]))

    def last_hops(self, kind: str) -> list[Row]:
        """The transmissions of a kind to their true receiver by nodes of the run, intruders excepted."""
        found = [row for row in self.messages if row["kind"] == kind and row["receiver"] == row["destination"]]
        return [row for row in found if row["origin"] < self.clients + SERVICES]

    def foreign(self, kind: str) -> list[Row]:
        """The transmissions of a kind by intruders."""
        return [row for row in self.messages if row["kind"] == kind and row["origin"] >= self.clients + SERVICES]


def violations(tables: Tables) -> list[str]:
    """Everything that the tables say and must not."""
    return [f"{rule.__name__}: {text}" for rule in RULES for text in rule(tables)]


def messages_have_one_outcome(tables: Tables) -> Iterator[str]:
    """Reasons fit outcomes, times are in order, sizes are whole."""
    for row in tables.messages:
        outcome, reason, arrived_s = row["outcome"], row["reason"], row["arrived_s"]
        allowed = {"lost": LOSSES, "rejected": REFUSALS}.get(outcome, {"", None})
        if reason not in allowed:
            yield f"{outcome} because {reason!r} in {row}"
        if (arrived_s is not None) != (outcome in ("delivered", "rejected")) and outcome != "in_flight":
            yield f"{outcome} and arrived at {arrived_s} in {row}"
        if arrived_s is not None and not row["sent_s"] <= row["left_s"] <= arrived_s:
            yield f"times are not in order in {row}"
        if not 0 <= row["overhead_bytes"] <= row["size_bytes"] or not 0 <= row["left_bytes"] <= row["size_bytes"]:
            yield f"bytes do not add up in {row}"
        # Control messages count as used whatever becomes of them: the column is about payloads.
        if row["used"] and outcome != "delivered" and row["kind"] != "control":
            yield f"used and {outcome} in {row}"


def bytes_by_round_add_up(tables: Tables) -> Iterator[str]:
    """A round's bytes by kind are those of its messages."""
    sums: Counter[tuple[int, str]] = Counter()
    for row in tables.messages:
        sums[row["round"], row["kind"]] += row["size_bytes"]
    for number, row in tables.rounds.items():
        for name, value in row.items():
            kind = name.removeprefix("bytes_")
            if kind != name and value != sums[number, kind]:
                yield f"round {number} has {value} bytes of {kind}, its messages {sums[number, kind]}"


def retransmissions_follow_a_loss(tables: Tables) -> Iterator[str]:
    """Attempt n + 1 comes after attempt n was lost, and before its round closed."""
    attempts: dict[Any, list[Row]] = defaultdict(list)
    for row in tables.messages:
        # After a failover, what is sent to the proxy arrives at the standby.
        ends = (
            tables.clients if row[end] == tables.clients + 1 else row[end]
            for end in ("sender", "receiver", "origin", "destination")
        )
        attempts[row["kind"], row["round"], *ends, row["attempt"]].append(row)
    for (*name, attempt), rows in attempts.items():
        earlier = [row for row in attempts.get((*name, attempt - 1), ()) if row["outcome"] == "lost"]
        for row in rows if attempt > 1 else ():
            if not any(one["left_s"] is not None and one["left_s"] <= row["sent_s"] for one in earlier):
                yield f"sent again without a loss: {row}"
            end_s = tables.rounds.get(row["round"], {}).get("end_s")
            if end_s is not None and row["sent_s"] > end_s:
                yield f"sent again after the round closed at {end_s}: {row}"


def rounds_follow_each_other(tables: Tables) -> Iterator[str]:
    """Numbered from 1, none before the last has ended; everything planned or decided in a round lies inside it."""
    rows = [tables.rounds[number] for number in sorted(tables.rounds)]
    if [row["round"] for row in rows] != list(range(1, len(rows) + 1)):
        yield f"rounds are {[row['round'] for row in rows]}"
    for row in rows:
        if not row["start_s"] <= row["end_s"]:
            yield f"ends before it starts: {row}"
    for one, other in pairwise(rows):
        if one["end_s"] > other["start_s"]:
            yield f"round {other['round']} starts before round {one['round']} has ended"
    for row in tables.messages:
        number = row["round"]
        # Set-up traffic of round 0 apart, and later messages of senders that do not know yet that a round is over.
        if number in tables.rounds and row["sent_s"] < tables.rounds[number]["start_s"]:
            yield f"sent before its round: {row}"


def one_leader_per_round(tables: Tables) -> Iterator[str]:
    """With a leader or server, one node averages what counts, and it is the round's leader; none if it is skipped."""
    for number, row in tables.rounds.items():
        aggregators = {aggregator for _, aggregator in tables.used[number]}
        # Where models are exchanged, a member that receives none keeps its own step: a row, but no aggregation.
        alone = tables.topology == "gossip" and all(one == other for one, other in tables.used[number])
        if row["skipped"] != (not aggregators) and not (row["skipped"] and alone):
            yield f"round {number} is skipped: {row['skipped']}; aggregators are {aggregators}"
        if tables.topology == "gossip":
            if row["leader"] is not None:
                yield f"gossip with a leader: {row}"
        elif aggregators - {row["leader"]}:
            yield f"round {number} is led by {row['leader']} and averaged by {aggregators}"


def used_updates_are_those_averaged(tables: Tables) -> Iterator[str]:
    """`updates_used`, `aggregations` and `messages.used` tell the same."""
    marked = [row for row in tables.last_hops("update") if row["used"]]
    names = Counter((row["round"], row["origin"], row["destination"]) for row in marked)
    others = {(number, *pair) for number, pairs in tables.used.items() for pair in pairs if pair[0] != pair[1]}
    if max(names.values(), default=1) > 1:
        yield f"an update was used twice: {names.most_common(1)}"
    # An intruder's copy of a lost update is as good as the original: its row is the one that is used.
    copies = Counter((row["round"], row["receiver"]) for row in tables.foreign("update") if row["used"])
    for name in sorted(names.keys() ^ others):
        copies[name[0], name[2]] -= 1
        if name[0] in tables.rounds and (name in names or copies[name[0], name[2]] < 0):
            yield f"(round, contributor, aggregator) = {name} is marked {name in names}, averaged {name in others}"
    for number, row in tables.rounds.items():
        count = sum(one != other for one, other in tables.used[number])
        if row["updates_used"] != count:
            yield f"round {number} counts {row['updates_used']} updates, its aggregations {count}"
    for row in marked:
        at_s = tables.averaged_s.get((row["round"], row["destination"]))
        if at_s is not None and row["arrived_s"] > at_s + TOLERANCE_S:
            yield f"averaged at {at_s} before it arrived: {row}"


def aggregations_lie_in_their_round(tables: Tables) -> Iterator[str]:
    """Void ones too; along the edges of a graph, each contribution once."""
    names = Counter((row["round"], row["aggregator"], row["contributor"]) for row in tables.aggregations)
    yield from (f"averaged twice: {name}" for name, count in names.items() if count > 1)
    for row in tables.aggregations:
        ends = tables.rounds.get(row["round"])
        if ends is not None and not ends["start_s"] <= row["at_s"] <= ends["end_s"]:
            yield f"outside its round ({ends['start_s']} to {ends['end_s']}): {row}"
        edge = row["round"], row["contributor"], row["aggregator"]
        if row["contributor"] != row["aggregator"] and edge not in tables.edges:
            yield f"not along an edge: {row}"


def only_the_rounds_model_is_adopted(tables: Tables) -> Iterator[str]:
    """A leader's model, once per member, before the round closes, from the leader or a member that has it."""
    if tables.topology != "pseudo_central":
        return
    having: dict[int, set[int]] = {number: {row["leader"]} for number, row in tables.rounds.items()}
    copies = [row for row in tables.foreign("model") if row["receiver"] == row["destination"]]
    adopted = [row for row in (*tables.last_hops("model"), *copies) if row["used"]]
    for row in sorted(adopted, key=lambda row: float(row["arrived_s"])):
        number, receiver = row["round"], row["destination"]
        if number not in tables.rounds:
            continue
        made_s = tables.averaged_s.get((number, tables.rounds[number]["leader"]))
        if made_s is None or row["sent_s"] < made_s:
            yield f"a model that is not the round's was adopted (the round's was made at {made_s}): {row}"
        # An intruder's copy is the model of the node that it was overheard from.
        known = row["origin"] in having[number] or row["origin"] >= tables.clients + SERVICES
        if not known or receiver in having[number]:
            yield f"adopted from a node without the model, or twice ({having[number]}): {row}"
        if row["arrived_s"] > tables.rounds[number]["end_s"]:
            yield f"adopted after the round closed at {tables.rounds[number]['end_s']}: {row}"
        having[number].add(receiver)


def the_newest_model_is_handed_over(tables: Tables) -> Iterator[str]:
    """By the leader of the last round that was not skipped."""
    for row in tables.last_hops("handover"):
        earlier = [one for number, one in tables.rounds.items() if number < row["round"] and not one["skipped"]]
        holder = max(earlier, key=lambda one: int(one["round"]))["leader"] if earlier else None
        if row["origin"] != holder:
            yield f"node {holder} has the newest model: {row}"


def what_is_missing_did_not_count(tables: Tables) -> Iterator[str]:
    """A missing update was planned, not used, and its reason is what happened to its messages."""
    rows = [row for row in tables.dropouts if row["what"] == "missing" and row["round"] in tables.rounds]
    counts = Counter(row["round"] for row in rows)
    for number, one in tables.rounds.items():
        if one["updates_missing"] != counts[number]:
            yield f"round {number} misses {one['updates_missing']} updates, and {counts[number]} are listed"
    transmissions: dict[Any, list[Row]] = defaultdict(list)
    for row in tables.messages:
        if row["kind"] == "update" and row["origin"] < tables.clients:
            transmissions[row["round"], row["origin"], row["destination"]].append(row)
    for row in rows:
        name = row["round"], row["node"], row["aggregator"]
        if name not in tables.edges or name[1:] in tables.used[row["round"]]:
            yield f"missing and not planned, or used: {row}"
        if (row["round"], row["aggregator"]) not in tables.averaged_s:
            yield f"missing where nothing was averaged: {row}"
        yield from _wrong_reason(tables, row, transmissions[name])


def _wrong_reason(tables: Tables, row: Row, sent: list[Row]) -> Iterator[str]:
    there = [one for one in sent if one["receiver"] == one["destination"] and one["outcome"] == "delivered"]
    end_s = tables.rounds[row["round"]]["end_s"]
    # Reasons are given when the round closes: what was under way then was late, whatever became of it.
    under_way = any(
        one["left_s"] is None
        or one["left_s"] > end_s
        or one["outcome"] == "in_flight"
        or _is_cut_off_after(tables, one, end_s)
        for one in sent
    )
    reasons = {one["reason"] for one in sent}
    wrong = {
        "lost": bool(there) or under_way or not sent,
        "rejected": not any(one["outcome"] == "rejected" for one in sent),
        "partitioned": "partition" not in reasons,
        "crashed": not tables.down[row["node"]] and not tables.down[row["aggregator"]],
        "late": bool(sent) and not there and not under_way,
    }
    if wrong[row["reason"]]:
        yield f"{row} but its messages are {[(one['outcome'], one['reason'], one['arrived_s']) for one in sent]}"


def _is_cut_off_after(tables: Tables, message: Row, end_s: float) -> bool:
    """Whether a message had left by `end_s` and was lost when its receiver went down later."""
    down = tables.down[message["receiver"]]
    was_down = any(start_s <= end_s and back_s > message["sent_s"] for start_s, back_s in down)
    return message["reason"] == "receiver_down" and not was_down


def members_contribute_or_drop_out(tables: Tables) -> Iterator[str]:
    """Each member either is in another node's average, or leads, or is a dropout."""
    dropped = Counter((row["round"], row["node"]) for row in tables.dropouts if row["what"] == "dropout")
    yield from (f"dropped out twice: {name}" for name, count in dropped.items() if count > 1)
    members: dict[int, set[int]] = defaultdict(set)
    for number, sender, receiver in tables.edges:
        members[number] |= {node for node in (sender, receiver) if node < tables.clients}
    # A graph may leave members alone: they are no part of its edges, and drop out for that reason or crash before.
    for row in tables.dropouts:
        if row["what"] == "dropout" and row["reason"] in ("unconnected", "crashed"):
            members[row["round"]].add(row["node"])
    for number, one in tables.rounds.items():
        if len(members[number]) != one["cohort"]:
            yield f"round {number} has a cohort of {one['cohort']} and a graph of {len(members[number])}"
        contributors = {node for node, aggregator in tables.used[number] if node != aggregator}
        leads = {one["leader"]} if not one["skipped"] else set()
        for node in members[number]:
            if ((number, node) in dropped) == (node in contributors | leads):
                yield f"round {number}: node {node} contributed {node in contributors}, dropped out {not dropped}"


def spans_fit_into_a_nodes_time(tables: Tables) -> Iterator[str]:
    """A process does one thing at a time, nothing while its node is down, and trains once in a round."""
    by_node: dict[int, list[Row]] = defaultdict(list)
    trained = Counter((row["node"], row["round"]) for row in tables.spans if row["name"] == "train")
    yield from (f"trains twice: {name}" for name, count in trained.items() if count > 1)
    for row in tables.spans:
        if not row["start_s"] < row["end_s"]:
            yield f"empty: {row}"
        if row["name"] in ONE_AT_A_TIME:
            by_node[row["node"]].append(row)
    for rows in by_node.values():
        for one, other in pairwise(sorted(rows, key=lambda row: (row["start_s"], row["end_s"]))):
            if other["start_s"] < one["end_s"] - TOLERANCE_S:
                yield f"{one} overlaps {other}"


def nodes_that_are_down_are_silent(tables: Tables) -> Iterator[str]:
    """They hand nothing over and receive nothing."""
    for row in tables.messages:
        for node, at_s in ((row["sender"], row["sent_s"]), (row["receiver"], row["arrived_s"])):
            if at_s is not None and any(start_s < at_s < end_s for start_s, end_s in tables.down[node]):
                yield f"node {node} is down: {row}"


def charges_are_releases(tables: Tables) -> Iterator[str]:
    """Each client is charged once in a round in which its update left it, alone or in a model, and in no other."""
    if not tables.privacy:
        return
    charged = Counter((row["round"], row["node"]) for row in tables.privacy)
    yield from (f"charged twice: {name}" for name, count in charged.items() if count > 1)
    left = {(row["round"], row["origin"]) for row in tables.messages if row["kind"] == "update"}
    left = {name for name in left if name[1] < tables.clients}
    left |= {(number, node) for number, pairs in tables.used.items() for node, _ in pairs}
    for name in sorted(left ^ charged.keys()):
        yield f"(round, node) = {name} is charged: {name in charged}, has left: {name in left}"


RULES: tuple[Rule, ...] = (
    messages_have_one_outcome,
    bytes_by_round_add_up,
    retransmissions_follow_a_loss,
    rounds_follow_each_other,
    one_leader_per_round,
    used_updates_are_those_averaged,
    aggregations_lie_in_their_round,
    only_the_rounds_model_is_adopted,
    the_newest_model_is_handed_over,
    what_is_missing_did_not_count,
    members_contribute_or_drop_out,
    spans_fit_into_a_nodes_time,
    nodes_that_are_down_are_silent,
    charges_are_releases,
)
