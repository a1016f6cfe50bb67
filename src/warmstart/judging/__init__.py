"""Which calls worked: call and result to an Outcome, a session to a Score."""
