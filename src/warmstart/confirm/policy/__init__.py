"""Policies: which actions are allowed, which are denied, and who decides the rest."""
