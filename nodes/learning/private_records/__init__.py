"""DP-SGD within clients: batches drawn by coins, and the training of stacks with noise."""
