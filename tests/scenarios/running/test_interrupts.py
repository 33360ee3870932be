"""Ctrl-C stops a simulation between two events; a second one stops at once."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator

import pytest

from p2p.clock import Clock, Rank
from scenarios.running.interrupts import stopping_between_events


@pytest.fixture(autouse=True)
def _heeds_interrupts() -> Iterator[None]:
    """A suite that was started in the background of a shell ignores Ctrl-C; these tests need Python's own handler."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_the_event_under_way_is_completed(capfd: pytest.CaptureFixture[str]) -> None:
    """The interrupt comes in the middle of an event; later ones do not happen."""
    clock, done = Clock(), list[str]()

    def interrupted() -> None:
        signal.raise_signal(signal.SIGINT)
        done.append("whole event")

    clock.call_at(1.0, Rank.START, 0, interrupted)
    clock.call_at(2.0, Rank.START, 0, lambda: done.append("next event"))
    with pytest.raises(KeyboardInterrupt), stopping_between_events(clock):
        clock.run()
    assert done == ["whole event"]
    assert clock.now == 1.0
    assert "once more stops at once" in capfd.readouterr().err


def test_an_interrupt_that_a_callback_would_swallow_is_kept() -> None:
    """Exceptions in finalisers are ignored by Python; the request to stop is not lost with them."""
    clock, done = Clock(), list[str]()

    class Finalised:
        def __del__(self) -> None:
            signal.raise_signal(signal.SIGINT)

    clock.call_at(1.0, Rank.START, 0, lambda: Finalised() and None)
    clock.call_at(2.0, Rank.START, 0, lambda: done.append("next event"))
    with pytest.raises(KeyboardInterrupt), stopping_between_events(clock):
        clock.run()
    assert done == []


def test_the_second_interrupt_raises_at_once() -> None:
    """For a step that takes too long."""
    clock, done = Clock(), list[str]()

    def interrupted() -> None:
        signal.raise_signal(signal.SIGINT)
        done.append("first")
        signal.raise_signal(signal.SIGINT)
        done.append("second")

    clock.call_at(1.0, Rank.START, 0, interrupted)
    with pytest.raises(KeyboardInterrupt), stopping_between_events(clock):
        clock.run()
    assert done == ["first"]


def test_the_usual_handler_is_back_afterwards_and_threads_are_left_alone() -> None:
    """Only the main thread can set handlers."""
    clock, usual = Clock(), signal.getsignal(signal.SIGINT)
    with stopping_between_events(clock):
        assert signal.getsignal(signal.SIGINT) is not usual
    assert signal.getsignal(signal.SIGINT) is usual
    failed: list[BaseException] = []

    def elsewhere() -> None:
        try:
            with stopping_between_events(clock):
                pass
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=elsewhere)
    thread.start()
    thread.join()
    assert failed == []
