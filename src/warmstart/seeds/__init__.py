"""The seed of a new session: choose examples, compose the seed, record the trial, repeat it unchanged."""
