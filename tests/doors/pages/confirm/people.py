"""People who decide on the approval page."""

from __future__ import annotations

from typing import Any

from doors.pages.confirm.daemon import Daemon

FOREIGN = "evil.example"  # a name whose owner lets it point at this machine


class Person:
    """A person with a browser of their own, and a record of the page's errors and requests."""

    def __init__(self, browser: Any, daemon: Daemon, **options: Any) -> None:
        self.daemon = daemon
        self.context = browser.new_context(**{"viewport": {"width": 1280, "height": 900}} | options)
        self.context.set_default_timeout(10_000)
        self.complaints: list[str] = []
        self.asked: list[str] = []
        self.loads = 0
        self.page = self.open_tab()

    def open_tab(self) -> Any:
        page = self.context.new_page()
        page.on("console", lambda message: self.complaints.append(message.text))
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("dialog", lambda dialog: (self.complaints.append(dialog.message), dialog.dismiss()))
        page.on("request", lambda request: self.asked.append(request.url))
        page.on("domcontentloaded", lambda _: setattr(self, "loads", self.loads + 1))
        return page

    def log_in(self, subject: str = "alice") -> Person:
        self.page.goto(self.daemon.make_link(subject))
        self.page.wait_for_selector(".connection.live")
        return self

    def show(self, id: str, page: Any = None) -> None:
        page = page or self.page
        page.goto(f"{self.daemon.page}/#/request/{id}")
        page.wait_for_selector(".showing h1 bdi")
        page.wait_for_selector(".showing:not(:has(p.note:text-is('Loading …')))")

    def ask(self, verdict: str, page: Any = None) -> None:
        """Open the dialog."""
        (page or self.page).click(f".decision .{verdict}")

    def answer(self, verdict: str, reason: str = "", page: Any = None) -> None:
        """Decide the open request, as a person would."""
        page = page or self.page
        self.ask(verdict, page)
        if page.locator("#typed").count():
            page.fill("#typed", page.inner_text(".typing code"))
        if reason:
            page.fill("#reason", reason)
        page.click(f"dialog .{verdict}")

    def text(self, selector: str, page: Any = None) -> str:
        return str((page or self.page).inner_text(selector))

    def wait(self, text: str, page: Any = None) -> None:
        (page or self.page).get_by_text(text).first.wait_for()
