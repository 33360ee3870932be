"""The live page: it tells what the run told it, to this machine only, and takes no orders."""

from __future__ import annotations

import http.client
import json
import re
import socket
import struct
import time
from collections.abc import Callable
from typing import Any

import pytest

from scenarios.running.live_page import LivePage, NoPage, serve_live_page
from scenarios.running.progress import RoundDone


def _ask(port: int, path: str, method: str = "GET", host: str | None = None) -> tuple[int, str, dict[str, str]]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    connection.request(method, path, headers={} if host is None else {"Host": host})
    answer = connection.getresponse()
    found = answer.status, answer.read().decode(), dict(answer.getheaders())
    connection.close()
    return found


@pytest.mark.slow
def test_the_page_follows_the_rounds(
    round_record: Callable[..., dict[str, Any]], capsys: pytest.CaptureFixture[str]
) -> None:
    """What was told is served; foreign names, other paths and other methods are refused; then it is gone."""
    with serve_live_page(True) as page:
        found = re.search(r"http://127\.0\.0\.1:(\d+)/", capsys.readouterr().err)
        assert found is not None
        port = int(found[1])
        page.begin("<b>", "Why?", 3)
        page.round(RoundDone(round_record(1, 0.0, 10.0), 12_300, 2, 1.5, 2e4))
        status, text, headers = _ask(port, "/state.json")
        state = json.loads(text)
        assert status == 200
        assert (state["name"], state["rounds_planned"]) == ("<b>", 3)
        assert state["rows"][0]["texts"] == ["10 s", "0.700", "12.3 kB", "2", "1.5", "2e4"]
        assert "default-src 'none'" in headers["Content-Security-Policy"]
        assert _ask(port, "/")[0] == 200
        assert _ask(port, "/../etc/passwd")[0] == 404
        assert _ask(port, "/state.json", host="evil.example")[0] == 403
        assert _ask(port, "/", method="POST")[0] == 501
    with pytest.raises(ConnectionRefusedError):
        _ask(port, "/")


def test_nothing_is_served_unasked() -> None:
    """Without --watch there is no page."""
    with serve_live_page(False) as page:
        assert isinstance(page, NoPage)


def test_a_new_run_clears_the_page(round_record: Callable[..., dict[str, Any]]) -> None:
    """Several scenarios in one command show one after the other."""
    page = LivePage()
    page.begin("first", None, 2)
    page.round(RoundDone(round_record(1, 0.0, 1.0), 1))
    page.begin("second", None, 2)
    assert json.loads(page.state())["rows"] == []


@pytest.mark.slow
def test_a_browser_that_hangs_up_is_no_news(
    round_record: Callable[..., dict[str, Any]], capsys: pytest.CaptureFixture[str]
) -> None:
    """In the middle of a long answer, and of a question; the page goes on, and nothing is printed."""
    with serve_live_page(True) as page:
        found = re.search(r":(\d+)/", capsys.readouterr().err)
        assert found is not None
        port = int(found[1])
        page.begin("x" * 10_000_000, None, 3)
        for question in (f"GET /state.json HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n", "GET /state"):
            with socket.create_connection(("127.0.0.1", port)) as connection:
                # No lingering: closing resets the connection at once.
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                connection.sendall(question.encode())
                time.sleep(0.2)
        time.sleep(0.2)
        assert _ask(port, "/")[0] == 200
    assert capsys.readouterr().err == ""
