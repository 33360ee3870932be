"""Attacks on a run's observations: views, knowledge, scoring, and results in the run folder."""
