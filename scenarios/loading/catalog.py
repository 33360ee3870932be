"""Finds scenarios by path, or by name in the package's catalog."""

from __future__ import annotations

from pathlib import Path

from p2p.config.errors import UserError
from scenarios.loading.problems import printable, shorten, suggestion

SUFFIXES = (".yaml", ".yml")


def catalog() -> dict[str, Path]:
    """Returns the file of every scenario in the catalog, sorted by name."""
    folder = Path(__file__).parents[1] / "catalog"
    return {path.stem: path for path in sorted(folder.glob("*.yaml"), key=lambda path: path.stem)}


def catalog_path(ref: str | Path) -> Path:
    """Returns the file that `ref` refers to; an existing path wins over a catalog name.

    Raises:
        UserError: `ref` is neither a file nor a name in the catalog.
    """
    text = str(ref)
    path = Path(text)
    if "\0" not in text and _is_there(path):
        return path
    known = catalog()
    if text in known:
        return known[text]
    if "\0" not in text and _is_folder(path):
        problem = (
            f"{shorten(text, 300)}: is a folder; give a scenario file inside it, or a name that `peerveil list` shows"
        )
    elif path.suffix in SUFFIXES or "/" in text:
        problem = f"{shorten(text, 300)}: no such file; give a path, or a name that `peerveil list` shows"
    # A frequent slip: `--set a=1 b=2`, of which argparse takes b=2 for a scenario.
    elif "=" in text:
        short = shorten(text, 300)
        problem = f"{short}: no scenario, but a setting; each needs its own --set: write `--set {short}`"
    else:
        hint = suggestion(text, known)
        # Dozens of names would hide the message.
        cure = hint if hint.startswith("did you mean") else "give a path, or a name that `peerveil list` shows"
        problem = f"{shorten(text, 300)}: neither a file nor in the catalog; {cure}"
    raise UserError(printable(problem))


def _is_there(path: Path) -> bool:
    try:
        return path.exists() and not path.is_dir()
    except OSError:  # a name too long to be one
        return False


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except OSError:
        return False
