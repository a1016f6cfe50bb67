"""Notify people that a request waits: messages, channels, retries."""
