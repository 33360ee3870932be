"""Attacks: what an observer makes of what it saw. They read observations only, never the log, never the seed."""
