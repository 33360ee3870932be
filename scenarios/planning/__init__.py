"""Estimates of a run's cost and privacy guarantees before it starts."""
