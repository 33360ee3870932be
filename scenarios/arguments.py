"""What each command takes on the command line."""

from __future__ import annotations

import argparse
from pathlib import Path


def run(parser: argparse.ArgumentParser) -> None:
    """`peerveil run SCENARIO...`"""
    _scenarios(parser)
    parser.add_argument("--out", metavar="DIR", type=Path, help="where results go; runs/<name>-<seed> unless given")
    parser.add_argument("--seeds", metavar="K", type=_positive, default=1, help="run K seeds, counting up")
    parser.add_argument("--resume", action="store_true", help="go on with an interrupted run in --out")
    parser.add_argument("--data-dir", metavar="DIR", type=Path, help="where data sets are; else PEERVEIL_DATA")
    parser.add_argument("--threads", metavar="N", type=_positive, help="threads for learning")
    parser.add_argument("--quiet", action="store_true", help="no progress bar, no table")
    _json(parser, "print the summary as JSON")


def check(parser: argparse.ArgumentParser) -> None:
    """`peerveil check SCENARIO...`"""
    _scenarios(parser)
    _json(parser, "print what is wrong as JSON")


def listing(parser: argparse.ArgumentParser) -> None:
    """`peerveil list`"""
    _json(parser, "print the catalog as JSON")


def new(parser: argparse.ArgumentParser) -> None:
    """`peerveil new NAME`"""
    parser.add_argument("name", metavar="NAME", help="writes NAME.yaml")
    parser.add_argument("--protocol", action="store_true", help="also a protocol of your own, with its test")


def schema(parser: argparse.ArgumentParser) -> None:
    """`peerveil schema`"""
    _json(parser, "JSON is what it prints anyway")


def _scenarios(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("scenarios", metavar="SCENARIO", nargs="+", help="a file, or a name that `list` shows")
    parser.add_argument(
        "--set",
        metavar="a.b=v",
        dest="overrides",
        action="append",
        default=[],
        help="change a key; after a change of kind, keys that only the old kind has are left out",
    )
    parser.add_argument("--seed", metavar="N", type=int, help="another seed than the scenario's")
    parser.add_argument("--allow-plugins", action="store_true", help="import `kind: module:Class` from scenarios")


def _json(parser: argparse.ArgumentParser, text: str) -> None:
    parser.add_argument("--json", action="store_true", help=text)


def _positive(text: str) -> int:
    if not text.isdecimal() or len(text) > 9 or int(text) < 1:
        raise argparse.ArgumentTypeError("must be a whole number >= 1")
    return int(text)
