"""The data that pages embed, read from a run folder."""
