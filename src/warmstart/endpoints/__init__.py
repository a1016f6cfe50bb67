"""Other programs' HTTP servers: one client, chat completions, context windows."""
