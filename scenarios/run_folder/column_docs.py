"""What each column of a run folder's tables means; the reference page of the documentation is made from this."""

from __future__ import annotations

from p2p.log.records import KINDS

TABLE_DOCS = {
    "messages": "One row per transmission; a retransmission, a duplicate and each hop over a relay has its own.",
    "spans": "What a node did from when to when.",
    "rounds": "One row per round.",
    "dropouts": "Absences, missing updates and dropouts, each with its reason.",
    "graphs": "The edges along which updates were to be sent in a round, by true node numbers.",
    "privacy": "One row per release: what a ledger was charged.",
    "aggregations": "Which update entered which aggregation.",
}

COLUMN_DOCS: dict[str, dict[str, str]] = {
    "messages": {
        "id": "row number; the order of hand-over, retransmissions and copies included",
        "kind": "control, bootstrap, update, model, handover, share, correction or collect",
        "round": "the round it belongs to; 0 is the set-up, the round after the last one collects the final model",
        "sender": "node that hands it over on this hop",
        "receiver": "node it is addressed to on this hop",
        "size_bytes": "size on the wire, sealing included",
        "overhead_bytes": "of which sealing, headers and layers",
        "attempt": "1 for the first transmission, 2 and more for retransmissions",
        "sent_s": "when it was handed over",
        "arrived_s": "when its last byte arrived; null if it did not",
        "outcome": "delivered, lost, rejected or in_flight",
        "reason": "why it was lost or rejected; empty otherwise",
        "bottleneck": "what held it back: uplink, downlink or latency",
        "left_s": "when its last byte left the uplink; null if it did not",
        "left_bytes": "bytes that had left when it ended",
        "used": "whether the receiver used its content",
        "origin": "true sender over all hops",
        "destination": "true receiver over all hops",
        "previous": "row of the previous hop; null on the first",
        "wasted_bytes": "bytes that left and were lost, refused, or came too late to be used",
    },
    "spans": {
        "node": "the node, by its true number",
        "round": "the round; -1 where a node is down between rounds",
        "name": "invite, train, share, send, wait, aggregate, broadcast, idle or down",
        "start_s": "begin",
        "end_s": "end",
    },
    "dropouts": {
        "round": "the round",
        "node": "the client that is absent, or whose update is missing",
        "aggregator": "who should have had the update; null for absences and dropouts",
        "what": "absence (did not join), missing (one update in one aggregation), dropout (in no aggregation at all)",
        "reason": "budget, offline, declined; crashed, partitioned, rejected, lost, late; unconnected",
        "at_s": "when it was noticed",
    },
    "graphs": {"round": "the round", "sender": "from", "receiver": "to"},
    "privacy": {
        "round": "the round of the release",
        "node": "the client",
        "release": "number of this client's release, from 1",
        "noise_std": "standard deviation of its noise per coordinate",
        "mu2": "sum of squared sensitivity-to-noise ratios of its releases so far (Gaussian differential privacy)",
        "published": "epsilon so far by the paper's formula",
        "rigorous": "epsilon so far that is proved against an observer of all its releases (view `local`)",
        "budget_left": "fraction of the client's budget left; null without a budget",
        "trainings": "trainings with noise on single records so far; 0 where records are not protected one by one",
        "record": "epsilon of one record after so many trainings (unit: one record); null where there are none",
    },
    "aggregations": {
        "round": "the round",
        "aggregator": "who averaged",
        "contributor": "whose update entered",
        "at_s": "when",
        "void": "the average was discarded: another leader's became the round's model",
    },
    "rounds": {
        "round": "number, from 1",
        "start_s": "first invitation",
        "end_s": "the proxy closes the round",
        "cohort": "members that were assigned",
        "leader": "the aggregating leader or server; null in gossip",
        "updates_used": "updates of others that entered an aggregation",
        "updates_missing": "updates that an aggregation should have had",
        "skipped": "no aggregation took place",
        "noise_std": "mean over the cohort of the noise per coordinate",
        **{
            f"accuracy_{when}_{what}": f"{what} over the evaluated members, {when} aggregation"
            for when in ("before", "after")
            for what in ("max", "mean", "min")
        },
        "loss": "mean test loss after aggregation",
        "epsilon_published": "largest published epsilon so far",
        "epsilon_local": "proved so far against an observer of all releases of a client; the worst client",
        "epsilon_peer_worst": "proved so far against the worst single peer",
        "epsilon_model": "proved so far against an observer of the collected model",
        "evaluated_nodes": "the members that were evaluated",
        "evaluated_accuracy": "their accuracies, in the same order",
        "residual_variance": "variance of the noise left in the sum of shared noise; only with noise shares",
        "predicted_variance": "the same by formula; only with noise shares",
        "messages": "transmissions handed over",
        "bytes": "bytes handed over",
        **{f"bytes_{kind}": f"bytes of {kind} messages" for kind in KINDS},
    },
}
