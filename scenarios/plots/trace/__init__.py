"""A run's timeline in the form that trace viewers open."""
