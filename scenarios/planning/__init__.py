"""What a run will cost and prove, worked out before it starts."""
