"""Audits of a scenario: runs with canaries, scores per view, lower bounds on epsilon beside the proved ones."""
