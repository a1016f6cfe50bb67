"""How providers want a conversation written: composing seeds, counting their tokens, linting."""
