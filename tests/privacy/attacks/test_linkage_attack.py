"""The attack `linkage` on a view: every method at its floor, near perfect without noise, near chance under much."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from p2p.log.records import KIND
from p2p.random_streams import stream
from privacy.attacks.linkage_attack import LinkageAttack
from privacy.attacks.linked_messages import IDENTITY
from privacy.attacks.observation_columns import ADDRESS_BYTES, COLUMNS, IN, UNKNOWN
from privacy.attacks.observations import Knowledge, Observations, Position, Records, Truth, View

CLIENTS, MEMBERS, ROUNDS, WIDTH = 40, 30, 6, 400
BY_CONTENT = ("cosine", "centred", "whitened", "centred, matched", "whitened, matched")
BY_BOTH = ("centred, matched, arrival times", "whitened, matched, arrival times", "chains, arrival times")


def nothing(node: int = 0) -> Records:
    raise AssertionError("linkage needs no records")


def rates(noise: float, jitter: float, *, known: bool = False) -> tuple[dict[str, float], float]:
    """The share of returns that each method links, and that by chance.

    Args:
        noise: deviation of noise on each coordinate of directions whose coordinates have deviation 1.
        jitter: deviation of log arrival times, beside a deviation of 1 between clients.
        known: whether the observer holds the proxy's table.
    """
    rng = stream(0, "linkage attack")
    own, speed = rng.standard_normal((CLIENTS, WIDTH)), rng.standard_normal(CLIENTS)
    members = np.stack([rng.permutation(CLIENTS)[:MEMBERS] for _ in range(ROUNDS)])
    vectors = {
        f"round-{number + 1}": (own[members[number]] + noise * rng.standard_normal((MEMBERS, WIDTH))).astype(np.float32)
        for number in range(ROUNDS)
    }
    # A control message begins each round; updates follow.
    clients = np.concatenate([[UNKNOWN, *row] for row in members.tolist()])
    count, updates = len(clients), clients != UNKNOWN
    numbers = np.repeat(np.arange(1, ROUNDS + 1), MEMBERS + 1)
    columns: dict[str, NDArray[np.generic]] = {name: np.full(count, UNKNOWN, dtype) for name, dtype in COLUMNS.items()}
    late_s = np.where(updates, np.exp(speed[clients] + jitter * rng.standard_normal(count)), 0.0)
    kinds = np.where(updates, KIND["update"], KIND["control"])
    columns |= {"round": numbers, "direction": np.full(count, IN), "kind": kinds, "at_s": 1000.0 * numbers + late_s}
    columns["vector"] = np.tile(np.arange(MEMBERS + 1) - 1, ROUNDS)
    if known:
        columns["identity"] = clients
    senders = rng.integers(0, 256, (count, ADDRESS_BYTES), dtype=np.uint8)
    public = {"clients": CLIENTS, "protocol_kind": "gossip"}
    view = View(
        position=Position(name="peer", kind="peer", nodes=(0,), vectors=True, snapshots=False, knows={}, public=public),
        rows=Observations(columns, senders),
        kept_rounds=range(1, ROUNDS + 1),
        model_rounds=(),
        knowledge=Knowledge(),
        _tensor=vectors.__getitem__,
    )
    attack = LinkageAttack()
    truth = Truth(origin=clients, trained_on=nothing, kept_out=nothing, test=nothing)
    figures = attack.score(attack.guess(view), truth).figures
    return figures["rates"], figures["chance"]


@pytest.mark.slow
def test_without_noise_every_method_on_contents_links_all() -> None:
    """By contents with useless times, most by times with useless contents; new addresses link nothing."""
    found, _ = rates(noise=0.0, jitter=3.0)
    assert found["address"] == 0.0
    assert {name: found[name] for name in (*BY_CONTENT, *BY_BOTH)} == dict.fromkeys((*BY_CONTENT, *BY_BOTH), 1.0)
    found, _ = rates(noise=1000.0, jitter=0.0)
    # A quarter of the messages belong to clients that were not there before, and take some of the nearest times.
    assert found["arrival times"] > 0.7
    assert rates(noise=1000.0, jitter=3.0, known=True)[0][IDENTITY] == 1.0


@pytest.mark.slow
def test_under_much_noise_no_method_links_more_than_chance() -> None:
    """112 or so returns at 1/30: four standard errors are 0.07."""
    found, chance = rates(noise=1000.0, jitter=30.0)
    assert chance == pytest.approx(1 / MEMBERS)
    assert all(rate < chance + 0.07 for rate in found.values()), found
