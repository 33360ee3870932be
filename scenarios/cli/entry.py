"""The entry point of the command: Ctrl-C ends it with code 130, without a traceback, also while modules are imported.

An import that is interrupted may end in any error, since the modules under way are half made. Until a command begins,
there is nothing to tidy up, so the process just ends.
"""

from __future__ import annotations

# Nothing else here: these are loaded when Python starts, so the handler below is installed at once.
import os


def run() -> int:
    """Runs `peerveil` with the arguments of the process and returns its exit code."""
    try:
        end_at_once_on_interrupt()
    except KeyboardInterrupt:
        _end()
    from scenarios.cli.main import main

    try:
        return main()
    finally:
        # Python's own shutdown takes a while too, and has nothing left to lose.
        end_at_once_on_interrupt()


def end_at_once_on_interrupt() -> None:
    """Makes Ctrl-C end the process; `main` restores KeyboardInterrupt when a command begins."""
    import signal

    # A process started with interrupts ignored (`nohup`, a shell's background job) keeps ignoring them.
    if signal.getsignal(signal.SIGINT) not in (signal.SIG_IGN, None):
        signal.signal(signal.SIGINT, _end)


def raise_on_interrupt() -> None:
    """Makes Ctrl-C raise KeyboardInterrupt again, if this module had changed that."""
    import signal

    if signal.getsignal(signal.SIGINT) is _end:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _end(number: int = 0, frame: object = None) -> None:
    os.write(2, b"interrupted\n")
    os._exit(130)
