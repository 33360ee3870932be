"""Learning: models, training, evaluation, averaging, clipping and noise, computed when needed."""
