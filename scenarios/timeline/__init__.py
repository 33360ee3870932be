"""A run's timeline in the format of trace viewers."""
