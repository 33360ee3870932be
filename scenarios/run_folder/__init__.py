"""The files a run leaves behind: writing, reading, summary, tables, digests."""
