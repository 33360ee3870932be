"""What an aggregator does with the updates of a round: weights, noise, momentum and step size."""
