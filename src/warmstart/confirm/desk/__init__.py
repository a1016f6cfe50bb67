"""Submit, decide, expire and execute requests."""
