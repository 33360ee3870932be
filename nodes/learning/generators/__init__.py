"""Generators of records: one per client, trained once before the run, all clients in stacks."""
