"""For programs that ask: submit a request, wait for the decision, then act."""
