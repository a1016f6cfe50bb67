"""The seed of a new session: chosen once, composed, recorded, repeated."""
