"""All runs of a folder as a list and as a page: what is inside is shown, nothing outside is read or changed."""

from __future__ import annotations

import http.client
import json
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from p2p.log.log import Log
from scenarios.cli.main import main
from scenarios.run_folder.writer import RunFolder
from scenarios.running.resume import only_writer
from scenarios.serving.loopback import LOOPBACK, serving
from scenarios.serving.run_index import find_runs
from scenarios.serving.site import Site

HOSTILE = "<img src=x onerror=alert(1)>"


def finish(folder: Path, log: Log, name: str, seed: int, **more: Any) -> Path:
    """Writes a finished run."""
    run = RunFolder.create(folder, name, seed)
    run.begin(f"name: {name}\nseed: {seed}\nrounds: 3\nclients: 6\nprotocol:\n  kind: gossip\n", {"format": 1})
    head = {"accuracy": {"collected": 0.5 + seed / 100, "clients": {}}, "epsilon": {"rigorous_local": "inf"}}
    summary = {"headline": head, "format": 1, "scenario": name, "seed": seed, "protocol": "gossip"}
    summary |= {
        "nodes": {"clients": 6},
        "rounds_completed": 3,
        "rounds_planned": 3,
        "stopped_because": "all rounds done",
    }
    summary |= {"simulated_s": 12.0, "bytes": {"sent": 1000 * seed}, "diagnosis": [], "warnings": ["w"], **more}
    run.finish(log, summary)
    return folder


@pytest.fixture
def folder(tmp_path: Path, random_log: Callable[..., Log]) -> Path:
    """Two finished runs, one of them deep inside, a killed one, a damaged one, a run of links, and other things."""
    root = tmp_path / "runs"
    finish(root / "first", random_log(1), "alpha", 1)
    finish(root / "deep" / "er" / "second", random_log(2), HOSTILE, 2)
    killed = RunFolder.create(root / "killed", "beta", 3)
    killed.begin("name: beta\nseed: 3\nrounds: 9\nprotocol:\n  kind: central\nclients: 6\n", {"format": 1})
    killed.write_part(random_log(3), 2)
    (root / "damaged").mkdir()
    (root / "damaged" / "summary.json").write_text("{not json", encoding="utf-8")
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "summary.json").write_text('{"scenario": "stolen", "headline": {}}', encoding="utf-8")
    (tmp_path / "secret.txt").write_text("stolen", encoding="utf-8")
    (root / "link").symlink_to(tmp_path / "secret", target_is_directory=True)
    lured = finish(root / "lured", random_log(4), "lured", 4)
    (lured / "scenario.yaml").unlink()
    (lured / "scenario.yaml").symlink_to(tmp_path / "secret.txt")
    (root / "notes.txt").write_text("not a run", encoding="utf-8")
    return root


def test_the_index(folder: Path) -> None:
    """Every run once, with its state; links to elsewhere are no runs."""
    found = {entry.place: entry for _, entry in find_runs(folder).values()}
    assert sorted(found) == ["damaged", "deep/er/second", "first", "killed", "lured"]
    assert (found["first"].state, found["first"].accuracy, found["first"].epsilon) == ("done", 0.51, "inf")
    assert (found["killed"].state, found["killed"].rounds, found["killed"].planned) == ("killed", 2, 9)
    assert (found["killed"].scenario, found["killed"].protocol) == ("beta", "central")
    assert found["damaged"].state == "damaged"
    assert found["first"].trouble == 1
    with only_writer(folder / "killed"):
        assert {entry.state for _, entry in find_runs(folder).values() if entry.place == "killed"} == {"running"}


