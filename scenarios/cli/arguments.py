"""The command line arguments of each command."""

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
    parser.add_argument("--watch", action="store_true", help="follow the run on a page of this machine (loopback only)")
    _json(parser, "print the summary as JSON")


def compare(parser: argparse.ArgumentParser) -> None:
    """`peerveil compare SCENARIO --protocols gossip,rotating_leader,central`"""
    parser.add_argument("scenario", metavar="SCENARIO", help="a file, or a name that `list` shows")
    parser.add_argument("--protocols", metavar="A,B", help="the protocols to choose from")
    parser.add_argument(
        "--over", metavar="a.b=V,W", action="append", default=[], help="any other key with a few values to choose from"
    )
    _changes(parser)
    parser.add_argument("--seeds", metavar="K", type=_positive, default=1, help="run K seeds each, counting up")
    parser.add_argument("--out", metavar="DIR", type=Path, help="where results go; runs/compare-<name>-<seed> else")
    parser.add_argument("--data-dir", metavar="DIR", type=Path, help="where data sets are; else PEERVEIL_DATA")
    parser.add_argument("--threads", metavar="N", type=_positive, help="threads for learning")
    _json(parser, "print figures, decision and summaries as JSON")


def plan(parser: argparse.ArgumentParser) -> None:
    """`peerveil plan SCENARIO...`"""
    _scenarios(parser)
    parser.add_argument(
        "--memory", metavar="SIZE", help="what the run may use, such as 8 GB; else what the machine has"
    )
    parser.add_argument("--data-dir", metavar="DIR", type=Path, help="where data sets are; else PEERVEIL_DATA")
    _json(parser, "print the plan as JSON")


def check(parser: argparse.ArgumentParser) -> None:
    """`peerveil check SCENARIO...`"""
    _scenarios(parser)
    _json(parser, "print what is wrong as JSON")


def listing(parser: argparse.ArgumentParser) -> None:
    """`peerveil list [scenarios | devices | traces]`"""
    text = "scenarios of the catalog (default), devices with their sources, or availability traces"
    parser.add_argument("what", nargs="?", choices=("scenarios", "devices", "traces"), default="scenarios", help=text)
    _json(parser, "print the list as JSON")


def new(parser: argparse.ArgumentParser) -> None:
    """`peerveil new NAME`"""
    parser.add_argument("name", metavar="NAME", help="writes NAME.yaml")
    parser.add_argument("--protocol", action="store_true", help="also a protocol of your own, with its test")


def schema(parser: argparse.ArgumentParser) -> None:
    """`peerveil schema`"""
    # Accepted, so that scripts may pass --json to every command that prints.
    _json(parser, "JSON is what it prints anyway")


def report(parser: argparse.ArgumentParser) -> None:
    """`peerveil report RUN...`"""
    _runs(parser)
    parser.add_argument(
        "-o",
        "--out",
        metavar="FILE",
        type=Path,
        help="html or pdf; RUN/report.html for one run, comparison.html for several",
    )
    parser.add_argument(
        "--no-cell-pages", action="store_true", help="of a sweep: leave out the pages of its runs, about 5 MB each"
    )


def runs(parser: argparse.ArgumentParser) -> None:
    """`peerveil runs [FOLDER]`"""
    _folder(parser)
    parser.add_argument(
        "--where", metavar="TEXT", action="append", default=[], help="only runs with this text, or field=value"
    )
    sorts = ("changed", "name", "accuracy", "time", "bytes", "epsilon")
    parser.add_argument("--sort", choices=sorts, default="changed", help="newest first unless given")
    parser.add_argument("--reverse", action="store_true", help="the other way round")
    _json(parser, "print the list as JSON")


def serve(parser: argparse.ArgumentParser) -> None:
    """`peerveil serve [FOLDER]`"""
    _folder(parser)
    parser.add_argument("--port", metavar="N", type=_port, default=0, help="a free one unless given")


def _folder(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "folder", metavar="FOLDER", type=Path, nargs="?", default=Path("runs"), help="runs unless given"
    )


def table(parser: argparse.ArgumentParser) -> None:
    """`peerveil table RUN...`"""
    _runs(parser)
    parser.add_argument("--rows", metavar="NAME,...", help="figures to show, such as accuracy,bytes; of a sweep: axes")
    parser.add_argument("--columns", metavar="AXIS,...", help="of a sweep: axes of the columns")
    parser.add_argument("--figure", metavar="NAME", help="of a sweep: what its cells show; accuracy unless given")
    parser.add_argument("--format", choices=("md", "csv", "latex"), default="md", help="Markdown, CSV or LaTeX")
    parser.add_argument("--caption", metavar="TEXT", help="LaTeX: caption, inside a table environment")
    parser.add_argument("--label", metavar="NAME", help="LaTeX: label, inside a table environment")
    parser.add_argument("--siunitx", action="store_true", help="LaTeX: numbers as \\num and \\qty of that package")
    parser.add_argument("-o", "--out", metavar="FILE", type=Path, help="where the table goes; printed unless given")
    _json(parser, "print the figures as JSON")


