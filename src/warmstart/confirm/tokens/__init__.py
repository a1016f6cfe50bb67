"""Access: tokens, logins, whitelist entries, and the proof that the daemon is ours."""
