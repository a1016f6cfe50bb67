"""Chores for the lab's models: requests, the files they start from, checks and right answers."""
