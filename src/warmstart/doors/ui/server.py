"""Run the pages' server inside any program.

server = UiServer(settings, port=0).start_background()
print(server.make_link())
server.stop()
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from typing import Self

import uvicorn

from warmstart.config import Settings
from warmstart.doors.ui.access import LOCAL, Access
from warmstart.doors.ui.app import UiParts, make_app
from warmstart.doors.ui.figures import LARGE, Figures
from warmstart.doors.ui.live import LiveFeed
from warmstart.doors.ui.stores import PATIENCE, OpenStores
from warmstart.doors.ui.work import Work
from warmstart.doors.web.settings import open_listener
from warmstart.errors import Refused, WarmstartError

HOST = "127.0.0.1"
PORT = 6090


class UiServer:
    """Serves the pages on loopback, and to guests on an address that the owner names. Port 0 takes any free one."""

    def __init__(
        self,
        settings: Settings,
        *,
        port: int = PORT,
        share: str | None = None,
        patience: float = PATIENCE,
        clock: Callable[[], float] = time.time,
        large: int = LARGE,
    ) -> None:
        """`patience`: seconds that a change waits for another process's write. `large`: number of sessions from which
        figures are computed in processes of their own."""
        self._large = large
        self._patience = patience
        self._settings = settings
        self._wanted = port
        self._share = share.strip("[]") if share else None
        self._clock = clock
        self._thread: threading.Thread | None = None
        self._server: uvicorn.Server | None = None
        self._failure: BaseException | None = None
        self._ready = threading.Event()

    def start_background(self) -> Self:
        """Start, and return when the pages answer. Raise Refused if the port cannot be used."""
        if self._thread is not None:
            raise Refused("the server is running already")
        self._listeners = [open_listener(HOST, self._wanted)]
        self.port = int(self._listeners[0].getsockname()[1])
        try:
            if self._share and self._share not in LOCAL:
                self._listeners.append(open_listener(self._share, self.port))
        except BaseException:
            self._listeners[0].close()
            raise
        self.access = Access(self._clock)
        stores = OpenStores(self._settings, self._patience)
        self.parts = UiParts(
            stores=stores,
            figures=Figures(stores, self._clock, large=self._large),
            work=Work(self._settings, self._clock),
            access=self.access,
            live=LiveFeed(stores, self._clock),
            cookie=f"warmstart_ui_{self.port}",  # browsers send cookies to every port, so that two servers need two names
        )
        self._thread = threading.Thread(target=self._run, name="warmstart-ui", daemon=True)
        self._thread.start()
        self._ready.wait()
        if self._failure is not None:
            self.stop()
            raise WarmstartError(f"the server did not start: {self._failure}") from self._failure
        return self

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self.port}"

    def make_link(self) -> str:
        """Return a link that logs one browser in, once, within ten minutes."""
        return f"{self.url}/login?code={self.access.make_owner_code()}"

    def make_guest_link(self) -> str:
        """Return the link that lets others read, until the server ends."""
        host = self._share or HOST
        shown = f"[{host}]" if ":" in host else host
        return f"http://{shown}:{self.port}/login?code={self.access.make_guest_code()}"

    def stop(self) -> None:
        """Stop answering, and close the store."""
        if self._thread is None:
            return
        self.parts.live.close()
        if self._server is not None:
            self._server.should_exit = True
        self._thread.join()
        self._thread = None
        self.parts.figures.close()
        self.parts.work.close()
        self.parts.stores.close()
        for listener in self._listeners:
            listener.close()

    def __enter__(self) -> Self:
        return self.start_background()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _run(self) -> None:
        try:
            asyncio.run(self._serve())
        except Exception as error:  # noqa: BLE001 - raised by start_background
            self._failure = error
        finally:
            self._ready.set()

    async def _serve(self) -> None:
        hosts = {*LOCAL, *((self._share,) if self._share else ())}
        origins = [f"http://{f'[{host}]' if ':' in host else host}:{self.port}" for host in hosts]
        app = make_app(self.parts, hosts, origins)
        config = uvicorn.Config(
            app,
            log_config=None,
            access_log=False,
            lifespan="off",
            ws="none",
            log_level="error",  # warnings are about what anybody sends, which could fill the log
            proxy_headers=False,
            server_header=False,
            limit_concurrency=200,
            timeout_graceful_shutdown=2,
            timeout_keep_alive=30,
        )
        self._server = uvicorn.Server(config)
        running = asyncio.create_task(self._server.serve(sockets=self._listeners))
        while not self._server.started and not running.done():
            await asyncio.sleep(0.002)
        self._ready.set()
        await running
