"""How long the command line takes to say something, and what it imports for that."""

from __future__ import annotations

import os
import resource
import subprocess
import sys

from benchmarks.figures import Effort, Figure

HEAVY = ("torch", "scipy", "sklearn", "pyarrow")
GOALS = {"--help": 5.0, "check": 23.0}
_CALL = "import sys; sys.argv = ['peerveil', {arguments}]; from scenarios.cli.main import main; sys.exit(main())"


def _command(*arguments: str) -> list[str]:
    return [sys.executable, "-c", _CALL.format(arguments=", ".join(map(repr, arguments)))]


def _run(command: list[str]) -> str:
    # As a user has it: modules are compiled once, whatever this process was told about bytecode.
    env = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return subprocess.run(command, check=False, capture_output=True, text=True, env=env).stderr


def _cpu_s(command: list[str]) -> float:
    """CPU seconds of a child process, which other work on the machine changes less than its time."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    _run(command)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def startup(effort: Effort) -> list[Figure]:
    """Against an interpreter that does nothing; interleaved, the best of each."""
    bare = [sys.executable, "-c", "pass"]
    commands = {"pass": bare, "--help": _command("--help"), "check": _command("check", "tiny")}
    times: dict[str, list[float]] = {name: [] for name in commands}
    for command in commands.values():
        _run(command)  # writes the bytecode
    for _ in range(effort.repetitions):
        for name, command in commands.items():
            times[name].append(_cpu_s(command))
    figures = [
        Figure(f"peerveil {name}", min(times[name]) / min(times["pass"]), "times `python -c pass`", goal)
        for name, goal in GOALS.items()
    ]
    heavy = sum(len(_heavy_imports(commands[name])) for name in GOALS)
    return [*figures, Figure("heavy packages that --help and check import", heavy, "", 0)]


def _heavy_imports(command: list[str]) -> list[str]:
    told = _run([command[0], "-X", "importtime", *command[1:]])
    names = {line.rpartition("|")[2].strip().partition(".")[0] for line in told.splitlines()}
    return [name for name in HEAVY if name in names]
