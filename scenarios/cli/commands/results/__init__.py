"""Commands that read run folders: cost, export, report, runs, table, timeline, topology."""
