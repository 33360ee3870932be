"""A read-only web server on the loopback: answers GET of known addresses, refuses foreign host names."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple, cast
from urllib.parse import parse_qs, urlsplit

LOOPBACK = "127.0.0.1"
_LONGEST_QUERY = 4096
Query = Mapping[str, list[str]]


class Response(NamedTuple):
    """What is sent back; `policy` is the content security policy of a page."""

    status: int
    kind: str
    body: str
    policy: str = "default-src 'none'"


Respond = Callable[[str, Query], Response]
"""Answers a request, given its path and query."""


def not_found(text: str = "there is nothing here\n") -> Response:
    """Returns the answer to an unknown address."""
    return Response(404, "text/plain", text)


class _Server(ThreadingHTTPServer):
    """Takes it quietly if a browser hangs up in the middle of an answer."""

    # An open connection of a browser must not keep the process alive.
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)


def make_server(respond: Respond, port: int = 0) -> ThreadingHTTPServer:
    """Returns a server bound to the loopback interface only; port 0 takes a free one."""
    # Never on all interfaces: the pages have no login.
    return _Server((LOOPBACK, port), _handler(respond))


@contextmanager
def serving(respond: Respond, port: int = 0) -> Iterator[int]:
    """Serves in a thread while the block runs; yields the port."""
    server = make_server(respond, port)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.2}, daemon=True)
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _handler(respond: Respond) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        """Serves GET only; every other method is answered with 501 by the base class."""

        # A request that is never finished must not hold a thread for ever.
        timeout = 30

        def do_GET(self) -> None:
            """Answers one request."""
            # Other host names are refused: a web site could otherwise read the page by DNS rebinding.
            port = cast("ThreadingHTTPServer", self.server).server_port
            if self.headers.get("Host") not in {f"{LOOPBACK}:{port}", f"localhost:{port}"}:
                self._send(Response(403, "text/plain", "ask for 127.0.0.1\n"))
                return
            self._send(_respond(respond, self.path))

        def _send(self, answer: Response) -> None:
            body = answer.body.encode("utf-8", "replace")
            self.send_response(answer.status)
            headers = {
                "Content-Type": f"{answer.kind}; charset=utf-8",
                "Content-Length": str(len(body)),
                # What is shown changes while runs go on.
                "Cache-Control": "no-store",
                "Content-Security-Policy": answer.policy,
                "X-Content-Type-Options": "nosniff",
                "X-Frame-Options": "DENY",
                "Referrer-Policy": "no-referrer",
                "Cross-Origin-Resource-Policy": "same-origin",
            }
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            """Logs nothing: the terminal belongs to the command."""

    return Handler


def _respond(respond: Respond, target: str) -> Response:
    try:
        parts = urlsplit(target)
    except ValueError:
        return Response(400, "text/plain", "not an address\n")
    # An absolute address (`GET http://elsewhere/`) asks a proxy, which this is not.
    if parts.scheme or parts.netloc or len(parts.query) > _LONGEST_QUERY:
        return Response(400, "text/plain", "not an address of this page\n")
    # Bounded, so that a request cannot make the server build a huge table.
    return respond(parts.path, parse_qs(parts.query, max_num_fields=100))
