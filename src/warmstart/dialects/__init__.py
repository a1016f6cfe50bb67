"""The message formats of providers: render examples, compose seeds, estimate tokens, lint conversations."""
