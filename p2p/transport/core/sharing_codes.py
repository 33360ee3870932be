"""The numbers of the sharing models, by themselves: scenarios name models without loading the core."""

IDEAL, FIFO, FAIR = range(3)
