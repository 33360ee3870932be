"""`python -m scenarios` runs `peerveil`."""

from __future__ import annotations

import sys

from scenarios.cli.main import main

sys.exit(main())
