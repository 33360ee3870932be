"""Paths of files named in a scenario, relative to the scenario file's folder."""

from __future__ import annotations

from typing import Annotated


class ExistingFile:
    """Marks a text field that names a file; the loader makes it absolute and reports a missing file."""


FilePath = Annotated[str, ExistingFile()]
