"""Formulas of single papers, as published, for comparison."""
