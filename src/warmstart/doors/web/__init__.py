"""The confirmation daemon over HTTP: an API for programs, another port for people with a browser."""

from warmstart.doors.web.server import ConfirmationServer

__all__ = ["ConfirmationServer"]
