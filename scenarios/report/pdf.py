"""Prints a page to PDF with an installed Chromium; without one, says what can be written instead."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from p2p.config.errors import UserError
from scenarios.run_folder import atomic_write

_BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
_PATIENCE_S = 180
_DRAWING_MS = 30_000
"""Virtual time in which the page draws its charts before it is printed."""


def write_pdf(page: str, out: Path) -> None:
    """Writes the page as PDF; raises a `UserError` if there is no browser or it fails."""
    browser = next((found for name in _BROWSERS if (found := shutil.which(name))), None)
    if browser is None:
        raise UserError(
            f"--out = {out}: a PDF is printed by Chromium, which is not installed; write .html and print it from any "
            "browser, or take svg, png or pdf of `peerveil timeline` and `peerveil topology`"
        )
    with tempfile.TemporaryDirectory() as folder:
        source, made = Path(folder) / "page.html", Path(folder) / "page.pdf"
        source.write_text(page, encoding="utf-8")
        _print(browser, source, made, Path(folder))
        if not made.is_file():
            raise UserError(f"--out = {out}: {Path(browser).name} has printed nothing; write .html and print it")
        content = made.read_bytes()
    atomic_write.write_with(out, lambda path: path.write_bytes(content))


def _print(browser: str, source: Path, made: Path, folder: Path) -> None:
    words = [browser, "--headless", "--disable-gpu", "--no-first-run", "--disable-background-networking"]
    # Chromium's sandbox does not start for root; the page is our own and asks for nothing.
    words += ["--no-sandbox"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []
    words += [f"--user-data-dir={folder / 'profile'}", "--no-pdf-header-footer"]
    words += [f"--virtual-time-budget={_DRAWING_MS}", f"--print-to-pdf={made}", source.as_uri()]
    try:
        # The words are ours: a browser found by name, and paths of a temporary folder.
        subprocess.run(words, capture_output=True, timeout=_PATIENCE_S, check=False)  # noqa: S603
    except (OSError, subprocess.TimeoutExpired) as error:
        raise UserError(f"{Path(browser).name}: cannot print ({error}); write .html and print it") from error
