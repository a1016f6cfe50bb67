"""What of a request is stored and shown: secrets masked, nothing dangerous hidden."""
