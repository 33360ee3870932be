"""What Ctrl-C does: it ends the process at once, or raises KeyboardInterrupt while a command runs."""

from __future__ import annotations

# Nothing else here: it is loaded when Python starts, so the handler is installed at once.
import os


def end_at_once_on_interrupt() -> None:
    """Makes Ctrl-C end the process, until `raise_on_interrupt` is called."""
    import signal

    # A process started with interrupts ignored (`nohup`, a shell's background job) keeps ignoring them.
    if signal.getsignal(signal.SIGINT) not in (signal.SIG_IGN, None):
        signal.signal(signal.SIGINT, end_process)


def raise_on_interrupt() -> None:
    """Makes Ctrl-C raise KeyboardInterrupt again, if this module had changed that."""
    import signal

    if signal.getsignal(signal.SIGINT) is end_process:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def end_process(number: int = 0, frame: object = None) -> None:
    """Ends the process with the code of an interrupt; a signal handler."""
    os.write(2, b"interrupted\n")
    os._exit(130)
