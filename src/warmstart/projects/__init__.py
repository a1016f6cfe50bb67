"""Which project a session belongs to: the repository, wherever it is checked out; paths relative to its root."""
