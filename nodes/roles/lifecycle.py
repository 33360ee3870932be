"""Lifecycle of node processes: crashes, churn, recovery and failover of the proxy."""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import simpy

from nodes.proxy.proxy import Proxy
from nodes.world import World
from p2p.clock import Rank


class Restartable(Protocol):
    """A restartable node process."""

    def run(self) -> Generator[simpy.Event, Any, None]:
        """The process from start to end or crash."""

    def lose_state(self) -> None:
        """Discards the state that does not survive a crash."""

    def log_open_spans(self) -> None:
        """Logs what is over of an activity that ends with the process."""


@dataclass(slots=True)
class ProcessSupervisor:
    """Starts, stops and restarts processes. A node is down while at least one cause keeps it down.

    Attributes:
        takeover_s: delay between the proxy's crash and the standby's takeover; None without a standby
        permanent_crashes: nodes with a permanent crash; after any other, a proxy without a standby returns by itself
    """

    world: World
    restartables: Mapping[int, Restartable]
    proxy: Proxy
    takeover_s: float | None = None
    permanent_crashes: set[int] = field(default_factory=set)
    _causes: Counter[int] = field(default_factory=Counter)
    _down_since: dict[int, float] = field(default_factory=dict)
    _processes: dict[int, simpy.Process] = field(default_factory=dict)
    _ended: simpy.Event | None = None

    @property
    def ended(self) -> simpy.Event:
        """Triggers when the run is over."""
        if self._ended is None:
            self._ended = simpy.Event(self.world.clock)
        return self._ended

    def start_all(self) -> None:
        """Starts the processes of all nodes that are up, after the faults at time 0."""
        clock = self.world.clock
        clock.call_at(clock.now, Rank.START, 0, self._start_those_up)

    def _start_those_up(self) -> None:
        for node in sorted((*self.restartables, self.world.proxy)):
            # A fault of this instant may have restarted it already.
            if self._causes[node] or node in self._processes:
                continue
            self._start_proxy() if node == self.world.proxy else self._start(node)

    def crash(self, node: int) -> None:
        """Takes a node down for one more cause."""
        # Counted, since churn and faults may overlap: the node returns when the last cause has ended.
        self._causes[node] += 1
        if self._causes[node] > 1:
            if node == self.proxy.node:
                self._on_proxy_lost()  # the first crash may have been temporary while this one is permanent
            return
        self._down_since[node] = self.world.clock.now
        self.proxy.note_crash(node)
        self.world.network.take_down(node)
        process = self._processes.pop(node, None)
        if process is not None and process.is_alive:
            _close(process)
        # The process is closed first: it must not go on with the fresh inbox of the next incarnation.
        if node in self.restartables:
            self.restartables[node].lose_state()
        if node == self.proxy.node:
            self._on_proxy_lost()

    def recover(self, node: int) -> None:
        """Removes one cause; without any left the node restarts, with its model and ledger only."""
        self._causes[node] -= 1
        if self._causes[node] > 0:
            return
        now_s = self.world.clock.now
        self.world.log.span(node, self._round_now(), "down", self._down_since.pop(node, now_s), now_s)
        self.world.network.bring_up(node)
        if node in self.restartables:
            self._start(node)
        elif node == self.proxy.node:
            self._start_proxy()

    def log_open_spans(self) -> None:
        """Logs the open down intervals and activities at the end of the run."""
        for restartable in self.restartables.values():
            restartable.log_open_spans()
        for node, since_s in self._down_since.items():
            self.world.log.span(node, self._round_now(), "down", since_s, self.world.clock.now)
        self._down_since.clear()

    def is_down(self, node: int) -> bool:
        """Returns whether a node is down now."""
        return self._causes[node] > 0

    def _start(self, node: int) -> None:
        self._processes[node] = self.world.clock.start(self.restartables[node].run())

    def _start_proxy(self) -> None:
        self._processes[self.proxy.node] = self.world.clock.start(self._run_proxy())

    def _run_proxy(self) -> Generator[simpy.Event, Any, None]:
        yield from self.proxy.run()
        self._end("")

    def _on_proxy_lost(self) -> None:
        clock = self.world.clock
        if self.takeover_s is not None and self.proxy.node == self.world.proxy and not self.is_down(self.world.standby):
            clock.call_at(clock.now + self.takeover_s, Rank.FAULT, self.world.standby, self._take_over)
        else:
            clock.call_at(clock.now, Rank.FAULT, self.proxy.node, self._give_up_unless_it_returns)

    def _take_over(self) -> None:
        """Continues on the standby from the replicated state; messages for the proxy are redirected to it."""
        if self.proxy.node != self.world.proxy or not self.is_down(self.world.proxy):
            return
        if self.is_down(self.world.standby):
            self._end(f"the proxy and its standby were lost by {self.world.clock.now:.6g} s")
            return
        self.world.network.redirect(self.world.proxy, self.world.standby)
        self.proxy.move_to(self.world.standby)
        self._start_proxy()

    def _give_up_unless_it_returns(self) -> None:
        if self.proxy.node in self.permanent_crashes:
            self._end(f"the proxy was lost at {self.world.clock.now:.6g} s and there is no standby")

    def _end(self, why: str) -> None:
        if why:
            self.proxy.outcome.stopped_because = why
        if not self.ended.triggered:
            self.ended.succeed()

    def _round_now(self) -> int:
        return self.proxy.outcome.rounds_completed + 1


def _close(process: simpy.Process) -> None:
    """Stops a process at its current event."""
    # Not `interrupt`: a crashed process must run no further code. SimPy is not notified, so the process stays
    # `is_alive`, and its event may still trigger for other waiters.
    waits_for = process.target
    if waits_for is not None and waits_for.callbacks is not None and process._resume in waits_for.callbacks:
        waits_for.callbacks.remove(process._resume)
    process._generator.close()
