"""The entry point of the command: Ctrl-C ends it with code 130, without a traceback, also while modules are imported.

An import that is interrupted may end in any error, since the modules under way are half made. Until a command begins,
there is nothing to tidy up, so the process just ends.
"""

from __future__ import annotations

import gc

from scenarios.cli.interrupt_handler import end_at_once_on_interrupt, end_process


def run() -> int:
    """Runs `peerveil` with the arguments of the process and returns its exit code."""
    try:
        end_at_once_on_interrupt()
    except KeyboardInterrupt:
        end_process()
    # Imported once the handler is installed, since this loads many modules.
    from scenarios.cli.main import main

    try:
        return main()
    finally:
        # Python's own shutdown takes a while too, and has nothing left to lose. Its last collection would visit every
        # object of a large run, to free what ends with the process anyway.
        gc.freeze()
        end_at_once_on_interrupt()
