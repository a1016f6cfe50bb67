"""`warmstart ui`: one local page for what Warmstart knows and asks; rendered here, with every page's JSON beside it."""
