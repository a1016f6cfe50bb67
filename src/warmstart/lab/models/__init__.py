"""Models the lab can ask: local weights or an endpoint, with native or plain-text tool calls."""
