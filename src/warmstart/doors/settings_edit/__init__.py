"""Edits to settings files that other programs own: everything that is not ours stays byte for byte."""
