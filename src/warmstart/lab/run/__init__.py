"""A lab run: the agent loop, the arms, the report."""
