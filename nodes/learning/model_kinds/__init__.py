"""The kinds of models: dense and convolutional ones, those of papers, and torch modules of a user."""