def topology(parser: argparse.ArgumentParser) -> None:
    """`peerveil topology RUN-or-SCENARIO`"""
    parser.add_argument("source", metavar="RUN-or-SCENARIO", help="a run's folder, a scenario file or a catalog name")
    parser.add_argument("--round", metavar="N", type=int, help="which round; the first unless given")
    _overrides(parser)
    parser.add_argument("--allow-plugins", action="store_true", help="import `kind: module:Class` from the scenario")
    _picture(parser, "topology.svg", "svg, png, pdf or html")
    _json(parser, "print the graph's figures as JSON")


def timeline(parser: argparse.ArgumentParser) -> None:
    """`peerveil timeline RUN`"""
    parser.add_argument("run", metavar="RUN", type=Path, help="a folder that `peerveil run` wrote")
    parser.add_argument("--rounds", metavar="A-B,C", help="which rounds; for pictures the first unless given")
    parser.add_argument("--nodes", metavar="A-B,C", help="which nodes; the slowest 200 unless given")
    parser.add_argument("--all", action="store_true", help="json: no limit on nodes and events")
    _picture(parser, "timeline.svg", "svg, png, pdf, html, or json (.json.gz) for Perfetto")


def _picture(parser: argparse.ArgumentParser, default: str, kinds: str) -> None:
    text = f"{kinds}, by its ending; {default} unless given"
    parser.add_argument("-o", "--out", metavar="FILE", type=Path, default=Path(default), help=text)
    width = "as wide as one or two columns of a paper (3.5 or 7.16 inches); for screens unless given"
    parser.add_argument("--columns", choices=("one", "two"), help=width)


def _runs(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "runs", metavar="RUN", type=Path, nargs="+", help="folders that `peerveil run` wrote, or a sweep's"
    )


def sweep(parser: argparse.ArgumentParser) -> None:
    """`peerveil sweep SWEEP.yaml`"""
    parser.add_argument("sweep", metavar="SWEEP.yaml", type=Path, help="bases, axes and seeds; see docs/sweeps.md")
    parser.add_argument("--dry-run", action="store_true", help="list the cells with predicted cost; run nothing")
    parser.add_argument("--status", action="store_true", help="list the cells with their state; run nothing")
    parser.add_argument("--only", metavar="axis=value", action="append", default=[], help="only cells with that value")
    parser.add_argument("--retry", choices=("failed",), help="run failed cells again")
    where = "processes (of this machine), serial, dask, tcp://scheduler:8786 or module:function"
    parser.add_argument("--on", metavar="WHERE", default="processes", help=where)
    parser.add_argument("--workers", metavar="N", type=_positive, help="cells at once; else as cores and memory allow")
    parser.add_argument("--shard", metavar="I/N", help="process I of N that share the folder; takes what is unclaimed")
    parser.add_argument("--out", metavar="DIR", type=Path, help="the sweep's folder; runs/sweeps/<name> unless given")
    parser.add_argument("--store", metavar="DIR", type=Path, help="where cells are kept; runs/cells unless given")
    parser.add_argument("--data-dir", metavar="DIR", type=Path, help="where data sets are; else PEERVEIL_DATA")
    parser.add_argument("--allow-plugins", action="store_true", help="import `kind: module:Class` from scenarios")
    parser.add_argument("--yes", action="store_true", help="allow more than 10,000 cells")
    parser.add_argument("--quiet", action="store_true", help="no live table, no answer")
    _json(parser, "print the cells as JSON")


def reproduce(parser: argparse.ArgumentParser) -> None:
    """`peerveil reproduce [ID...]`"""
    parser.add_argument("results", metavar="ID", nargs="*", help="results such as S0-T5.4; --list shows all")
    parser.add_argument("--list", action="store_true", help="all results with their verdict, or why they have none")
    parser.add_argument("--verdicts", action="store_true", help="with --list: compute the formulas' verdicts too")
    parser.add_argument("--size", choices=("reduced", "full"), default="reduced", help="how much is run")
    parser.add_argument("--seeds", metavar="K", type=_positive, help="another number of seeds than the rule's")
    parser.add_argument("--on", metavar="WHERE", default="processes", help="where cells run, as in `sweep`")
    parser.add_argument("--workers", metavar="N", type=_positive, help="cells at once; else as cores and memory allow")
    parser.add_argument("--store", metavar="DIR", type=Path, help="where cells are kept; runs/cells unless given")
    parser.add_argument("--data-dir", metavar="DIR", type=Path, help="where data sets are; else PEERVEIL_DATA")
    parser.add_argument("--record", action="store_true", help="keep the outcome in the package, for the book")
    parser.add_argument("--book", metavar="FILE.md", type=Path, help="write the page of all results and verdicts")
    parser.add_argument("--stale", action="store_true", help="recompute the probes of recorded verdicts")
    parser.add_argument("--quiet", action="store_true", help="no live table")
    _json(parser, "print outcomes as JSON")


