"""`peerveil run --watch`: serves a live page of a run, read-only and on the loopback interface only."""

from __future__ import annotations

import json
import math
import sys
import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path
from typing import Any

from scenarios.metrics.headline.number_format import accuracy_text, bytes_text, count_text, epsilon_text, seconds_text
from scenarios.report.embed import csp_hash
from scenarios.run_folder.json_text import plain
from scenarios.running.progress import RoundDone
from scenarios.serving.loopback import LOOPBACK, Query, Respond, Response, not_found, serving

_ASKS_EVERY_S = 1.0
_MOST_ROUNDS = 5000
"""Only the latest rounds are kept, which bounds memory and the size of an answer."""


class LivePage:
    """State of the live page: updated by the run after every round, read by the server's threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._run: dict[str, Any] = {"name": "", "question": "", "rounds_planned": 0}
        self._folder: Path | None = None
        self._ended, self._asked_s = False, -math.inf
        self._rows: deque[dict[str, Any]] = deque(maxlen=_MOST_ROUNDS)

    def write_to(self, folder: Path) -> None:
        """Tells where the run is written, for the link to its report."""
        with self._lock:
            self._folder = folder

    def begin(self, name: str, question: str | None, rounds_planned: int) -> None:
        """Starts a new run and clears the previous one."""
        with self._lock:
            self._run = {"name": name, "question": question or "", "rounds_planned": rounds_planned}
            self._rows.clear()

    def round(self, done: RoundDone) -> None:
        """Adds one completed round."""
        accuracy, end_s = done.row.get("accuracy_after_mean"), float(done.row["end_s"])
        row = {
            "round": int(done.row["round"]),
            "accuracy": accuracy,
            "end_s": end_s,
            "texts": [
                seconds_text(end_s),
                accuracy_text(accuracy),
                bytes_text(done.bytes_sent),
                count_text(done.dropouts),
                epsilon_text(done.epsilon),
                epsilon_text(done.proven),
            ],
        }
        with self._lock:
            self._rows.append(row)

    def state(self) -> str:
        """Returns the state as JSON."""
        with self._lock:
            self._asked_s = time.monotonic()
            where = None if self._folder is None else str(self._folder)
            state = {**self._run, "rows": list(self._rows), "folder": where, "ended": self._ended}
            return json.dumps(plain(state), allow_nan=False)

    def report(self) -> Response:
        """Returns the report page of the rounds that are on disk."""
        with self._lock:
            folder = self._folder
        if folder is None:
            return not_found("the run has not written anything yet\n")
        # Imported here: a run without a reader needs no report.
        from scenarios.serving.site import report_answer

        return report_answer([folder])

    def end(self) -> None:
        """Waits until every open page has asked once more, so that it shows the last round."""
        with self._lock:
            self._ended = True
            watched = time.monotonic() - self._asked_s < 3 * _ASKS_EVERY_S
        if watched:
            # Pages ask once a second, each at its own instant: a little more than that reaches all of them.
            time.sleep(1.3 * _ASKS_EVERY_S)


class NoPage:
    """A listener without a page."""

    def write_to(self, folder: Path) -> None:
        """Does nothing."""

    def begin(self, name: str, question: str | None, rounds_planned: int) -> None:
        """Does nothing."""

    def round(self, done: RoundDone) -> None:
        """Does nothing."""


@contextmanager
def serve_live_page(wanted: bool, port: int = 0) -> Iterator[LivePage | NoPage]:
    """Serves a live page while the block runs, if wanted, and prints its address on stderr."""
    if not wanted:
        yield NoPage()
        return
    page = LivePage()
    with serving(_responder(page), port) as found:
        print(f"watch at http://{LOOPBACK}:{found}/", file=sys.stderr, flush=True)
        try:
            yield page
        finally:
            page.end()


def _responder(page: LivePage) -> Respond:
    content = (files("scenarios.report") / "assets" / "watch.html").read_text(encoding="utf-8")
    # The policy allows the page's own script by its hash, and nothing else.
    script = content[content.index("<script>") + len("<script>") : content.index("</script>")]
    only = f"script-src {csp_hash(script)}; style-src 'unsafe-inline'; img-src data:"
    policy = f"default-src 'none'; connect-src 'self'; {only}"

    def respond(path: str, query: Query) -> Response:
        if path == "/":
            return Response(200, "text/html", content, policy)
        if path == "/state.json":
            return Response(200, "application/json", page.state(), policy)
        return page.report() if path == "/report" else not_found("there is only / here\n")

    return respond
