"""The doors: how people and agents come in. Thin: they only translate."""
