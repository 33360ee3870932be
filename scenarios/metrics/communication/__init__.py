"""What a run's communication costs: bytes, seconds, energy, and who was waited for."""