def test_runs_command(folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """A table, filtered and sorted, and JSON; a hostile name is printed as it is."""
    monkeypatch.setenv("COLUMNS", "160")
    assert main(["runs", str(folder), "--where", "protocol=gossip", "--sort", "bytes"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[1:]] == ["first", "deep/er/second", "lured"]
    assert lines[1].startswith("  first (alpha-1, gossip) ")
    # Lured's folder is called as its scenario; at 60 columns names are still whole, on lines of their own.
    assert lines[3].startswith("  lured (gossip) ")
    monkeypatch.setenv("COLUMNS", "60")
    assert main(["runs", str(folder), "--where", "protocol=gossip", "--sort", "bytes"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["state", "accuracy", "time", "bytes", "epsilon", "warnings"]
    assert lines[1] == "  first (alpha-1, gossip)"
    assert lines[2].split()[:3] == ["done", "3/3", "0.510"]
    assert main(["runs", str(folder), "--where", "beta", "--json"]) == 0
    (only,) = json.loads(capsys.readouterr().out)
    assert (only["scenario"], only["state"]) == ("beta", "killed")
    assert main(["runs", str(folder / "deep"), "--reverse"]) == 0
    assert main(["runs", str(folder), "--where", "nothing-like-it"]) == 0
    assert "no runs in" in capsys.readouterr().out
    assert main(["runs", str(folder), "--where", "protokol=gossip"]) == 2
    assert "did you mean `protocol`?" in capsys.readouterr().err
    assert main(["runs", str(folder / "absent")]) == 2
    assert "is not a folder" in capsys.readouterr().err


@pytest.fixture
def port(folder: Path) -> Iterator[int]:
    """The port of the page of that folder."""
    with serving(Site(folder).respond) as port:
        yield port


def ask(port: int, target: str, method: str = "GET", host: str | None = None) -> tuple[int, str, dict[str, str]]:
    """Asks for an address as it is written."""
    connection = http.client.HTTPConnection(LOOPBACK, port, timeout=20)
    connection.putrequest(method, target, skip_host=True)
    connection.putheader("Host", host or f"{LOOPBACK}:{port}")
    connection.endheaders()
    answer = connection.getresponse()
    found = answer.status, answer.read().decode(), dict(answer.getheaders())
    connection.close()
    return found


def test_the_page_lists_runs_and_shows_reports(folder: Path, port: int) -> None:
    """The list, a report, a comparison, a thumbnail; all forbid what they do not need."""
    status, page, headers = ask(port, "/")
    assert status == 200
    assert "default-src 'none'" in headers["Content-Security-Policy"]
    assert HOSTILE not in page
    keys = {run["place"]: run["key"] for run in json.loads(ask(port, "/runs.json")[1])["runs"]}
    status, report, headers = ask(port, f"/run?key={keys['deep/er/second']}")
    assert status == 200
    assert HOSTILE not in report
    assert "script-src 'sha256-" in headers["Content-Security-Policy"]
    assert ask(port, f"/compare?key={keys['first']}&key={keys['deep/er/second']}")[0] == 200
    status, picture, headers = ask(port, f"/thumbnail.svg?key={keys['first']}")
    assert (status, headers["Content-Type"].split(";")[0]) == (200, "image/svg+xml")
    assert picture.startswith("<svg")
    assert ask(port, f"/run?key={keys['killed']}")[0] == 200


@pytest.mark.parametrize(
    "target",
    [
        "/../secret.txt",
        "/..%2fsecret.txt",
        "/%2e%2e/secret.txt",
        "//etc/passwd",
        "/etc/passwd",
        "/first/summary.json",
        "/run",
        "/run?key=../../secret",
        "/run?key=%2e%2e%2fsecret",
        "/run?key=0123456789abcdef",
        "/run?key=0123456789ABCDEF",
        "/run?path=/etc/passwd",
        "/thumbnail.svg?key=..",
        "/compare?" + "&".join(["key=0123456789abcdef"] * 50),
        "/run?key=" + "a" * 3000,
        "/run?key=\x00",
        "/?" + "x" * 5000,
        "http://127.0.0.1/run",
        "/run?" + "&".join(f"k{i}=1" for i in range(90)),
    ],
)
def test_hostile_addresses(port: int, target: str) -> None:
    """None of them reads anything, none is an error of the server, and the page stays up."""
    if target.startswith("/run?key=\x00"):
        target = target.replace("\x00", "%00")
    status, body, _ = ask(port, target)
    assert status in (400, 404)
    assert "stolen" not in body
    assert "root:" not in body
    assert ask(port, "/")[0] == 200


def test_runs_that_lead_outside_are_not_opened(port: int) -> None:
    """A run whose file is a link may lead anywhere; a folder that is a link is not listed."""
    runs = json.loads(ask(port, "/runs.json")[1])["runs"]
    assert "link" not in [run["place"] for run in runs]
    (key,) = [run["key"] for run in runs if run["place"] == "lured"]
    status, body, _ = ask(port, f"/run?key={key}")
    assert status == 404
    assert "is a link" in body
    assert "stolen" not in body


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"])
def test_other_methods_are_refused(port: int, method: str) -> None:
    """The page takes no orders."""
    assert ask(port, "/", method)[0] == 501


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1", "localhost", "127.0.0.1:1", "[::1]"])
def test_foreign_hosts_are_refused(port: int, host: str) -> None:
    """As a web page would have it whose name was made to point here."""
    assert ask(port, "/runs.json", host=host)[0] == 403


def test_broken_requests_do_no_harm(port: int) -> None:
    """Noise, a request that is hung up on, and a header that never ends: the page still answers."""
    for noise in (b"\x16\x03\x01\x00", b"GET / HTTP/1.1\r\nHost: x", b"GET " + b"/" * 70_000 + b" HTTP/1.1\r\n\r\n"):
        with socket.create_connection((LOOPBACK, port), timeout=5) as connection:
            connection.sendall(noise)
    assert ask(port, "/")[0] == 200


def test_only_the_loopback_is_served(folder: Path) -> None:
    """The socket is bound to 127.0.0.1, so that no other machine can ask."""
    with serving(Site(folder).respond) as port, socket.socket() as other:
        other.settimeout(2)
        # Another address of the loopback net: a server on all interfaces would answer here.
        with pytest.raises(OSError, match="refused"):
            other.connect(("127.0.0.2", port))


def contents(folder: Path) -> dict[str, bytes | None]:
    """Every file and folder inside by its path, with its bytes."""
    found = (path for path in folder.rglob("*") if not path.is_symlink())
    return {str(path): path.read_bytes() if path.is_file() else None for path in found}


def test_nothing_is_written(folder: Path, port: int) -> None:
    """Every file stays as it was, byte for byte, and none is added."""
    before = contents(folder)
    for run in json.loads(ask(port, "/runs.json")[1])["runs"]:
        ask(port, f"/run?key={run['key']}")
        ask(port, f"/thumbnail.svg?key={run['key']}")
    assert contents(folder) == before


def test_a_port_in_use_is_told(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One message, exit code 2."""
    with socket.socket() as taken:
        taken.bind((LOOPBACK, 0))
        taken.listen()
        assert main(["serve", str(folder), "--port", str(taken.getsockname()[1])]) == 2
    assert "cannot be used" in capsys.readouterr().err
    assert main(["serve", str(folder), "--port", "70000"]) == 2
    assert "argument --port: must be a port from 0 to 65535" in capsys.readouterr().err
