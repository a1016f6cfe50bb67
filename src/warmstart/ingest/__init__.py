"""Transcripts in: read, judged, scored, redacted and remembered."""
