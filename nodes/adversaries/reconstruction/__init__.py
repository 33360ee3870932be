"""Reconstruction of a client's images from a gradient that leaves it."""
