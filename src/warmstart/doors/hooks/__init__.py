"""Hooks of coding agents: the process they run, and the background work they start."""
