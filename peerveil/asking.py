"""Questions that need no run: is a scenario valid, what will it cost, what does a formula give."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from peerveil.sources import read_source
from peerveil.values import Values

if TYPE_CHECKING:
    from scenarios.schema import Scenario


def check(
    scenario: str | Path | Mapping[str, Any] | Scenario, *, allow_plugins: bool = False, **changes: Any
) -> Scenario:
    """Returns the checked scenario, an immutable object whose fields are the file's sections.

    Raises:
        UserError: all problems at once; `error.problems` lists them.

    >>> import peerveil as pv
    >>> pv.check("tiny", rounds=7).rounds
    7
    >>> try:
    ...     pv.check("tiny", rounds=0, clients=1)
    ... except pv.UserError as error:
    ...     print(len(error.problems))
    2
    """
    return read_source(scenario, changes, allow_plugins)


def plan(
    scenario: str | Path | Mapping[str, Any] | Scenario,
    *,
    memory: int | None = None,
    data_dir: str | Path | None = None,
    allow_plugins: bool = False,
    **changes: Any,
) -> Values:
    """Estimates a run before it starts: rounds, bytes, simulated seconds, memory, epsilons at the end.

    Args:
        memory: bytes that the run may take; the machine's by default.

    Raises:
        UserError: the scenario has problems, or the run would not fit into memory.

    >>> import peerveil as pv
    >>> pv.plan("tiny").rounds.planned
    2
    """
    from scenarios.planning.plan import make_plan

    checked = read_source(scenario, changes, allow_plugins)
    return Values(make_plan(checked, memory, None if data_dir is None else Path(data_dir)))


def epsilon(kind: str, **inputs: Any) -> Values:
    """Computes one privacy formula, as `peerveil calc KIND` does; `peerveil calc --list` shows the kinds.

    Raises:
        UserError: unknown kind or input, missing input, value out of range; all at once.

    >>> import peerveil as pv
    >>> found = pv.epsilon("gaussian_composition_eps", noise_multiplier=2.0, releases=10, delta=1e-5)
    >>> round(found.eps_exact, 2)
    7.51
    """
    from scenarios.cli.commands.calculator.calc_inputs import compute

    return Values(compute(kind, inputs))
