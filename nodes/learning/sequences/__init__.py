"""Models of sequences of symbols."""
