"""The headline figures of a run, shown first in the final table and in the report."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from p2p.log import records
from p2p.log.log import Log
from scenarios.metrics.communication.per_round_traffic import traffic_per_round
from scenarios.metrics.communication.roles import Roles, leaders
from scenarios.metrics.communication.traffic import bytes_by_node, node_count, stalled_s, wasted_per_message
from scenarios.metrics.headline.run_facts import RunFacts
from scenarios.metrics.privacy.privacy_verdict import epsilon_headline

TRANSPORT_ASSUMED = "anonymous transport assumed, its cost not included"
_ROUNDS_NAMED = 5


def headline(facts: RunFacts) -> dict[str, Any]:
    """Returns accuracy, cost to the target accuracy, bytes by role, losses, epsilons and linkability."""
    log = facts.log
    return {
        "accuracy": {"collected": facts.collected_accuracy, "clients": facts.accuracy},
        "to_target": to_target(log, facts.target_accuracy),
        **bytes_headline(log, facts.roles),
        "per_round": {**traffic_per_round(log, facts.roles.clients), "seconds": _seconds_per_round(log)},
        "rounds_lost": sum(bool(record.get("skipped")) for record in log.rounds),
        "updates_used": int(sum(record.get("updates_used") or 0 for record in log.rounds)),
        "wasted_bytes": int(wasted_per_message(log.messages).sum()),
        "stalled_s": stalled_s(log),
        "epsilon": epsilon_headline(facts.privacy),
        "linkability": dict(facts.linkability),
        "transport": TRANSPORT_ASSUMED if facts.routing == "assumed" else "bytes counted on every hop",
    }


def _seconds_per_round(log: Log) -> float | None:
    lengths_s = [float(record["end_s"]) - float(record["start_s"]) for record in log.rounds]
    return float(np.mean(lengths_s)) if lengths_s else None


def to_target(log: Log, target_accuracy: float | None) -> dict[str, Any]:
    """Returns the simulated seconds and bytes up to the first round whose mean accuracy reaches the target.

    All values are None if no round does.
    """
    reached: dict[str, Any] = {"accuracy": target_accuracy, "round": None, "simulated_s": None, "bytes": None}
    for record in log.rounds:
        mean = record.get("accuracy_after_mean")
        if target_accuracy is not None and mean is not None and mean >= target_accuracy:
            # All bytes sent by then, also those of set-up and of messages still in flight.
            sent = log.messages["sent_s"] <= record["end_s"]
            spent = int(log.messages["size_bytes"][sent].sum())
            return {**reached, "round": record["round"], "simulated_s": record["end_s"], "bytes": spent}
    return reached


def bytes_headline(log: Log, roles: Roles) -> dict[str, Any]:
    """Returns bytes sent and received: spread over the clients, and totals of proxy, server and relays."""
    # Services may have sent nothing, and then do not appear in the log.
    nodes = max(node_count(log), roles.node("server") + 1)
    sent, received = bytes_by_node(log.messages, nodes)
    total = sent + received
    services = {name: int(total[roles.node(name)]) for name in ("proxy", "standby", "server")}
    return {
        "bytes_per_client": _spread(log, total[: roles.clients]),
        "proxy_bytes": services["proxy"] + services["standby"],
        "server_bytes": services["server"],
        "relay_bytes": int(sum(total[node] for node in roles.relays if node < nodes)),
    }


def _spread(log: Log, total: NDArray[np.int64]) -> dict[str, Any]:
    if not len(total):
        return {"median": None, "p95": None, "max": None, "max_is": None}
    # On a tie the smallest id.
    most = int(np.argmax(total))
    median, p95 = np.percentile(total, (50, 95))
    who = {"node": most, "role": busiest_role(log, most)}
    return {"median": round(float(median)), "p95": round(float(p95)), "max": int(total[most]), "max_is": who}


def busiest_role(log: Log, node: int) -> str:
    """Describes the role of the busiest client: the rounds it led, or the number of cohorts it was in."""
    led = [number for number, leader in leaders(log).items() if leader == node]
    if led:
        named = ", ".join(str(number) for number in led[:_ROUNDS_NAMED])
        more = f" and {len(led) - _ROUNDS_NAMED} more" if len(led) > _ROUNDS_NAMED else ""
        return f"leader in round{'s' if len(led) > 1 else ''} {named}{more}"
    updates = (log.messages["sender"] == node) & (log.messages["kind"] == records.KIND["update"])
    joined = len(np.unique(log.messages["round"][updates]))
    return f"member of {joined} cohort{'' if joined == 1 else 's'}"
