"""Mask the secrets of a request without hiding anything that could act."""
