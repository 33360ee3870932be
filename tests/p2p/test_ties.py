"""Messages that go as waves and messages that go alone fare alike, also in the corners."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

from p2p.clock import Clock, Rank
from p2p.conditions import Conditions
from p2p.distributions import Constant
from p2p.links import Links, NetworkSettings, Retransmit
from p2p.log import Log
from p2p.network import Network, Parcel
from p2p.sharing import Fair

Story = list[tuple[float, str]]
Plot = Callable[[Clock, Network, Story], None]


def told(plot: Plot, up: list[float], down: list[float], whole: bool, patch: pytest.MonkeyPatch) -> tuple[Story, Any]:
    """What happens in a small network in which waves are carried whole, or every message goes by itself."""
    with patch.context() as alone:
        if not whole:
            alone.setattr(Network, "_passes_whole", property(lambda self: False))
        clock, log, story = Clock(), Log(), list[tuple[float, str]]()
        rate, latency = Constant(value=1.0), Constant(value=0.125)
        links = Links(NetworkSettings(uplink=rate, downlink=rate, latency=latency), 1, len(up), len(up))
        links.up[:], links.down[:] = up, down
        engine = Fair().engine(links.up, links.down)
        network = Network(clock, links, engine, log, 1, Retransmit(tries=1), Conditions())
        for node in range(len(up)):

            def receive(parcel: Parcel, node: int = node) -> str:
                story.append((clock.now, f"{node} gets {parcel.content}"))
                return ""

            network.attach(node, receive)
        plot(clock, network, story)
        clock.run()
        table = log.messages
        names = ("sender", "receiver", "sent_s", "left_s", "arrived_s", "outcome", "reason", "left_bytes")
        rows = sorted(zip(*(np.round(table[name], 9).tolist() for name in names), strict=True), key=str)
        return [(round(time_s, 9), what) for time_s, what in story], str(rows)


def send(network: Network, sender: int, receivers: list[int], size_bytes: int) -> None:
    """A message for each, which says from whom it is."""
    network.send(sender, receivers, "update", 1, size_bytes, 0, [f"from {sender}"] * len(receivers))


def quiet_after_all(clock: Clock, network: Network, story: Story) -> None:
    """Three messages arrive at one instant: the round is quiet after the last of them."""
    send(network, 0, [1, 2, 3], 100)
    network.when_quiet(1, lambda: story.append((clock.now, "quiet")))


def by_sender(clock: Clock, network: Network, story: Story) -> None:
    """Two messages come to one node at one instant; the one from the higher node was sent first."""
    send(network, 2, [3], 1000)
    clock.call_at(0.5, Rank.START, 0, partial(send, network, 1, [3], 500))


def listened_to(clock: Clock, network: Network, story: Story) -> None:
    """Somebody begins to listen while a wave is leaving, and then another message joins it."""
    send(network, 0, [1], 1000)
    clock.call_at(0.25, Rank.FAULT, 0, lambda: network.listen(lambda parcel: None))
    clock.call_at(0.5, Rank.START, 0, partial(send, network, 0, [2], 1000))


def two_to_one(clock: Clock, network: Network, story: Story) -> None:
    """A wave names one receiver twice: both messages share its downlink."""
    send(network, 0, [1, 1], 700)


def crash_at_arrival(clock: Clock, network: Network, story: Story) -> None:
    """At the instant at which a message would arrive, another meets its wave, and then its receiver crashes."""
    send(network, 4, [1, 2], 500)
    clock.call_at(0.625, Rank.FAULT, 0, partial(send, network, 3, [2], 300))
    clock.call_at(0.625, Rank.FAULT, 1, lambda: network.take_down(1))
    network.when_quiet(1, lambda: story.append((clock.now, "quiet")))


def crowd_on_one_uplink(clock: Clock, network: Network, story: Story) -> None:
    """Many single messages of one node, all at once."""
    for _ in range(50):
        send(network, 0, [1], 10)


def one_downlink_short(clock: Clock, network: Network, story: Story) -> None:
    """Waves of several nodes meet where they are too much, others beside them are not touched."""
    for place, sender in enumerate((0, 2, 3, 0, 2)):
        clock.call_at(place / 8, Rank.START, sender, partial(send, network, sender, [1, (sender + 1) % 4], 600))


PLOTS = [quiet_after_all, by_sender, listened_to, two_to_one, crash_at_arrival, crowd_on_one_uplink, one_downlink_short]


@pytest.mark.parametrize("plot", PLOTS)
@pytest.mark.parametrize("down", [np.inf, 1000.0, 700.0])
def test_a_story_is_the_same_for_waves_and_for_single_messages(
    plot: Plot, down: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Node 4 has an unlimited uplink."""
    up = [1000.0, 1000.0, 1000.0, 1000.0, np.inf]
    as_waves, singly = (told(plot, up, [down] * 5, whole, monkeypatch) for whole in (True, False))
    assert as_waves == singly


def test_many_deadlines_that_were_met_move_no_other() -> None:
    """Of many deadlines all but the last are called off: it comes at its time, and nothing before it."""
    clock, passed = Clock(), list[float]()
    numbers = [clock.call_by(60.0, node, lambda _: passed.append(clock.now)) for node in range(10_001)]
    clock.call_by(120.0, 1, lambda _: passed.append(clock.now))
    for number in numbers:
        clock.call_at(5.0, Rank.START, 0, partial(clock.call_off, number))
    clock.run()
    assert passed == [120.0]
