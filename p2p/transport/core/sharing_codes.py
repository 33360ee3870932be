"""Codes of the sharing models, in a module of their own: scenarios need them without loading the core."""

IDEAL, FIFO, FAIR = range(3)
