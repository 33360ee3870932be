"""Pseudonyms that change every round, and their settings."""
