"""Run folders as one page to look at."""
