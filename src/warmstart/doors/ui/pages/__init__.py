"""The pages: each loads values by the facade's functions, shows them as HTML and describes them as JSON."""
