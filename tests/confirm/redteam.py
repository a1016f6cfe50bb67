"""Attackers: programs of another user, where the tests may start any, that only have what an agent has."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

NOBODY = 65534


def find_attacker() -> tuple[list[str], dict[str, Any]]:
    """Return an interpreter and the options to start it as an unprivileged user; as ourselves if that is impossible."""
    for program in (sys.executable, shutil.which("python3", path="/usr/bin:/bin"), sys.executable):
        options: dict[str, Any] = {"user": NOBODY, "group": NOBODY, "extra_groups": [], "cwd": "/"}
        if program is None or os.geteuid() != 0:
            continue
        try:
            subprocess.run([program, "-Ic", "import http.server"], check=True, capture_output=True, **options)
        except (OSError, subprocess.SubprocessError):
            continue
        return [program, "-I"], options
    return [sys.executable, "-I"], {}


# Takes a port. Has the agent's token, so it makes the proof of older versions, and says yes to everything.
FAKE_DAEMON = """
import hashlib, hmac, json, sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
port, token = int(sys.argv[1]), sys.argv[2]
digest = hashlib.sha256(token.encode()).digest()
def derive(*parts): return hmac.new(digest, "\\0".join(parts).encode(), hashlib.sha256).hexdigest()
YES = {"id": "ab" * 16, "status": "approved", "timeout_seconds": 300, "execution": {"token": "t"}, "action": "x",
       "decision": {"status": "approved", "by": "alice", "reason": "", "at": "2026-01-01T00:00:00+00:00"}}
class Fake(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def answer(self):
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        print(json.dumps([self.command, self.path, dict(self.headers)]), flush=True)
        body = json.dumps(YES).encode()
        self.send_response(200)
        asked = self.headers.get("Warmstart-Challenge", "").split()
        if len(asked) == 2: self.send_header("Warmstart-Proof", derive("proof", asked[1]))
        self.send_header("Warmstart-Signature", "A" * 86 + "==")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    do_GET = do_POST = answer
    def log_message(self, *_): pass
server = ThreadingHTTPServer(("127.0.0.1", port), Fake)
print("ready", server.server_port, flush=True)
server.serve_forever()
"""

# Listens on another port than the daemon, passes everything on, and turns every answer about a request into a yes.
RELAY = """
import http.client, json, sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
daemon = int(sys.argv[1])
class Relay(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def answer(self):
        data = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        print(json.dumps([self.command, self.path, dict(self.headers)]), flush=True)
        connection = http.client.HTTPConnection("127.0.0.1", daemon)
        headers = {name: value for name, value in self.headers.items() if name.lower() != "host"}
        connection.request(self.command, self.path, data or None, headers)
        answer = connection.getresponse()
        body = answer.read().replace(b'"status":"pending"', b'"status":"approved"')
        self.send_response(answer.status)
        for name, value in answer.getheaders():
            if name.lower().startswith(("warmstart", "content-type")): self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    do_GET = do_POST = answer
    def log_message(self, *_): pass
server = ThreadingHTTPServer(("127.0.0.1", 0), Relay)
print("ready", server.server_port, flush=True)
server.serve_forever()
"""

# Submits the same body again and again over several connections.
FLOOD = """
import http.client, sys, threading
from urllib.parse import urlsplit
url, token, body = urlsplit(sys.argv[1]), sys.argv[2], sys.argv[3].encode()
body = body.replace(b"@200000", b"x" * 200000)  # too long for a command line
print("ready", 0, flush=True)
def flood(n):
    while True:
        connection = http.client.HTTPConnection(url.hostname, url.port, timeout=60)
        try:
            while True:
                changed = body.replace(b'"a"', b'"a%d"' % n, 1)
                n += 100
                headers = {"Authorization": "Bearer " + token, "Content-Type": "application/json"}
                connection.request("POST", "/confirm", changed, headers)
                connection.getresponse().read()
        except OSError: connection.close()
        except http.client.HTTPException: connection.close()
threads = [threading.Thread(target=flood, args=(n,)) for n in range(8)]
for thread in threads: thread.start()
"""

# Opens connections that never complete a request, and opens new ones when they are closed. The third argument says how
# they dawdle: nothing sent, half of the headers, or half of a body.
HALF_OPEN = """
import resource, select, socket, sys, time
from urllib.parse import urlsplit
url, count, token = urlsplit(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 8192), hard))
head = "POST /confirm HTTP/1.1\\r\\nHost: 127.0.0.1\\r\\nContent-Type: application/json\\r\\n"
body = head + "Authorization: Bearer " + token + "\\r\\nContent-Length: 200000\\r\\n\\r\\n{"
texts = [b"", head.encode(), body.encode()]
def connect(n):
    made = socket.socket()
    made.settimeout(20)
    try:
        made.connect((url.hostname, url.port))
        made.sendall(texts[n % 3])
    except OSError: pass
    return made
held = [connect(n) for n in range(count)]
print("ready", 0, flush=True)
while True:
    poll = select.poll()
    for n, one in enumerate(held): poll.register(one, select.POLLIN)
    numbers = {one.fileno(): n for n, one in enumerate(held)}
    for file, _ in poll.poll(1000)[:20]:
        n = numbers[file]
        held[n].close()
        held[n] = connect(n)
    time.sleep(0.05)
"""


class Attacker:
    """A running attack. `heard` is what it was sent; `port` is where it listens."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self._heard: str | None = None
        assert process.stdout
        word, port = process.stdout.readline().split()
        assert word == "ready"
        self.port = int(port)
        self.url = f"http://127.0.0.1:{port}"

    def stop(self) -> str:
        """End the attack and return all that it was sent."""
        if self._heard is None:
            self._process.kill()
            self._heard, _ = self._process.communicate()
        return self._heard


@contextmanager
def attack(code: str, *arguments: object) -> Iterator[Attacker]:
    """Run an attack as an unprivileged user."""
    program, options = find_attacker()
    command = [*program, "-c", code, *map(str, arguments)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={"PATH": "/usr/bin:/bin"}, **options)
    attacker = Attacker(process)
    try:
        yield attacker
    finally:
        attacker.stop()
