"""Input types of the calculator, input validation, and results with warnings."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from annotated_types import Ge, Gt, Le, Lt, MinLen

from p2p.config.errors import UserError

Result = dict[str, Any]
Count = Annotated[int, Ge(1)]
Natural = Annotated[int, Ge(0)]
Positive = Annotated[float, Gt(0)]
NonNegative = Annotated[float, Ge(0)]
Delta = Annotated[float, Gt(0), Lt(1)]
Rate = Annotated[float, Gt(0), Le(1)]
Fraction = Annotated[float, Ge(0), Le(1)]
Inside = Annotated[float, Gt(0), Lt(1)]
Vector = Annotated[list[float], MinLen(1)]
Layers = Annotated[list[Vector], MinLen(1)]
Pair = tuple[Natural, Natural]
Topology = Literal["gossip", "pseudo_central"]
Reading = Literal["M", "m_tcs"]

Check = tuple[bool, str]


def refuse(*checks: Check) -> None:
    """Raises one error with the texts of all failed checks; each text is `key = value: rule; cure`."""
    problems = [text for holds, text in checks if not holds]
    if problems:
        raise UserError(problems)


def answer(values: Result, *checks: Check) -> Result:
    """Returns the values, with the texts of all failed checks under `warnings`."""
    warnings = [text for holds, text in checks if not holds]
    return {**values, "warnings": warnings} if warnings else values


def check_sizes(M: int, m_tcs: int, m_e: int | None, topology: str) -> tuple[Check, ...]:
    """Returns the checks on the sizes of an ADPDFL system."""
    return (
        (m_tcs <= M, f"m_tcs = {m_tcs}: must be at most M = {M}; take fewer training clients"),
        (topology != "gossip" or m_e is not None, "m_e: required key is missing for gossip; add `m_e=...`"),
        (
            topology != "gossip" or m_e is None or m_e < m_tcs,
            f"m_e = {m_e}: must be below m_tcs = {m_tcs}; send to fewer peers",
        ),
    )
