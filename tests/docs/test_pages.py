"""The documentation does what it says: pages build without a warning, links resolve, examples run."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

import peerveil

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted(path for path in DOCS.rglob("*.md") if "_build" not in path.parts)]
BLOCK = re.compile(r"(?:^<!-- (?P<note>[^\n]+) -->\n)?^```(?P<language>\w+)\n(?P<text>.*?)^```$", re.M | re.S)


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, its text, and the note in the comment above it."""

    language: str
    text: str
    note: str

    @property
    def file(self) -> str:
        """The file it is to be saved as; empty if none."""
        return self.note.removeprefix("file: ") if self.note.startswith("file: ") else ""


def blocks(page: Path) -> list[Block]:
    """The blocks of a page that do something, in order."""
    found = [Block(match["language"], match["text"], match["note"] or "") for match in BLOCK.finditer(page.read_text())]
    return [block for block in found if block.file or (block.language in ("console", "python") and not block.note)]


EXECUTED = [page for page in PAGES if page.parent.name != "reference" and blocks(page) and page.name != "README.md"]


@pytest.mark.extra
@pytest.mark.parametrize("page", EXECUTED, ids=lambda page: page.stem)
def test_the_examples_of_a_page_run(page: Path, tmp_path: Path) -> None:
    """In a folder of their own, in the order of the page: files are written, commands and programs must succeed."""
    program: list[str] = []
    for block in blocks(page):
        if block.file:
            (tmp_path / block.file).write_text(block.text)
        elif block.language == "python":
            # One namespace per page: a later block uses what an earlier one has made.
            program.append(block.text)
            execute([sys.executable, "-c", "\n".join(program)], tmp_path)
        else:
            for line in block.text.splitlines():
                if line.startswith("$ "):
                    execute(["bash", "-euo", "pipefail", "-c", line[2:]], tmp_path)


def execute(command: list[str], folder: Path) -> None:
    """Runs a command with this environment's `peerveil`; it must end well."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = os.environ | {"PATH": path, "PYTHONPATH": str(ROOT), "MPLBACKEND": "agg"}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{command[-1]}\n{done.stdout}\n{done.stderr}"


@pytest.mark.extra
def test_the_site_builds_without_a_warning(tmp_path: Path) -> None:
    """`sphinx -W`: unknown references, pages in no table of contents and broken directives are errors."""
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-b", "html", str(DOCS), str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    for page in ("index", "tutorial", "reference/keys", "reference/tables", "reference/commands", "reference/python"):
        assert (tmp_path / f"{page}.html").exists()


@pytest.mark.slow
def test_the_front_page_shows_two_digests_that_agree() -> None:
    """With each other, and with what the scenario gives: events are equal on every machine."""
    shown = re.findall(r'"events": "([0-9a-f]{64})"', (DOCS / "index.md").read_text())
    assert shown == 2 * [peerveil.run("tiny").summary.digest.events]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_links_to_files_resolve(page: Path) -> None:
    """Every relative link and picture of a page exists; generated pages count as existing."""
    made = {"keys.md", "tables.md", "commands.md"}
    for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text()):
        if re.match(r"[a-z]+:|#", target):
            continue
        path = (page.parent / target.partition("#")[0]).resolve()
        assert path.exists() or (path.parent.name == "reference" and path.name in made), f"{page.name}: {target}"


@pytest.mark.extra
def test_the_jupyter_notebook_runs(tmp_path: Path) -> None:
    """From the first cell to the last, in a kernel of this environment."""
    import nbformat
    from nbclient import NotebookClient

    notebook = nbformat.read(DOCS / "notebooks" / "first-look.ipynb", as_version=4)
    os.environ["PYTHONPATH"] = str(ROOT)
    client = NotebookClient(notebook, timeout=300, kernel_name="python3", resources={"metadata": {"path": tmp_path}})
    done = client.execute()
    kinds = [kind for cell in done.cells for output in cell.get("outputs", []) for kind in output.get("data", {})]
    assert kinds.count("text/html") >= 4
    assert "image/png" in kinds


@pytest.mark.extra
def test_the_marimo_notebook_runs() -> None:
    """Every cell, as a program; its last cell has found the spread of the models."""
    code = (
        f"import sys; sys.path[:0] = [{str(DOCS / 'notebooks')!r}, {str(ROOT)!r}]; import round_by_round;"
        "_, names = round_by_round.app.run(); assert names['spread'] > 0; assert names['seen']"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
