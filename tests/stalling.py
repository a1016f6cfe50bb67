"""A TCP proxy on this machine that can stall: it keeps connections open and passes nothing on."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


class StallingProxy:
    """Passes connections on to a Unix socket until it stalls."""

    def __init__(self, target: Path) -> None:
        self._target = str(target)
        self._open = threading.Event()
        self._open.set()
        self._sockets: list[socket.socket] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.connections = 0  # that were ever made
        threading.Thread(target=self._accept, daemon=True).start()

    def stall(self) -> None:
        self._open.clear()

    def go_on(self) -> None:
        self._open.set()

    def close(self) -> None:
        self._open.set()
        for one in (self._listener, *self._sockets):
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _address = self._listener.accept()
                self.connections += 1
                server = socket.socket(socket.AF_UNIX)
                server.connect(self._target)
                self._sockets += [client, server]
                for source, sink in ((client, server), (server, client)):
                    threading.Thread(target=self._pump, args=(source, sink), daemon=True).start()

    def _pump(self, source: socket.socket, sink: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(65_536):
                self._open.wait()
                sink.sendall(data)
        for one in (source, sink):
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)


@contextmanager
def proxying(address: str) -> Iterator[tuple[StallingProxy, str]]:
    """Yield a proxy to the server of an address on a Unix socket, and the address through it."""
    folder = Path(address.partition("host=")[2])
    proxy = StallingProxy(folder / ".s.PGSQL.5432")
    base = address.partition("?")[0]
    try:
        yield proxy, base.replace("@/", f"@127.0.0.1:{proxy.port}/") + "?sslmode=disable&gssencmode=disable"
    finally:
        proxy.close()
