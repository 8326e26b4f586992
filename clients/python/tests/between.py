"""A proxy over TCP in front of the server of a test's folder: answers late, or instead of it."""

from __future__ import annotations

import collections
import contextlib
import http.client
import json
import pathlib
import socket
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import semel

#: Status, headers and body instead of the server's own answer.
Instead = tuple[int, dict[str, str], dict[str, Any]]
BUSY: Instead = (
    503,
    {"Retry-After": "1"},
    {"code": "INVALID_ARGS", "detail": "The server reads too much already.", "retriable": True, "correctiveAction": "Send it later."},
)


class Between:
    """`before(path, nth)` may wait, or answer itself; `after(path, nth)` may hold the server's answer back. Counted from 1."""

    def __init__(self, socket_path: pathlib.Path) -> None:
        self.before: Callable[[str, int], Instead | None] = lambda *_: None
        self.after: Callable[[str, int], None] = lambda *_: None
        self.seen: collections.Counter[str] = collections.Counter()
        own = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                own.seen[self.path] += 1
                nth = own.seen[self.path]
                instead = own.before(self.path, nth)
                if instead is None:
                    status, headers, text = _ask(socket_path, self.path, dict(self.headers), body)
                    own.after(self.path, nth)
                else:
                    status, headers, text = instead[0], instead[1], json.dumps(instead[2]).encode()
                # Nobody may be there any more.
                with contextlib.suppress(OSError):
                    self.send_response(status)
                    for name, value in {**headers, "Content-Type": "application/json", "Content-Length": str(len(text))}.items():
                        self.send_header(name, value)
                    self.end_headers()
                    self.wfile.write(text)

            def log_message(self, *_: Any) -> None: ...

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


def _ask(place: pathlib.Path, path: str, headers: dict[str, str], body: bytes) -> tuple[int, dict[str, str], bytes]:
    connection = http.client.HTTPConnection("localhost")
    connection.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.sock.connect(str(place))
    try:
        kept = {name: value for name, value in headers.items() if name.lower() not in ("host", "connection", "content-length")}
        connection.request("POST", path, body, kept)
        answer = connection.getresponse()
        delay = answer.getheader("Retry-After")
        return answer.status, {} if delay is None else {"Retry-After": delay}, answer.read()
    finally:
        connection.close()


def between(folder: pathlib.Path) -> Between:
    """In front of the server of this folder, which it starts."""
    semel.once("between", 1, lambda: None)
    (place,) = folder.rglob("*.sock")
    return Between(place)
