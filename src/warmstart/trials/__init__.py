"""What seeds did: arms compared, templates kept, promoted or retired by their effect."""
