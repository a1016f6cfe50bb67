"""Templates: mined from sessions, decided on, kept, searched, exported and imported."""
