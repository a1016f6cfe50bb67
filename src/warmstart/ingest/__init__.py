"""Transcripts in: read, judge, score, redact and store them."""
