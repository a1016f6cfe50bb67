"""Run the daemon inside any program.

server = ConfirmationServer(database="confirm.db").start_background()
...
server.stop()
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from typing import Self, Unpack

import msgspec
import uvicorn
from litestar.types import ASGIApp

from warmstart import __version__
from warmstart.confirm.desk.desk import Desk
from warmstart.confirm.desk.failures import FailureLog
from warmstart.confirm.notify.channels import make_channels
from warmstart.confirm.notify.sending import Channel
from warmstart.confirm.store.page_address import forget_page
from warmstart.doors.web.app import make_api, make_page, protect
from warmstart.doors.web.companions import Companions
from warmstart.doors.web.connections import Room, find_backlog, find_room, make_protocol
from warmstart.doors.web.context import RouteContext
from warmstart.doors.web.settings import (
    ServerOptions,
    find_addresses,
    find_place,
    make_settings,
    open_listener,
)
from warmstart.doors.web.turns import CallerTurns
from warmstart.doors.web.waiters import Waiters
from warmstart.errors import Refused, WarmstartError


class ConfirmationServer:
    """The daemon. Port 0 takes any free port; `api_url` and `page_url` say which."""

    def __init__(self, *, clock: Callable[[], float] = time.time, **options: Unpack[ServerOptions]) -> None:
        self.settings = make_settings(options)
        self._clock = clock
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stopping: asyncio.Event | None = None
        self._ready = threading.Event()
        self._failure: Exception | None = None

    @property
    def api_url(self) -> str:
        return self.addresses.api

    @property
    def page_url(self) -> str:
        return self.addresses.page

    @property
    def local_page_url(self) -> str:
        """The page's address on this machine, whatever proxy or tunnel stands before it."""
        return find_addresses(msgspec.structs.replace(self.settings, public_url=""), *self._listeners).page

    def start_background(self) -> Self:
        """Start the daemon and return when it answers. Raise if the database or a port cannot be used."""
        if self._thread is not None:
            raise Refused("the confirmation daemon is running already")
        settings = self.settings
        self._listeners = [open_listener(settings.host, settings.port)]
        try:
            self._listeners.append(open_listener(settings.host, settings.ui_port))
            channels = make_channels(settings.notify)
            self.addresses = find_addresses(settings, *self._listeners)
            self.desk = self._open_desk([channel.name for channel in channels])
            self._companions = self._start_companions(channels)
        except BaseException:
            self._close_listeners()
            raise
        self._local_page = self.local_page_url
        self._thread = threading.Thread(target=self._run, name="confirm-server", daemon=True)
        self._thread.start()
        self._ready.wait()
        if self._failure is not None:
            self.stop()
            raise WarmstartError(f"the confirmation daemon did not start: {self._failure}") from self._failure
        return self

    def stop(self) -> None:
        """Answer waiting callers, write queued changes, and close."""
        if self._thread is None:
            return
        if self._loop is not None and self._stopping is not None and self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._stopping.set)
        self._thread.join()
        self._thread = None
        self._close_listeners()
        self._companions.stop()
        forget_page(self.desk.store, self._local_page)
        self.desk.close()

    def __enter__(self) -> Self:
        return self.start_background()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _open_desk(self, channels: list[str]) -> Desk:
        settings = self.settings
        desk = Desk(settings.database, settings.policy, secrets=settings.secrets, channels=channels, clock=self._clock)
        try:
            desk.announce(self.addresses.api, __version__)
        except BaseException:
            desk.close()
            raise
        return desk

    def _start_companions(self, channels: list[Channel]) -> Companions:
        try:
            return Companions(self.desk, self.addresses, self.settings, channels)
        except BaseException:
            self.desk.close()
            raise

    def _close_listeners(self) -> None:
        for listener in self._listeners:
            listener.close()

    def _run(self) -> None:
        try:
            asyncio.run(self._serve())
        except Exception as error:  # noqa: BLE001 - raised by start_background
            self._failure = error
        finally:
            self._ready.set()

    async def _serve(self) -> None:
        self._loop, self._stopping = asyncio.get_running_loop(), asyncio.Event()
        waiters = Waiters(self.desk.feed)
        failures = FailureLog(self.desk, self.desk.now)
        context = RouteContext(self.desk, self.addresses, waiters, failures, CallerTurns(), self._companions)
        rooms = [Room(find_room()) for _ in self._listeners]
        apps = self._make_apps(context, rooms)
        servers = [uvicorn.Server(_configure(app, room)) for app, room in zip(apps, rooms, strict=True)]
        running = [
            asyncio.create_task(server.serve(sockets=[listener]))
            for server, listener in zip(servers, self._listeners, strict=True)
        ]
        while not all(server.started for server in servers) and not any(task.done() for task in running):
            await asyncio.sleep(0.002)
        self._ready.set()
        warming = asyncio.create_task(asyncio.to_thread(self.desk.masker.mask_text, "warm"))  # loads the redactor
        ended = asyncio.create_task(self._stopping.wait())
        await asyncio.wait([ended, *running], return_when=asyncio.FIRST_COMPLETED)
        waiters.close()
        failures.close()
        for server in servers:
            server.should_exit = True
        await asyncio.gather(*running, warming)
        ended.cancel()

    def _make_apps(self, context: RouteContext, rooms: list[Room]) -> list[ASGIApp]:
        apps = [make_api(context), make_page(context)]
        return [
            protect(app, find_place(self.settings, listener), self.desk, room.is_crowded)
            for app, listener, room in zip(apps, self._listeners, rooms, strict=True)
        ]


def _configure(app: ASGIApp, room: Room) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        lifespan="off",
        http=make_protocol(room),
        ws="none",
        backlog=find_backlog(room.most),
        log_level="error",  # warnings are about what anybody sends, which could fill the log
        proxy_headers=False,  # nothing here uses a proxy's claims about its clients
        server_header=False,
        limit_concurrency=5_000,
        timeout_graceful_shutdown=3,
        timeout_keep_alive=30,
    )
