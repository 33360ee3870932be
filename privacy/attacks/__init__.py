"""Attacks by observers of a run; they read observations only, never the log or the seed."""
