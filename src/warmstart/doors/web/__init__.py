"""The confirmation daemon over HTTP: an API for programs, and the page for people on a port of its own."""

from warmstart.doors.web.server import ConfirmationServer

__all__ = ["ConfirmationServer"]
