"""The attack `linkage`: which messages of consecutive rounds came from the same client."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from privacy.attacks.attack import Result
from privacy.attacks.linkage import Observation, guess_by_address, guess_by_content
from privacy.attacks.observations import UNKNOWN, Position, Truth, View


class Links(NamedTuple):
    """Guesses for one pair of rounds: rows of observations, and for each later row a place among the earlier ones."""

    rounds: tuple[int, int]
    before: NDArray[np.int64]
    after: NDArray[np.int64]
    guesses: dict[str, NDArray[np.int64]]


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkageAttack:
    """Links messages of one client across rounds, by addresses and by contents.

    Attributes:
        by: the observer whose view is attacked; all that can, unless given
    """

    by: str = ""

    def unfit(self, position: Position) -> str:
        """Returns that there is nothing to compare."""
        central = position.public["protocol_kind"] == "central"
        if not position.vectors or position.kind == "model" or (position.kind == "server" and not central):
            return "it gets no updates to compare; take a peer, a coalition, a leader, or the server of `central`"
        return ""

    def guess(self, view: View) -> list[Links]:
        """Returns guesses for every pair of rounds in which updates were received one after the other."""
        rounds = [number for number in view.rows.rounds("update") if number in set(view.kept_rounds)]
        seen = {number: self._observed(view, number) for number in rounds}
        return [
            Links((one, two), seen[one][0], seen[two][0], self._methods(seen[one][1], seen[two][1]))
            for one, two in pairwise(rounds)
            if two == one + 1
        ]

    def _observed(self, view: View, number: int) -> tuple[NDArray[np.int64], Observation]:
        rows = view.rows.received("update", number)
        rows = rows[view.rows["vector"][rows] != UNKNOWN]
        # One message of each sender: in a coalition several members receive the same vector.
        _, first = np.unique(view.rows["vector"][rows], return_index=True)
        rows = rows[np.sort(first)]
        return rows, Observation(view.rows.addresses(rows), view.vectors(number)[view.rows["vector"][rows]])

    def _methods(self, before: Observation, after: Observation) -> dict[str, NDArray[np.int64]]:
        return {"address": guess_by_address(before, after), "cosine": guess_by_content(before, after)}

    def score(self, guess: list[Links], truth: Truth) -> Result:
        """Returns the share of returning clients that each method recognised."""
        hits: dict[str, float] = {}
        returning, chance = 0, 0.0
        for links in guess:
            before, after = truth.origin[links.before], truth.origin[links.after]
            back = np.isin(after, before)
            returning += int(back.sum())
            chance += back.sum() / max(len(before), 1)
            for name, rows in links.guesses.items():
                right = back & (rows >= 0) & (before[rows] == after)
                hits[name] = hits.get(name, 0.0) + float(right.sum())
        rates = {name: found / returning if returning else None for name, found in hits.items()}
        figures = {"returning": returning, "chance": chance / returning if returning else None, "rates": rates}
        best = max((rate for rate in rates.values() if rate is not None), default=None)
        told = "no client returned" if best is None else f"{best:.0%} of {returning} returning clients were recognised"
        return Result(headline=told, figures=figures, table={})
