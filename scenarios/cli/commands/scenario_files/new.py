"""`peerveil new`: writes a commented starter file, or with `--protocol` a plug-in, its scenario and its test."""

from __future__ import annotations

import argparse
from pathlib import Path

from p2p.config.errors import UserError
from scenarios.loading.problems import printable
from scenarios.loading.writing.protocol_template import protocol_files
from scenarios.loading.writing.starter_file import starter_text


def new_command(args: argparse.Namespace) -> int:
    """Writes the files, or nothing if one of them exists already."""
    target = Path(args.name)
    target = target if target.suffix in {".yaml", ".yml"} else Path(f"{args.name}.yaml")
    files = protocol_files(target) if args.protocol else {target: starter_text(target.stem)}
    write_new(files)
    for path in files:
        print(f"wrote {path}")
    allow = " --allow-plugins" if args.protocol else ""
    print(f"next: peerveil check {target}{allow}, then peerveil run {target}{allow}")
    return 0


def write_new(files: dict[Path, str]) -> None:
    """Writes all files.

    Raises:
        UserError: one exists already, or cannot be written.
    """
    # All are checked first: either all files are written or none.
    there = [path for path in files if path.exists()]
    if there:
        raise UserError([printable(f"{path}: exists already; choose another name") for path in there])
    for path, text in files.items():
        try:
            # Mode x: a file that appeared since the check is not overwritten either.
            with path.open("x", encoding="utf-8") as file:
                file.write(text)
        except OSError as error:
            raise UserError(printable(f"{path}: cannot be written ({error.strerror}); check the folder")) from error
