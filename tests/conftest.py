"""Property tests without deadlines: the first example pays for importing scipy, and the machine may be busy."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("unhurried", deadline=None)
settings.load_profile("unhurried")
