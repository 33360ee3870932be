"""docs/architecture.md is true: what it names exists, where it says."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
PACKAGES = ("p2p", "topologies", "privacy", "nodes", "scenarios", "peerveil")
TOPS = (*PACKAGES, "tests", "benchmarks", "docs")


def named_paths() -> set[str]:
    """Paths from the root, in the tables and in the drawings."""
    found = re.findall(rf"(?<![\w/.])((?:{'|'.join(TOPS)})/[\w/.*]*)", PAGE)
    return {path.rstrip(".") for path in found}


def file_names() -> set[str]:
    """Names of files without a folder."""
    return set(re.findall(r"(?<![\w/.*])(\w+\.(?:py|js|yaml))\b", PAGE))


def identifiers() -> Iterator[tuple[str, str]]:
    """Pairs of an identifier and the file it is said to be in: "`x` and `y` in `file`", or "`file` (`x`)"."""
    for names, path in re.findall(r"((?:`[\w.]+`(?:, | and )?)+) in `([\w/]+\.py)`", PAGE):
        yield from ((name, path) for name in re.findall(r"`([\w.]+)`", names))
    for path, names in re.findall(r"`([\w/]+\.py)` \(([^)]*)\)", PAGE):
        yield from ((name, path) for name in re.findall(r"`([\w.]+)`", names))
    for names, path in re.findall(r"table (`\w+`) is in `([\w/]+\.py)`", PAGE):
        yield names.strip("`"), path


def defined_in(path: Path) -> set[str]:
    """Functions, classes, their members, and names that are assigned."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
    return found


def members() -> list[tuple[str, str]]:
    """Pairs of a class and its member, as in `Network.send`."""
    return sorted(set(re.findall(r"(?<![\w./])([A-Z]\w+)\.([a-z]\w*)\b", PAGE)))


def sub_packages() -> list[str]:
    """Folders of code below the five packages."""
    folders = {path.parent.relative_to(ROOT).as_posix() for name in PACKAGES for path in (ROOT / name).rglob("*.py")}
    return sorted(folder for folder in folders if "/" in folder)


@pytest.mark.parametrize("path", sorted(named_paths()))
def test_what_it_names_exists(path: str) -> None:
    """A folder, a file, or files by a pattern."""
    assert list(ROOT.glob(path.rstrip("/"))), path


def test_files_without_a_folder_exist() -> None:
    """In the drawings and after the name of their folder."""
    known = {path.name for top in TOPS for path in (ROOT / top).rglob("*.*")}
    assert file_names() - known == set()


def test_identifiers_are_in_the_file_that_is_named() -> None:
    """Functions, classes and tables."""
    pairs = set(identifiers())
    assert len(pairs) > 20
    missing = [(name, path) for name, path in sorted(pairs) if name.split(".")[-1] not in defined_in(ROOT / path)]
    assert missing == []


def test_classes_have_the_members_that_are_named() -> None:
    """Wherever the class is: `Network.send` is said without a file."""
    classes: dict[str, set[str]] = {}
    for package in PACKAGES:
        for path in (ROOT / package).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.ClassDef):
                    classes.setdefault(node.name, set()).update(re.findall(r"\w+", ast.unparse(node)))
    assert len(members()) > 5
    assert [pair for pair in members() if pair[1] not in classes.get(pair[0], ())] == []


@pytest.mark.parametrize("folder", sub_packages())
def test_the_map_names_every_sub_package(folder: str) -> None:
    """By its path from the root, in the first column."""
    first = [line.split("|")[1] for line in PAGE.split("\n") if line.startswith("| `")]
    assert any(f"`{folder}/" in cell for cell in first), folder
