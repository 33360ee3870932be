"""Hands finished runs to trackers and other programs: after the fact, as often as wanted, with the same result."""
