"""Read-only pages on the loopback: the index of a folder of runs, and the server that all pages share."""
