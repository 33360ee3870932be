"""Privacy curves of single mechanisms and of sampling, and their composition."""
