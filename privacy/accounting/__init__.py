"""What releases cost: Gaussian, Renyi, sampled and shuffled accounting, and the ledger."""
