"""Measured effect back: trials, experiments, reports, and templates promoted or retired by their effect."""
