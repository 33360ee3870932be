"""What a run's privacy is: contents of rounds for the accountant, what is unaccounted for, figures and verdicts."""
