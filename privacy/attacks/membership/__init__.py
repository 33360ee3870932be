"""Statistics of membership inference: rates, intervals, and what they say about a stated epsilon."""
