"""The sections of a run's page."""
