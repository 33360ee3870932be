"""Training of many models at once on stacked matrices, one kernel per kind of model."""
