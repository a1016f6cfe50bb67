"""Tokens and costs: read from transcripts, reported live, priced, and added up."""
