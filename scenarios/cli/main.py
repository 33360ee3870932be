"""The `peerveil` command line: dispatches to a command's function and turns errors into exit codes."""

from __future__ import annotations

import argparse
import gc
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from importlib import import_module
from typing import NoReturn

from p2p.config.errors import UserError
from scenarios.cli import arguments
from scenarios.cli.interrupt_handler import raise_on_interrupt
from scenarios.loading.problems import printable, suggestion


@dataclass(frozen=True, slots=True)
class Command:
    """One command: a line of help, its arguments, and its function, imported only when called.

    `target` is `module:function`, with the module relative to this package.
    `asks` marks commands that only read and print; they compute nothing and must start fast.
    """

    help: str
    add_arguments: Callable[[argparse.ArgumentParser], None]
    target: str
    asks: bool = False

    def call(self, values: argparse.Namespace) -> int:
        """Runs the command and returns its exit code."""
        module, _, function = self.target.partition(":")
        with _fast_import() if self.asks else nullcontext():
            imported = import_module(module, __package__)
        raise_on_interrupt()
        return int(getattr(imported, function)(values) or 0)


@contextmanager
def _fast_import() -> Iterator[None]:
    """Imports without collecting garbage, and without OpenBLAS's thread pool unless the user set its size."""
    name = "OPENBLAS_NUM_THREADS"
    given = os.environ.get(name)
    os.environ.setdefault(name, "1")
    # Classes and functions stay; looking for cycles among them would take a twentieth of the time.
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()
        # Restored, so that subprocesses and later imports see the user's environment.
        if given is None:
            del os.environ[name]


COMMANDS: dict[str, Command] = {
    # The order is that of the overview.
    "run": Command("run scenarios and write their results", arguments.run, ".commands.experiments.run:run_command"),
    "compare": Command(
        "run a few alternatives and say which to take",
        arguments.compare,
        ".commands.experiments.compare:run",
    ),
    "plan": Command(
        "say before a run what it will cost and prove",
        arguments.plan,
        ".commands.scenario_files.plan:plan_command",
    ),
    "sweep": Command("run a grid of scenarios", arguments.sweep, ".commands.experiments.sweep:run"),
    "reproduce": Command(
        "run papers' results again, with verdicts",
        arguments.reproduce,
        ".commands.experiments.reproduce:run",
    ),
    "check": Command("validate scenarios", arguments.check, ".commands.scenario_files.check:check_command", asks=True),
    "list": Command(
        "show the catalog, device presets or traces",
        arguments.listing,
        ".commands.scenario_files.list_catalog:list_command",
        asks=True,
    ),
    "new": Command(
        "write a commented starter file",
        arguments.new,
        ".commands.scenario_files.new:new_command",
        asks=True,
    ),
    "schema": Command(
        "print the JSON Schema",
        arguments.schema,
        ".commands.scenario_files.schema:schema_command",
        asks=True,
    ),
    "attack": Command(
        "say what an adversary learns from its observations",
        arguments.attack,
        ".commands.experiments.attack:run",
    ),
    "audit": Command(
        "measure epsilon from below, per view",
        arguments.audit,
        ".commands.experiments.audit:audit_command",
    ),
    "cost": Command("say where the bytes and seconds of a run went", arguments.cost, ".commands.results.cost:run"),
    "flows": Command(
        "send given flows through the network model alone",
        arguments.flows,
        ".commands.network_model.flows:run",
    ),
    "validate": Command("rerun closed-form network cases", arguments.validate, ".commands.network_model.validate:run"),
    "calc": Command("compute the papers' privacy formulas", arguments.calc, ".commands.calculator.calc:run"),
    "runs": Command("list the runs of a folder", arguments.runs, ".commands.results.runs:run"),
    "serve": Command(
        "show the runs of a folder as a page of this machine",
        arguments.serve,
        ".commands.results.runs:serve",
    ),
    "report": Command("write a page of a run, or compare several", arguments.report, ".commands.results.report:run"),
    "table": Command("write figures of runs as a table for a paper", arguments.table, ".commands.results.table:run"),
    "export": Command("hand runs to TensorBoard, MLflow or csv", arguments.export, ".commands.results.export:run"),
    "topology": Command("draw the graph of a round", arguments.topology, ".commands.results.topology:run"),
    "timeline": Command("draw rounds, or write a Perfetto trace", arguments.timeline, ".commands.results.timeline:run"),
}


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command and returns the exit code.

    0: done, 1: the command found a difference or its output was cut off, 2: an error the user can fix,
    130: interrupted.
    """
    _tolerate_terminal_encoding()
    try:
        return _dispatch(list(sys.argv[1:] if argv is None else argv))
    except UserError as error:
        print("\n".join(printable(line) for line in str(error).split("\n")), file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:
        _discard_output()  # the reader (`head`) has gone
        return 1
    except OSError as error:
        # A full disk, a folder that may not be written: nothing that a traceback would explain.
        where = f"{error.filename}: " if error.filename else ""
        print(printable(f"{where}{error.strerror or error}; free the disk, or check the rights"), file=sys.stderr)
        _discard_output()
        return 2
    finally:
        if argv is None:
            # The process is about to exit; without this the last collection scans millions of objects for cycles.
            gc.freeze()


def _discard_output() -> None:
    """Directs standard output to nowhere, so that Python's own flush at exit does not fail too."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _dispatch(argv: list[str]) -> int:
    if not argv or argv[0] in {"-h", "--help", "help"}:
        print(_overview())
        return 0
    if argv[0] == "--version":
        print(f"peerveil {_version()}")
        return 0
    command = COMMANDS.get(argv[0])
    if command is None:
        raise UserError(f"{argv[0]}: unknown command; {suggestion(argv[0], COMMANDS)}")
    code = command.call(_parse(argv[0], command, argv[1:]))
    # Flushed here, so that a broken pipe is raised where `main` handles it.
    sys.stdout.flush()
    return code


