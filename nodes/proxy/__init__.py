"""The trusted proxy: invitations, cohort, leader election, assignments, and the state of its round."""
