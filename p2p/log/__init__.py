"""The log of a run: tables in columns, the words and codes of their rows."""
