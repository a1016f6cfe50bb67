"""The client: submit a request, wait for the decision, then act."""
