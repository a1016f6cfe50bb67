"""Where the lab's models really run their tool calls: a temporary folder behind a fence."""
