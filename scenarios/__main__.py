"""`python -m scenarios` is `peerveil`."""

from __future__ import annotations

import sys

from scenarios.cli import main

sys.exit(main())
