"""Faults and availability: their kinds, their targets, and the injector that applies them."""
