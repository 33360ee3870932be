"""`peerveil run --watch`: serves a live page of a run, read-only and on the loopback interface only."""

from __future__ import annotations

import json
import sys
import threading
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from typing import Any, cast

from scenarios.metrics.number_format import accuracy_text, bytes_text, count_text, epsilon_text, seconds_text
from scenarios.report.embed import csp_hash
from scenarios.run_folder.json_text import plain

LOOPBACK = "127.0.0.1"
_MOST_ROUNDS = 5000
"""Only the latest rounds are kept, which bounds memory and the size of an answer."""


class LivePage:
    """State of the live page: updated by the run after every round, read by the server's threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._run: dict[str, Any] = {"name": "", "question": "", "rounds_planned": 0}
        self._rows: deque[dict[str, Any]] = deque(maxlen=_MOST_ROUNDS)

    def begin(self, name: str, question: str | None, rounds_planned: int) -> None:
        """Starts a new run and clears the previous one."""
        with self._lock:
            self._run = {"name": name, "question": question or "", "rounds_planned": rounds_planned}
            self._rows.clear()

    def round(
        self, record: Mapping[str, Any], bytes_sent: int, dropouts: int = 0, epsilon: float | None = None
    ) -> None:
        """Adds one completed round; bytes, dropouts and epsilon are those of the run so far."""
        accuracy = record.get("accuracy_after_mean")
        row = {
            "round": int(record["round"]),
            "accuracy": accuracy,
            "end_s": float(record["end_s"]),
            "texts": [
                seconds_text(float(record["end_s"])),
                accuracy_text(accuracy),
                bytes_text(bytes_sent),
                count_text(dropouts),
                epsilon_text(epsilon),
            ],
        }
        with self._lock:
            self._rows.append(row)

    def state(self) -> str:
        """Returns the state as JSON."""
        with self._lock:
            return json.dumps(plain({**self._run, "rows": list(self._rows)}), allow_nan=False)


class NoPage:
    """A listener without a page."""

    def begin(self, name: str, question: str | None, rounds_planned: int) -> None:
        """Does nothing."""

    def round(
        self, record: Mapping[str, Any], bytes_sent: int, dropouts: int = 0, epsilon: float | None = None
    ) -> None:
        """Does nothing."""


class _Server(ThreadingHTTPServer):
    """Takes it quietly if a browser hangs up in the middle of an answer."""

    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)


@contextmanager
def serve_live_page(wanted: bool, port: int = 0) -> Iterator[LivePage | NoPage]:
    """Serves a live page while the block runs, if wanted, and prints its address on stderr."""
    if not wanted:
        yield NoPage()
        return
    page = LivePage()
    server = _Server((LOOPBACK, port), _handler(page))
    # An open connection of a browser must not keep the process alive.
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.2}, daemon=True)
    thread.start()
    print(f"watch at http://{LOOPBACK}:{server.server_port}/", file=sys.stderr, flush=True)
    try:
        yield page
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _handler(page: LivePage) -> type[BaseHTTPRequestHandler]:
    content = (files("scenarios.report") / "watch.html").read_text(encoding="utf-8")
    # The policy allows the page's own script by its hash, and nothing else.
    script = content[content.index("<script>") + len("<script>") : content.index("</script>")]
    policy = f"default-src 'none'; connect-src 'self'; script-src {csp_hash(script)}; style-src 'unsafe-inline'"

    class Handler(BaseHTTPRequestHandler):
        """Serves two read-only addresses."""

        def do_GET(self) -> None:
            """Answers `/` and `/state.json`."""
            # Other host names are refused: a web site could otherwise read the page by DNS rebinding.
            port = cast("ThreadingHTTPServer", self.server).server_port
            if self.headers.get("Host") not in {f"{LOOPBACK}:{port}", f"localhost:{port}"}:
                self._answer(403, "text/plain", "ask for 127.0.0.1\n")
            elif self.path == "/":
                self._answer(200, "text/html", content)
            elif self.path == "/state.json":
                self._answer(200, "application/json", page.state())
            else:
                self._answer(404, "text/plain", "there is only / here\n")

        def _answer(self, status: int, kind: str, text: str) -> None:
            body = text.encode()
            self.send_response(status)
            headers = {
                "Content-Type": f"{kind}; charset=utf-8",
                "Content-Length": str(len(body)),
                # The state changes every round.
                "Cache-Control": "no-store",
                "Content-Security-Policy": policy,
                "X-Content-Type-Options": "nosniff",
                "X-Frame-Options": "DENY",
                "Cross-Origin-Resource-Policy": "same-origin",
            }
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            """Logs nothing: the terminal shows the run's progress."""

    return Handler
