"""The figures that a result begins with, as keys and as rows of tables."""
