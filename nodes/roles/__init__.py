"""The roles of nodes: client, server, intruder; registration, and the life cycle of their processes."""
