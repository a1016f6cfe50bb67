"""What may happen without asking, what never may, and who decides the rest."""
