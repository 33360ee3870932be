"""Verdicts on results that are formulas, bounds or arithmetic with printed values; a module per part of a paper."""
