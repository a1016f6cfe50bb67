"""Facts about a project: mine, rank, verify, brief, advise, publish."""
