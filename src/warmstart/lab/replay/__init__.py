"""Recorded sessions asked again, cold and warm, and compared with the record."""
