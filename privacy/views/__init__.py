"""What an observer can learn, view by view."""
