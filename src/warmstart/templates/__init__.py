"""Templates: mine, decide, store, search, import and export them."""
