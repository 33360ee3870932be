"""`python -m scenarios` runs `peerveil`."""

from __future__ import annotations

import sys

try:
    from scenarios.cli.entry import run
except KeyboardInterrupt:
    sys.exit(130)

sys.exit(run())
