"""The headline's figures, computed by hand."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest

from p2p.log.log import Log
from scenarios.metrics.communication.roles import Roles
from scenarios.metrics.communication.traffic import stalled_s, stalls
from scenarios.metrics.headline.headline import bytes_headline, to_target
from scenarios.metrics.privacy.privacy_verdict import epsilon_headline, published_text, verdict


def test_price_of_the_target(add_message: Callable[..., int], round_record: Callable[..., dict[str, Any]]) -> None:
    """Seconds and bytes count to the end of the first round that reached it; nothing is interpolated."""
    log = Log()
    for sent_s, size_bytes in ((0.0, 1), (5.0, 10), (10.0, 100), (15.0, 1000)):
        add_message(log, sent_s=sent_s, size_bytes=size_bytes)
    means = (0.5, None, 0.7, 0.9)
    log.rounds.extend(
        round_record(i + 1, 4.0 * i, 4.0 * (i + 1), accuracy_after_mean=mean) for i, mean in enumerate(means)
    )
    assert to_target(log, 0.7) == {"accuracy": 0.7, "round": 3, "simulated_s": 12.0, "bytes": 111}
    assert to_target(log, 0.95) == {"accuracy": 0.95, "round": None, "simulated_s": None, "bytes": None}
    assert to_target(log, None)["round"] is None


def test_bytes_per_client(add_message: Callable[..., int], round_record: Callable[..., dict[str, Any]]) -> None:
    """Sent and received count; lost messages are not received; the busiest client is named with its role."""
    log, roles = Log(), Roles(clients=3, relays=(7,))
    add_message(log, sender=0, receiver=1, size_bytes=100)
    add_message(log, sender=2, receiver=1, size_bytes=40, outcome="rejected", reason="corrupt")
    add_message(log, sender=2, receiver=1, size_bytes=7, outcome="lost", reason="random")
    add_message(log, sender=3, receiver=0, size_bytes=1, kind="control")
    add_message(log, sender=7, receiver=6, size_bytes=5)
    figures = bytes_headline(log, roles)
    assert figures["bytes_per_client"] == {
        **{"median": 101, "p95": 136, "max": 140},
        "max_is": {"node": 1, "role": "member of 0 cohorts"},
    }
    assert (figures["proxy_bytes"], figures["server_bytes"], figures["relay_bytes"]) == (1, 5, 5)
    log.rounds.extend(round_record(number, 0, 1, leader=1) for number in range(1, 8))
    most = bytes_headline(log, roles)["bytes_per_client"]["max_is"]
    assert most == {"node": 1, "role": "leader in rounds 1, 2, 3, 4, 5 and 2 more"}


def test_stalls(add_message: Callable[..., int]) -> None:
    """A wait ended by what was waited for is no stall; one that runs into its deadline is, from the last use."""
    log = Log()
    add_message(log, receiver=1, arrived_s=4.0)
    log.span(1, 1, "wait", 2.0, 4.0)
    add_message(log, receiver=2, arrived_s=3.0)
    add_message(log, receiver=2, arrived_s=9.0, used=False)
    log.span(2, 1, "wait", 2.0, 10.0)
    log.span(3, 1, "wait", 6.0, 10.0)
    log.span(3, 2, "wait", 20.0, 21.5)
    log.span(3, 2, "idle", 30.0, 40.0)
    found = stalls(log)
    assert list(zip(found["round"], found["node"], found["stalled_s"], strict=True)) == [
        *[(1, 2, pytest.approx(7.0)), (1, 3, pytest.approx(4.0)), (2, 3, pytest.approx(1.5))],
    ]
    assert stalled_s(log) == pytest.approx(8.5)
    assert stalled_s(Log()) == 0


def test_roles() -> None:
    """Nodes are numbered by part."""
    roles = Roles(clients=2, relays=(6,))
    assert [roles.role(node) for node in range(8)] == [
        *("client", "client", "proxy", "standby", "tracker", "server", "relay", "intruder"),
    ]
    assert Roles.from_json(roles.to_json()) == roles


@pytest.mark.parametrize(
    ("published", "rigorous", "sentence"),
    [
        (
            {"epsilon": 8.0, "formula": "Theorem 8"},
            {"local": 7.6e8, "delta": 1e-5},
            "published epsilon 8 (Theorem 8) is not a proven guarantee: the proven client-level epsilon against a "
            "single receiver is 7.6e8 at delta 1e-05, which is no protection.",
        ),
        (8.0, {"local": math.inf}, "published epsilon 8 (Theorem 8 of Weng 2025) is not a proven guarantee: "
         "nothing is proven against a single receiver."),
        (8.0, {"local": {"epsilon": 9.0}, "peer": {"worst": 5.3}}, "published epsilon 8 (Theorem 8 of Weng 2025) is "
         "covered: the proven client-level epsilon against a single receiver is 5.3."),
        ("not applicable", {"local": 9.0, "unit": "record"}, "the published formula does not apply; the proven "
         "record-level epsilon against a single receiver is 9."),
        (None, {"local": "inf"}, "no differential privacy is proven: a receiver may learn all that an update tells."),
        (None, None, "no differential privacy is proven: a receiver may learn all that an update tells."),
    ],
)  # fmt: skip
def test_verdict(published: Any, rigorous: Any, sentence: str) -> None:
    """One sentence that never passes a claim off as a proof."""
    assert verdict({"published": published, "rigorous": rigorous}) == sentence


def test_a_missing_claim_is_explained() -> None:
    """Where no paper's epsilon is stated the table says why; folders that do not say so are told apart."""
    reason = "no formula is printed"
    assert published_text({"published": reason}) == "none (no formula is printed)"
    assert epsilon_headline({"published": reason})["why_unpublished"] == reason
    assert published_text({"published": {"epsilon": 8.0}}) == "8"
    assert epsilon_headline({"published": {"epsilon": math.inf}})["why_unpublished"] == ""
    assert "does not say why" in published_text({})


def test_epsilon_headline() -> None:
    """The worst peer stands beside the model's view; delta is taken from where it is told."""
    privacy = {"published": {"epsilon": 8, "delta": 1e-5}, "rigorous": {"local": 20, "peer": {"worst": 12}, "model": 3}}
    figures = epsilon_headline(privacy)
    assert (figures["published"], figures["rigorous_worst_peer"], figures["rigorous_model"]) == (8, 12, 3)
    assert (figures["unit"], figures["delta"]) == ("client", 1e-5)
