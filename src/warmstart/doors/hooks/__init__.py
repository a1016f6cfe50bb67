"""Hooks of Claude Code and Codex: the process they run, and the background work they start."""
