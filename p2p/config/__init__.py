"""What settings are made of: units, distributions, shares of a population, choices, and errors for users."""
