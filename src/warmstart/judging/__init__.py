"""Judging: a call and its result become an Outcome, a session becomes a Score."""
