"""Property tests: the same examples in every run of `make test`, new ones in every `make soak`.

Without deadlines: the first example pays for importing scipy, and the machine may be busy.
"""

from __future__ import annotations

import os
import signal

from hypothesis import settings

settings.register_profile("unhurried", deadline=None, derandomize="PEERVEIL_SOAK" not in os.environ)
settings.load_profile("unhurried")

# A shell's background job begins with interrupts ignored, and so would every process that a test interrupts.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
