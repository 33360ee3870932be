"""Scenario files in, run folders out: schema, loader, composition, run, metrics, command line."""
