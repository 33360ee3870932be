"""Commands that use the network model alone: flows, validate."""
