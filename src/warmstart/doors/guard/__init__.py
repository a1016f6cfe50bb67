"""The guard: tool calls that match a rule run only after a person approves them."""
