"""A person with a browser who reads the pages."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from warmstart.doors.ui.server import UiServer


class Reader:
    """A logged-in browser, with everything it complained of, asked for or was asked by a page."""

    def __init__(self, browser: Any, server: UiServer, **options: Any) -> None:
        self.server = server
        self.context = browser.new_context(viewport={"width": 1600, "height": 900}, **options)
        self.complaints: list[str] = []
        self.asked: list[str] = []
        self.context.on("request", lambda request: self.asked.append(request.url))
        self.page = self.context.new_page()
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("dialog", lambda dialog: self._refuse(dialog))
        self.page.goto(server.make_link())

    def _refuse(self, dialog: Any) -> None:
        self.complaints.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def open(self, path: str) -> Any:
        """Open a page, and wait until its figures are there."""
        self.page.goto(self.server.url + path)
        self.page.wait_for_selector("main:not(:has([data-pending]))", timeout=60_000)
        return self.page

    def get_json(self, path: str) -> Any:
        return self.page.evaluate("async path => (await fetch(path)).json()", path)

    def list_addresses(self) -> list[str]:
        """Return every kind of page, with one thing of each."""
        hostile = f"{5:032x}"
        note = self.get_json("/notes.json")[0]["id"]
        template = self.get_json("/templates.json")[0]["name"]
        project = quote(self.get_json("/projects.json")[0]["project"], safe="")
        lists = (
            "/",
            "/sessions",
            "/sessions?q=pytest",
            "/errors",
            "/notes",
            "/templates",
            "/effect",
            "/effect/holdout",
        )
        more = (
            "/usage",
            "/usage?by=project",
            "/usage?by=session",
            "/projects",
            "/review",
            "/confirm",
            "/settings",
            "/live",
        )
        return [
            *lists,
            *more,
            f"/sessions/{hostile}",
            "/errors/1",
            f"/notes/{note}",
            f"/templates/{template}",
            f"/projects/{project}",
            "/nothing",
        ]
