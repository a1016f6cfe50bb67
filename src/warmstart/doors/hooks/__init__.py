"""Hooks of Claude Code and Codex: what they run, and the work they leave for later."""
