"""Data sets: the registry, published and user files, and how samples are split among clients."""
