"""Waves that share nothing but their sender's uplink: where no downlink is short, fair sharing is that simple.

An uplink gives all messages on it the same rate. As long as the receivers' links could take the highest rates that
these messages may reach, nothing else holds them back, and the ends of a wave follow from its own uplink alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from p2p.parcels import Wave
from p2p.sharing import TOGETHER, Rates

_ROUNDING = 1 + 1e-12
_FEW = 1000
_MOST_WAVES = 32
"""On one uplink: each that joins is shared with all that are leaving."""


class Going(NamedTuple):
    """A wave that is leaving: what is left of each message at `since_s`, and their rate from then on."""

    wave: Wave
    left: float
    since_s: float
    rate: float


class Uplinks:
    """Keeps, for each uplink, the waves that are leaving; and for each downlink the most that may come over it.

    Guarantees:
        For every downlink, the highest rates that messages here may reach add up to no more than it can take.
    """

    def __init__(self, up: list[float], down: Rates) -> None:
        self._up, self._down, self._down_of = up, down.copy(), down.tolist()
        # A wave that has its uplink alone stands for itself.
        self._going: dict[int, Wave | list[Going]] = {}
        self._load, self._until_s = np.zeros(len(down)), np.full(len(down), -np.inf)
        # Of each downlink: the waves that may be coming over it.
        self._coming: dict[int, list[Wave]] = {}
        self._many = self._many_falling = _FEW
        self._falling: list[Wave] = []
        self.last_s = -np.inf

    def carry(self, now_s: float, wave: Wave) -> bool:
        """Takes a wave in and says when it will have left; False if another link may hold a message back."""
        if len(wave.receivers) > 1 and len(set(wave.receivers)) < len(wave.receivers):
            return False  # two share a downlink
        up = self._up[wave.sender]
        if up == np.inf:
            return self._carry_down(now_s, wave)
        sender, receivers = wave.sender, wave.receivers
        if up <= 0 or wave.size_bytes <= 0:
            return False
        rate = up / len(receivers)
        left_s = now_s + wave.size_bytes / rate
        before = self._going.get(sender)
        alone = before is None or (isinstance(before, Wave) and before.left_s <= now_s)
        going = [] if alone else self._still_going(now_s, sender)
        free = len(receivers) == 1 and (wave.cut or self._down_of[receivers[0]] == np.inf)
        if len(going) >= _MOST_WAVES or not (free or self._take_room(now_s, wave, rate, left_s)):
            return False
        if alone:
            self._going[sender], wave.left_s = wave, left_s
            if len(self._going) > self._many:
                self._forget_left(now_s)
        else:
            going = [*going, Going(wave, wave.size_bytes, now_s, rate)]
            self._share(now_s, up, going)
            self._going[sender] = going
        if wave.left_s > self.last_s:
            self.last_s = wave.left_s
        return True

    def holds(self, now_s: float, sender: int) -> bool:
        """Whether a wave is leaving a node."""
        return bool(self._going) and bool(self._still_going(now_s, sender))

    def make_room(self, now_s: float, receiver: int, rate: float) -> bool:
        """Says that something else will come over a downlink; False if it is too much with what comes already."""
        if self._until_s[receiver] <= now_s:
            return True
        self._load[receiver] += rate
        return bool(self._load[receiver] <= self._down[receiver] * _ROUNDING)

    def let_go(self, now_s: float, senders: list[int]) -> list[Going]:
        """Gives up the waves that are leaving some nodes, as they stand."""
        return [one for sender in senders for one in self._give_up(now_s, sender)]

    def senders_to(self, now_s: float, receivers: set[int]) -> list[int]:
        """Who is sending to any of these nodes."""
        coming = [wave for node in sorted(receivers) for wave in self._coming.get(node, ()) if wave.left_s > now_s]
        return [wave.sender for wave in coming if self._carries(wave)]

    def _carries(self, wave: Wave) -> bool:
        """Whether a wave has not been given up."""
        going = self._going.get(wave.sender, ())
        return going is wave if isinstance(going, Wave) else any(one.wave is wave for one in going)

    def falling_on(self, now_s: float, receivers: set[int]) -> list[Wave]:
        """Gives up the waves that come over some downlinks alone."""
        falling = [one for one in self._falling if one.left_s > now_s]
        found = [not receivers.isdisjoint(one.receivers) for one in falling]
        self._falling = [one for one, gone in zip(falling, found, strict=True) if not gone]
        return [one for one, gone in zip(falling, found, strict=True) if gone]

    def nothing_comes_to(self, receivers: set[int]) -> None:
        """No wave comes over these downlinks any more."""
        self._until_s[list(receivers)] = -np.inf

    def senders(self, now_s: float) -> list[int]:
        """Who is sending."""
        return [sender for sender in self._going if self._still_going(now_s, sender)]

    def clear(self) -> None:
        """Nothing is carried here any more."""
        self._going, self._coming, self._falling, self.last_s = {}, {}, [], -np.inf
        self._until_s.fill(-np.inf)

    def set_capacity(self, node: int, down: float) -> None:
        """Gives a node another downlink, over which no wave comes now."""
        self._down[node] = self._down_of[node] = down

    def _forget_left(self, now_s: float) -> None:
        """Lets go of waves that have left."""
        self._going = {sender: self._going[sender] for sender in self.senders(now_s)}
        still = {node: [one for one in waves if one.left_s > now_s] for node, waves in self._coming.items()}
        self._coming = {node: waves for node, waves in still.items() if waves}
        self._many = max(_FEW, 2 * len(self._going))

    def _give_up(self, now_s: float, sender: int) -> list[Going]:
        going = self._still_going(now_s, sender)
        self._going.pop(sender, None)
        return going

    def _still_going(self, now_s: float, sender: int) -> list[Going]:
        """The waves that have not left, each with its line of bytes as of the last change of rates."""
        going = self._going.get(sender)
        if going is None:
            return []
        if isinstance(going, Wave):
            rate = self._up[sender] / len(going.receivers)
            return [Going(going, going.size_bytes, going.sent_s, rate)] if going.left_s > now_s else []
        up = self._up[sender]
        while going:
            first_s = min(one.since_s + one.left / one.rate for one in going)
            if first_s > now_s:
                break
            over_s = first_s + TOGETHER * abs(first_s)
            going = _turn([one for one in going if one.since_s + one.left / one.rate > over_s], first_s, up)
        return going

    def _share(self, now_s: float, up: float, going: list[Going]) -> None:
        """Shares an uplink anew, and foretells all ends."""
        going[:] = _turn(going, now_s, up)
        rest = going
        while rest:
            first_s = min(one.since_s + one.left / one.rate for one in rest)
            over_s = first_s + TOGETHER * abs(first_s)
            for one in rest:
                if one.since_s + one.left / one.rate <= over_s:
                    self._put_off(one.wave, first_s)
            rest = _turn([one for one in rest if one.since_s + one.left / one.rate > over_s], first_s, up)

    def _put_off(self, wave: Wave, left_s: float) -> None:
        wave.put_off(left_s)
        receivers = np.array(_reached(wave), dtype=np.int64)
        self._until_s[receivers] = np.maximum(self._until_s[receivers], left_s)
        self.last_s = max(self.last_s, left_s)

    def _take_room(self, now_s: float, wave: Wave, rate: float, left_s: float) -> bool:
        """Whether a wave's receivers can take so much more, and then counts it."""
        receivers = _reached(wave)
        where = np.array(receivers, dtype=np.int64)
        until_s = self._until_s[where]
        load = np.where(until_s > now_s, self._load[where], 0.0) + rate
        if (load > self._down[where] * _ROUNDING).any():
            return False
        self._load[where], self._until_s[where] = load, np.maximum(until_s, left_s)
        coming = self._coming
        for node, others in zip(receivers, (until_s > now_s).tolist(), strict=True):
            if others and node in coming:
                coming[node].append(wave)
            elif self._down_of[node] < np.inf:
                coming[node] = [wave]
        return True

    def _carry_down(self, now_s: float, wave: Wave) -> bool:
        """A wave that leaves at once: each message has its receiver's downlink to itself, or all go another way."""
        where = np.array(_reached(wave), dtype=np.int64)
        down = self._down[where]
        if (((self._until_s[where] > now_s) & (down < np.inf)) | (down <= 0)).any() or wave.size_bytes <= 0:
            return False
        lefts = now_s + wave.size_bytes / down
        self._load[where], self._until_s[where] = down, lefts
        wave.lefts = lefts.tolist()
        for place in sorted(wave.cut):
            wave.lefts.insert(place, now_s)
        self._falling.append(wave)
        if len(self._falling) > self._many_falling:
            self._falling = [one for one in self._falling if one.left_s > now_s or one is wave]
            self._many_falling = max(_FEW, 2 * len(self._falling))
        wave.left_s = max(wave.lefts)
        self.last_s = max(self.last_s, wave.left_s)
        return True


def _reached(wave: Wave) -> Sequence[int]:
    """Over whose downlinks its messages come."""
    if not wave.cut:
        return wave.receivers
    return [node for place, node in enumerate(wave.receivers) if place not in wave.cut]


def _turn(going: list[Going], time_s: float, up: float) -> list[Going]:
    """The same waves with the rates they have from now on."""
    if not going:
        return going
    rate = up / sum(len(one.wave.receivers) for one in going)
    turned = []
    for one in going:
        left = max(one.left - one.rate * (time_s - one.since_s), 0.0)
        turned.append(Going(one.wave, left, time_s, rate))
    return turned
