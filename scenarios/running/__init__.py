"""Runs: start, checkpoints, resumption, observation, the live page."""
