"""The page of a folder of runs: search, thumbnails, tick to compare, progress of runs under way; read-only."""

from __future__ import annotations

import json
import re
import threading
from importlib.resources import files
from pathlib import Path

from p2p.config.errors import UserError
from scenarios.report.data.run_data import RunData, read_run_data
from scenarios.report.embed import csp_hash
from scenarios.report.html import text
from scenarios.report.page import comparison_page, report_page
from scenarios.run_folder.reader import explaining_damage
from scenarios.serving.loopback import Query, Response, not_found
from scenarios.serving.run_index import find_runs, has_links
from scenarios.serving.thumbnail import thumbnail

_KEY = re.compile(r"[0-9a-f]{16}")
_MOST_COMPARED = 12
_SVG_POLICY = "default-src 'none'; style-src 'unsafe-inline'"


class Site:
    """Answers the requests for one folder. Runs are looked up by key in a fresh list, never by a path."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        # Reports of large runs take seconds and much memory; one is made at a time.
        self._lock = threading.Lock()
        self._page, self._policy = _index_page()

    def respond(self, path: str, query: Query) -> Response:
        """Answers one request."""
        try:
            return self._respond(path, query)
        except UserError as error:
            return Response(404, "text/html", _message_page("This run cannot be shown", str(error)), _SVG_POLICY)

    def _respond(self, path: str, query: Query) -> Response:
        if path == "/":
            return Response(200, "text/html", self._page, self._policy)
        if path == "/runs.json":
            entries = [entry.to_json() for _, entry in find_runs(self._folder).values()]
            listing = {"folder": self._folder.resolve().name, "runs": entries}
            # Browsers read no NaN: better an error here than an empty page there.
            return Response(200, "application/json", json.dumps(listing, allow_nan=False))
        if path not in ("/run", "/compare", "/thumbnail.svg"):
            return not_found()
        keys = query.get("key", [])
        if not keys or len(keys) > _MOST_COMPARED or not all(_KEY.fullmatch(key) for key in keys):
            return not_found(f"name one to {_MOST_COMPARED} runs by their keys\n")
        places = self._places(keys)
        if path == "/thumbnail.svg":
            return Response(200, "image/svg+xml", thumbnail(places[0]), _SVG_POLICY)
        with self._lock:
            return report_answer(places if path == "/compare" else places[:1])

    def _places(self, keys: list[str]) -> list[Path]:
        runs = find_runs(self._folder)
        # Asked of a fresh list: a run may have been removed since the page was made.
        unknown = [key for key in keys if key not in runs]
        if unknown:
            raise UserError("RUN: is not in this folder any more; go back to the list")
        places = [runs[key][0] for key in keys]
        for place in places:
            if has_links(place):
                raise UserError("RUN: one of its files is a link, which may lead out of the folder; it is not opened")
        return places


def report_answer(places: list[Path]) -> Response:
    """Returns the report page of a run, or the page that compares several."""
    runs = [_read(place) for place in places]
    with explaining_damage(Path(places[0].name)):
        page = comparison_page(runs) if len(runs) > 1 else report_page(runs[0])
    # A report carries its own policy, which allows exactly its scripts; this one adds nothing.
    return Response(200, "text/html", page, _policy_of(page))


def _read(place: Path) -> RunData:
    with explaining_damage(Path(place.name)):
        return read_run_data(place)


def _policy_of(page: str) -> str:
    found = re.search(r'<meta http-equiv="Content-Security-Policy" content="([^"]*)">', page)
    return found[1] if found else "default-src 'none'"


def _index_page() -> tuple[str, str]:
    content = (files("scenarios.serving") / "runs.html").read_text(encoding="utf-8")
    script = content[content.index("<script>") + len("<script>") : content.index("</script>")]
    policy = (
        f"default-src 'none'; connect-src 'self'; img-src 'self' data:; script-src {csp_hash(script)}; "
        "style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
    )
    return content, policy


def _message_page(title: str, message: str) -> str:
    return (
        f'<!DOCTYPE html><html lang="en"><meta charset="utf-8"><meta name="color-scheme" content="light dark">'
        f'<title>{text(title)}</title><body style="font: 15px/1.5 system-ui, sans-serif; margin: 2rem">'
        f'<h1>{text(title)}</h1><p>{text(message)}</p><p><a href="/">All runs</a></p></body></html>'
    )
