"""A run of the lab as one HTML page that needs nothing else."""

from warmstart.doors.pages.lab.page import MARK, render_page

__all__ = ["MARK", "render_page"]
