"""Audits: lower bounds on epsilon from guesses about canaries."""
