"""Bundles: notes and templates shared as signed text files, in a git repository, a folder or an archive."""
