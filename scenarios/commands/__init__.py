"""Commands that need no run, one module each."""
