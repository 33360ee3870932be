"""Sweeps: many runs of scenarios over a grid of settings and seeds, kept in one store, run on one machine or many."""
