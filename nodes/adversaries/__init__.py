"""Adversaries: who watches a run, what each position sees, what it knows, and the attacks that need torch."""
