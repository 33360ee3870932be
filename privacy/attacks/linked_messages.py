"""Links the messages of one observer's view by client, and scores that: the work of the attack `linkage`."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from p2p.log.records import KIND
from privacy.attacks.attack import Curve, Result
from privacy.attacks.linkage import guess_by_address
from privacy.attacks.matching import (
    Guess,
    Seen,
    as_sent,
    centred,
    cosines_by_preparation,
    log_ratios,
    matched,
    nearest,
    timed,
    whitened,
)
from privacy.attacks.observation_columns import IN, UNKNOWN
from privacy.attacks.observations import Truth, View
from privacy.attacks.tracks import link_tracks

Rows = NDArray[np.int64]
IDENTITY = "proxy's table"
CHAINS = "chains, arrival times"


class LinkedMessages(NamedTuple):
    """Guesses about messages of one view.

    Attributes:
        rows: by round, the rows of observations that are compared, one for each sender
        pairs: by later round and method, for each of its messages a place among those of the round before, or -1
        tracks: by round, the track of each message
    """

    rows: Mapping[int, Rows]
    pairs: Mapping[int, Mapping[str, Guess]]
    tracks: Mapping[int, Guess]


def link(view: View) -> LinkedMessages:
    """Returns guesses for every pair of consecutive rounds, and tracks through all rounds."""
    rows = received_updates(view)
    numbers = sorted(rows)
    began = {number: round_began(view, number) for number in numbers}
    seen = {number: _seen(view, number, rows[number], began[number]) for number in numbers}
    followed = [(one, two) for one, two in pairwise(numbers) if two == one + 1]
    pairs = {two: _pair_guesses(seen[one], seen[two]) for one, two in followed}
    for one, two in followed:
        known = view.rows["identity"][rows[one]], view.rows["identity"][rows[two]]
        if (known[0] != UNKNOWN).all():
            pairs[two][IDENTITY] = _equal(known[0], known[1])
    tracks = link_tracks([seen[number] for number in numbers], int(view.position.public["clients"]))
    by_round = dict(zip(numbers, tracks, strict=True))
    for one, two in followed:
        pairs[two][CHAINS] = _equal(by_round[one], by_round[two])
    return LinkedMessages(rows, pairs, by_round)


def score(guess: LinkedMessages, truth: Truth) -> Result:
    """Returns the share of returning clients that each method recognised, over all rounds and in each."""
    table: list[dict[str, Any]] = []
    for two, methods in guess.pairs.items():
        before, after = truth.origin[guess.rows[two - 1]], truth.origin[guess.rows[two]]
        # Only clients that were there in the round before can be recognised; the rates are shares of these.
        back = np.isin(after, before)
        chance = float(back.sum()) / max(len(before), 1)
        for name, found in methods.items():
            right = int((back & (found >= 0) & (before[found] == after)).sum())
            row = {"round": two, "method": name, "returning": int(back.sum()), "right": right, "by_chance": chance}
            table.append(row)
    return _result(table, _through_gaps(guess, truth))


def received_updates(view: View) -> dict[int, Rows]:
    """Returns by round the rows of updates that the observer received, one for each distinct vector."""
    found = {}
    for number in view.rows.rounds("update"):
        rows = view.rows.received("update", number)
        rows = rows[view.rows["vector"][rows] != UNKNOWN]
        # In a coalition several members receive the same vector; the first arrival stands for all.
        _, first = np.unique(view.rows["vector"][rows], return_index=True)
        if len(first):
            found[number] = rows[np.sort(first)]
    return found


def round_began(view: View, number: int) -> float:
    """Returns when the observer first heard of a round: its earliest control message, or else anything of it."""
    rows = view.rows
    mine = (rows["round"] == number) & (rows["direction"] == IN)
    control = mine & (rows["kind"] == KIND["control"])
    return float(rows["at_s"][control if control.any() else mine].min())


def _seen(view: View, number: int, rows: Rows, began_s: float) -> Seen:
    vectors = view.vectors(number)[view.rows["vector"][rows]]
    # Above zero, since logarithms of times are compared.
    return Seen(view.rows.addresses(rows), vectors, np.maximum(view.rows["at_s"][rows] - began_s, 1e-9))


def _pair_guesses(before: Seen, after: Seen) -> dict[str, Guess]:
    preparations = [as_sent, centred, whitened]
    plain, content, white = cosines_by_preparation(after.vectors, before.vectors, preparations)
    ratios, of_white = log_ratios(content), log_ratios(white)
    return {
        "address": guess_by_address(before, after),
        "cosine": nearest(plain),
        "centred": nearest(content),
        "whitened": nearest(white),
        "centred, matched": matched(ratios),
        "whitened, matched": matched(of_white),
        "arrival times": matched(timed(np.zeros_like(content), after.times_s, before.times_s)),
        "centred, matched, arrival times": matched(timed(ratios, after.times_s, before.times_s)),
        "whitened, matched, arrival times": matched(timed(of_white, after.times_s, before.times_s)),
    }


def _equal(before: NDArray[Any], after: NDArray[Any]) -> Guess:
    """Returns for each later value the place of the equal earlier one, or -1."""
    places = {value: place for place, value in enumerate(before.tolist())}
    return np.array([places.get(value, -1) for value in after.tolist()], dtype=np.int64)


def _through_gaps(guess: LinkedMessages, truth: Truth) -> float | None:
    """Returns the share of messages of clients seen before whose track was last used by the same client."""
    last: dict[int, int] = {}
    known: set[int] = set()
    right, asked = 0, 0
    for number in sorted(guess.tracks):
        clients = truth.origin[guess.rows[number]].tolist()
        for client, track in zip(clients, guess.tracks[number].tolist(), strict=True):
            # Also after rounds in which the client was away, unlike the pairs above.
            asked += client in known
            right += client in known and last.get(track) == client
        last |= dict(zip(guess.tracks[number].tolist(), clients, strict=True))
        known |= set(clients)
    return right / asked if asked else None


def _result(table: list[dict[str, Any]], through_gaps: float | None) -> Result:
    methods = list(dict.fromkeys(row["method"] for row in table))
    of = {name: [row for row in table if row["method"] == name] for name in methods}
    # All methods are asked about the same messages.
    first = of[methods[0]] if methods else []
    returning, chance = sum(row["returning"] for row in first), sum(row["by_chance"] for row in first)
    if not returning:
        nothing: dict[str, Any] = {
            "returning": 0,
            "chance": None,
            "rates": {},
            "best": None,
            "at_least": None,
            "with_gaps": through_gaps,
        }
        return Result(headline="no client returned in the next round, so nothing was linked", figures=nothing)
    rates = {name: sum(row["right"] for row in rows) / returning for name, rows in of.items()}
    best = max(rates, key=lambda name: rates[name])
    figures = {
        "returning": returning,
        "chance": chance / returning,
        "rates": rates,
        "best": best,
        "at_least": rates[best],
        "with_gaps": through_gaps,
    }
    sentence = f"at least {rates[best]:.0%} of {returning} returns linked by {best}; {chance / returning:.1%} by chance"
    columns = {name: [row[name] for row in table] for name in table[0]}
    return Result(headline=sentence, figures=figures, table=columns, curves=[_curve(of, sentence)])


def _curve(of: Mapping[str, list[dict[str, Any]]], sentence: str) -> Curve:
    lines = {}
    for name, rows in of.items():
        there = [row for row in rows if row["returning"]]
        lines[name] = [row["round"] for row in there], [row["right"] / row["returning"] for row in there]
    there = [row for row in next(iter(of.values())) if row["returning"]]
    lines["chance"] = [row["round"] for row in there], [row["by_chance"] / row["returning"] for row in there]
    return Curve(title="Returning clients linked", x="round", y="share linked", lines=lines, text=sentence)
