"""The processes: trusted proxy, client, server, the learning they do, and the protocols they speak."""
