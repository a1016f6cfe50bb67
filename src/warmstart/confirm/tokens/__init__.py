"""Who may do what: tokens, logins, allowances, and proof of the daemon."""
