"""Worker processes of a sweep: forked from one that has imported torch, without the program that started the sweep."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import parent_process
from multiprocessing.context import ForkServerContext, ForkServerProcess
from typing import Any


class WorkerProcess(ForkServerProcess):
    """A process that does not import the main module.

    Python imports it for functions that may be defined there. Cells are run by a module of this package, and a program
    that calls `sweep` without `if __name__ == "__main__":` would start a sweep in every worker.
    """

    @staticmethod
    def _Popen(process_obj: Any) -> Any:  # noqa: N802 - the name of multiprocessing
        with _main_hidden():
            return ForkServerProcess._Popen(process_obj)


class WorkerContext(ForkServerContext):
    """What a pool of workers is started by."""

    Process = WorkerProcess


def begin_worker() -> None:
    """Leaves Ctrl-C to the sweeping process, and ends with it also if that is killed."""
    # The terminal sends Ctrl-C to all processes of the group; one of them is to decide.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = parent_process()
    if parent is not None:
        threading.Thread(target=_end_with, args=(parent,), daemon=True).start()


def _end_with(parent: Any) -> None:
    parent.join()
    # Not sys.exit: the main thread is in the middle of a cell, whose checkpoint is on disk.
    os._exit(1)


@contextmanager
def _main_hidden() -> Iterator[None]:
    """Takes away what a new process would find the main module by."""
    main = sys.modules["__main__"]
    kept = {name: getattr(main, name) for name in ("__file__", "__spec__") if hasattr(main, name)}
    for name in kept:
        setattr(main, name, None)
    try:
        yield
    finally:
        for name, value in kept.items():
            setattr(main, name, value)
