"""Tools that agents call by themselves, whichever door offers them."""
