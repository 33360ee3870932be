"""Ctrl-C while a simulation runs: it stops between two events, so that no table is left with half a row."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from p2p.clock import Clock

_NOTICE = b"\ninterrupted: stopping after this step; once more stops at once\n"


@contextmanager
def stopping_between_events(clock: Clock) -> Iterator[None]:
    """Lets the first Ctrl-C stop the clock before its next event, and a second one raise where the program stands."""

    # An exception raised by the handler could come in the middle of a row, or be swallowed by a callback.
    def stop(number: int, frame: object) -> None:
        if clock.stopping:
            raise KeyboardInterrupt
        clock.stopping = True
        os.write(2, _NOTICE)

    usual = signal.getsignal(signal.SIGINT)
    # Threads have no signals, and a process that ignores interrupts goes on doing so.
    if threading.current_thread() is not threading.main_thread() or usual is not signal.default_int_handler:
        yield
        return
    signal.signal(signal.SIGINT, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, usual)
