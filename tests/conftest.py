"""Property tests: the same examples in every run of `make test`, new ones in every `make soak`.

Without deadlines: the first example pays for importing scipy, and the machine may be busy.
"""

from __future__ import annotations

import os

from hypothesis import settings

settings.register_profile("unhurried", deadline=None, derandomize="PEERVEIL_SOAK" not in os.environ)
settings.load_profile("unhurried")
