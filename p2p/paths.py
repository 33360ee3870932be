"""Files that a scenario names, taken relative to the folder the scenario file lies in."""

from __future__ import annotations

from typing import Annotated


class ExistingFile:
    """Marks a text field that names a file: the loader makes it absolute and reports it when absent."""


FilePath = Annotated[str, ExistingFile()]
