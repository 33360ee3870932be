"""Noise shares that cancel: their settings, seeds, variances, uploads, and what is seen of them."""
