"""Pure graph builders: the graphs of a round, named topologies, mixing weights."""
