"""Self-contained HTML reports of run folders."""
