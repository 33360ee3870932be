"""The noise-share exchange over the network: partners, the exchange itself, corrections, and its log."""
