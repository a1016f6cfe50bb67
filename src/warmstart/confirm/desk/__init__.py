"""Where requests are submitted, decided, expired and taken up."""
