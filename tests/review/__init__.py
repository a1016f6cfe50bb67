"""The background review."""
