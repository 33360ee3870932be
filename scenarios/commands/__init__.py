"""One module per command that needs no run."""
