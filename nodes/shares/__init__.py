"""The noise-share exchange: partners, the exchange itself, corrections, and what they leave."""
