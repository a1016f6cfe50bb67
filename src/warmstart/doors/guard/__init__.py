"""The guard: tool calls that a rule names run only after a person approves."""
