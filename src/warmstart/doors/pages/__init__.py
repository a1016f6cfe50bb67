"""Pages that people open in a browser: insights, the lab's report, the approval page."""
