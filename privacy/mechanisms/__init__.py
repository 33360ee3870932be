"""Clipping and noise."""
