"""Tool calls: base tools, command lines, shapes, fixes and the words they are compared by."""
