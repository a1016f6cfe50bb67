"""A run of the lab: the agent loop, the arms, the report."""
