"""The pages of a sweep's runs, to which the page of the sweep leads: each is `report.html` in the folder of its run."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from p2p.config.errors import UserError
from scenarios.metrics.headline.number_format import bytes_text, count_text
from scenarios.report.data.run_data import read_run_data
from scenarios.report.page import report_page
from scenarios.run_folder import atomic_write
from scenarios.run_folder.reader import explaining_damage
from scenarios.sweeps.read_sweep import CELL_PAGE, SweepTable

_PAGE_BYTES = 6_000_000
"""A page holds the charts' library, 5 MB, whatever its run; the data of most runs is far smaller."""


def folders_without_page(sweep: SweepTable) -> list[Path]:
    """Returns the folders of finished cells whose page is missing, or older than the results it shows."""
    folders = [_folder(sweep, row) for row in sweep.done]
    return [folder for folder in folders if folder.is_dir() and not _is_current(folder)]


def make_cell_pages(folders: Sequence[Path], on_page: Callable[[], None]) -> tuple[int, list[str]]:
    """Makes the pages of runs; returns how many, and why not the others. A damaged run does not stop the rest.

    Raises:
        UserError: there is not enough room for all; none is made.
    """
    _refuse_without_room(folders)
    made = 0
    problems: list[str] = []
    for folder in folders:
        try:
            with explaining_damage(folder):
                page = report_page(read_run_data(folder))
            atomic_write.write_text(folder / CELL_PAGE, page)
            made += 1
        except atomic_write.CannotWriteError as error:
            # The other folders are on the same disk and mostly of the same owner.
            return made, [*problems, *error.problems]
        except UserError as error:
            problems += error.problems
        on_page()
    return made, problems


def _folder(sweep: SweepTable, row: Mapping[str, Any]) -> Path:
    return sweep.path / str(row["folder"])


def _is_current(folder: Path) -> bool:
    # Attacks and audits add files to a finished run.
    page = folder / CELL_PAGE
    others = (file.stat().st_mtime for file in folder.iterdir() if file != page)
    return page.is_file() and page.stat().st_mtime >= max(others, default=0.0)


def _refuse_without_room(folders: Sequence[Path]) -> None:
    needed = _PAGE_BYTES * len(folders)
    free = shutil.disk_usage(folders[0]).free if folders else needed
    if free < needed:
        raise UserError(
            f"SWEEP: the pages of {count_text(len(folders))} runs take about {bytes_text(needed)}, and "
            f"{bytes_text(free)} are free; --no-cell-pages leaves them out"
        )
