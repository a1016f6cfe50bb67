"""What a call is: base tools, shell lines, shapes, fixes, words."""