def _parse(name: str, command: Command, argv: list[str]) -> argparse.Namespace:
    parser = _Parser(prog=f"peerveil {name}", description=command.help, allow_abbrev=False)
    command.add_arguments(parser)
    # Intermixed: options may stand between positional arguments. Unknown ones are collected to report all at once.
    values, unknown = parser.parse_known_intermixed_args(argv)
    if unknown:
        options = [option for action in parser._actions for option in action.option_strings]
        # The value of an unknown option is not a second problem.
        words = [word for word in unknown if word.startswith("-")] or unknown
        raise UserError([f"{word}: unknown option; {_option_hint(word, argv, options)}" for word in words])
    return values


def _option_hint(word: str, argv: list[str], options: list[str]) -> str:
    """Returns the option that was probably meant: `--rounds 5` is a key of the scenario, set by `--set rounds=5`."""
    name, _, value = word.partition("=")
    # `timeline` draws several rounds, `topology` one.
    other_number = name[:-1] if name.endswith("s") else f"{name}s"
    if other_number in options:
        return f"did you mean `{other_number}`?"
    if name.startswith("--") and "--set" in options:
        # Imported here: the keys are needed for this message only.
        from scenarios.loading.key_paths import paths_of

        paths = paths_of(name[2:].replace("-", "_"))
        after = argv[argv.index(word) + 1 :] if word in argv else []
        value = value or (after[0] if after and not after[0].startswith("-") else "VALUE")
        if paths:
            return "did you mean " + " or ".join(f"`--set {path}={value}`" for path in paths) + "?"
    return suggestion(word, options)


class _Parser(argparse.ArgumentParser):
    """Raises UserError instead of exiting, so that all errors are reported alike."""

    def error(self, message: str) -> NoReturn:
        raise UserError(f"{self.prog}: {message}; see `{self.prog} --help`")


def _overview() -> str:
    width = max(len(name) for name in COMMANDS)
    lines = [f"  {name:<{width}}  {command.help}" for name, command in COMMANDS.items()]
    return "\n".join(
        [
            "usage: peerveil COMMAND [options]",
            "",
            "Simulates anonymous, differentially private federated learning among peers.",
            "",
            *lines,
            "",
            "`peerveil COMMAND --help` says more; start with `peerveil list` and `peerveil run tiny`.",
        ]
    )


def _version() -> str:
    # Imported here: it pulls in the e-mail package, and no other command needs it.
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("peerveil")
    except PackageNotFoundError:
        return "(not installed)"


def _tolerate_terminal_encoding() -> None:
    """Escapes characters the terminal's encoding lacks instead of raising UnicodeEncodeError."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")
