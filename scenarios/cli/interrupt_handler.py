"""What Ctrl-C does: it ends the process at once, or raises KeyboardInterrupt while a command runs."""

from __future__ import annotations

# Both are loaded when Python starts, so the handler is installed at once. The module `signal` itself would be imported
# with interrupts on, and one that comes inside the import system's own callbacks is printed and lost.
import _signal  # type: ignore[import-not-found]
import os


def end_at_once_on_interrupt() -> None:
    """Makes Ctrl-C end the process, until `raise_on_interrupt` is called."""
    # A process started with interrupts ignored (`nohup`, a shell's background job) keeps ignoring them.
    if _signal.getsignal(_signal.SIGINT) not in (_signal.SIG_IGN, None):
        _signal.signal(_signal.SIGINT, end_process)


def raise_on_interrupt() -> None:
    """Makes Ctrl-C raise KeyboardInterrupt again, if this module had changed that."""
    if _signal.getsignal(_signal.SIGINT) is end_process:
        _signal.signal(_signal.SIGINT, _signal.default_int_handler)


def end_process(number: int = 0, frame: object = None) -> None:
    """Ends the process with the code of an interrupt; a signal handler."""
    os.write(2, b"interrupted\n")
    os._exit(130)
