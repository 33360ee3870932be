"""What watches a run and changes nothing: evaluation, the privacy account of each round, the losses of a schedule."""
