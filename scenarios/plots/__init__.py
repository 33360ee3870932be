"""Figures for papers as svg, png and pdf."""