def export(parser: argparse.ArgumentParser) -> None:
    """`peerveil export RUN-or-SWEEP...`"""
    _runs(parser)
    parser.add_argument(
        "--to", required=True, choices=("tensorboard", "mlflow", "csv"), help="the tracker, or csv files"
    )
    parser.add_argument("-o", "--out", metavar="DIR", type=Path, help="where it goes; export/<tracker> unless given")
    _json(parser, "print what was written as JSON")


def attack(parser: argparse.ArgumentParser) -> None:
    """`peerveil attack KIND RUN...`"""
    parser.add_argument("kind", metavar="KIND", nargs="?", help="which attack; --list explains each")
    parser.add_argument("runs", metavar="RUN", type=Path, nargs="*", help="folders of runs with `adversaries`")
    parser.add_argument("--by", metavar="NAME", default="", help="the observer; all that can, unless given")
    _overrides(parser, "key=value", "an option of the attack, as in `attacks` of a scenario")
    parser.add_argument("--allow-plugins", action="store_true", help="import `kind: module:Class` from the scenario")
    parser.add_argument("--data-dir", metavar="DIR", type=Path, help="where data sets are; else PEERVEIL_DATA")
    parser.add_argument("--list", action="store_true", help="every attack in a line")
    _json(parser, "print the results as JSON")


def audit(parser: argparse.ArgumentParser) -> None:
    """`peerveil audit SCENARIO...`"""
    _scenarios(parser)
    parser.add_argument("--canaries", metavar="N", type=_positive, help="how many clients; all unless given")
    parser.add_argument("--runs", metavar="N", type=_positive, help="how many runs; 1 unless given")
    parser.add_argument("--others", choices=("train", "still"), help="what other clients do; train unless given")
    parser.add_argument(
        "--neighbours", choices=("replace", "add_remove"), help="canaries v or -v, or in/out; replace unless given"
    )
    parser.add_argument("--data-dir", metavar="DIR", type=Path, help="where data sets are; else PEERVEIL_DATA")
    parser.add_argument("--threads", metavar="N", type=_positive, help="threads for learning")
    _json(parser, "print the audit as JSON")


def calc(parser: argparse.ArgumentParser) -> None:
    """`peerveil calc KIND key=value...`"""
    parser.add_argument("kind", metavar="KIND", nargs="?", help="what to compute; --list explains each")
    parser.add_argument("inputs", metavar="key=value", nargs="*", help="its inputs; lists as [1, 2]")
    parser.add_argument("--cases", metavar="FILE", type=Path, help="compare a JSON file of cases with ours")
    parser.add_argument("--list", action="store_true", help="every kind in a line")
    parser.add_argument("--json", action="store_true", help="print tables as JSON; one formula always is")


def cost(parser: argparse.ArgumentParser) -> None:
    """`peerveil cost RUN`"""
    parser.add_argument("run", metavar="RUN", type=Path, help="a folder that `peerveil run` wrote")
    parser.add_argument("--json", action="store_true", help="print JSON, with every round's critical path")
    parser.add_argument("--measure-from", metavar="N", type=int, help="leave rounds before N out of the figures")


def flows(parser: argparse.ArgumentParser) -> None:
    """`peerveil flows FILE.json`"""
    parser.add_argument("file", metavar="FILE.json", help="nodes, latencies and flows; `-` reads standard input")
    parser.add_argument("--json", action="store_true", help="JSON is what it prints anyway")


def validate(parser: argparse.ArgumentParser) -> None:
    """`peerveil validate`"""
    parser.add_argument("--json", action="store_true", help="print the table as JSON")


def _scenarios(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("scenarios", metavar="SCENARIO", nargs="+", help="a file, or a name that `list` shows")
    _changes(parser)


def _changes(parser: argparse.ArgumentParser) -> None:
    _overrides(parser)
    parser.add_argument("--seed", metavar="N", type=int, help="another seed than the scenario's")
    parser.add_argument("--allow-plugins", action="store_true", help="import `kind: module:Class` from scenarios")


def _overrides(
    parser: argparse.ArgumentParser,
    form: str = "a.b=v",
    text: str = "change a key; after a change of kind, keys that only the old kind has are left out",
) -> None:
    parser.add_argument("--set", metavar=form, dest="overrides", action="append", default=[], help=text)


def _json(parser: argparse.ArgumentParser, text: str) -> None:
    parser.add_argument("--json", action="store_true", help=text)


def _port(text: str) -> int:
    if not text.isdecimal() or len(text) > 5 or int(text) > 65535:
        raise argparse.ArgumentTypeError("must be a port from 0 to 65535")
    return int(text)


def _positive(text: str) -> int:
    # Nine digits at most: a longer number is a slip, and very long ones are slow to convert.
    if not text.isdecimal() or len(text) > 9 or int(text) < 1:
        raise argparse.ArgumentTypeError("must be a whole number >= 1")
    return int(text)
