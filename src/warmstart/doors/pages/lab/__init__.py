"""A lab run as one self-contained HTML page."""

from warmstart.doors.pages.lab.page import MARK, render_page

__all__ = ["MARK", "render_page"]
