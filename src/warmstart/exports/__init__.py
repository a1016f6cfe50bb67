"""Sessions out: one's own sessions, redacted, in formats that other programs read."""
