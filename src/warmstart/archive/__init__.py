"""Transcripts kept: packed copies that outlive the agents' own files, restored byte for byte."""
