"""Solves for values of clients that an observer of gossip has not heard: the work of the attack `non_neighbours`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from privacy.attacks.attack import Curve, Result
from privacy.attacks.exposure import Exposure, Matrix, averaging_knowledge, exposure, training_knowledge
from privacy.attacks.observations import Truth, View

Rows = NDArray[np.int64]
_CASES = {"averaging": averaging_knowledge, "training": training_knowledge}


class Heard(NamedTuple):
    """What the observer brings along.

    Attributes:
        rows: by round, the rows of models that it received
        unknown: why it does not know the mixing matrix; empty if it does
        assumes: what knowing it rests on, beside the graphs; empty if nothing
    """

    own: tuple[int, ...]
    rows: dict[int, Rows]
    unknown: str
    assumes: str


def what_was_heard(view: View) -> Heard:
    """Returns which messages make the knowledge matrix, and whether the observer knows its entries."""
    rows = {number: view.rows.received("update", number) for number in view.rows.rounds("update")}
    public = view.position.public
    return Heard(view.position.nodes, rows, str(public["mixing_unknown"]), str(public["mixing_assumes"]))


def score(guess: Heard, truth: Truth) -> Result:
    """Returns who is exposed after each round, with the mixing that really took place."""
    rounds, as_planned = truth.mixing()
    # Planned weights that did not take place: the observer's matrix would be wrong without its noticing.
    unknown = guess.unknown or ("" if as_planned else "it does not see which messages between others were lost")
    nothing = np.zeros(0, dtype=np.int64)
    heard = [_senders(truth.origin[guess.rows.get(number, nothing)]) for number in range(1, len(rounds) + 1)]
    own, near = list(guess.own), _senders(np.concatenate([nothing, *heard]))
    beyond = np.ones(len(rounds[0].weights), dtype=np.bool_)
    beyond[own], beyond[near] = False, False
    found = {name: dict(_over_rounds(list(knowledge(rounds, heard, own)))) for name, knowledge in _CASES.items()}
    return _result(found, beyond, unknown, "" if unknown else guess.assumes)


def _senders(origin: Rows) -> Rows:
    """Returns distinct clients; an intruder is none."""
    distinct: Rows = np.unique(origin[origin >= 0])
    return distinct


def _over_rounds(parts: Sequence[Matrix]) -> Iterator[tuple[int, Exposure]]:
    """Yields the exposure after some rounds: the first ones, then about eight in each doubling, and the last."""
    for number in range(1, len(parts) + 1):
        # A decomposition per round would take time with the square of a long run; a curve needs no more points.
        step = max(1, 2 ** (number.bit_length() - 4))
        if number % step == 0 or number == len(parts):
            yield number, exposure(np.concatenate(parts[:number]))


def _result(found: dict[str, dict[int, Exposure]], beyond: NDArray[np.bool_], unknown: str, assumes: str) -> Result:
    cases = {name: _figures(list(by_round.values())[-1], beyond) for name, by_round in found.items()}
    others = int(beyond.sum())
    known = f" if it knew the mixing matrix ({unknown})" if unknown else f"; assumes that {assumes}" if assumes else ""
    sentence = (
        f"{cases['averaging']['exposed']} of {others} non-neighbours exposed by averaging, "
        f"{cases['training']['exposed']} by training with equal steps{known}"
    )
    figures = {
        "non_neighbours": others,
        "mixing_known": not unknown,
        "mixing_unknown": unknown,
        "mixing_assumes": assumes,
        **cases,
    }
    last = {name: list(by_round.values())[-1] for name, by_round in found.items()}
    table: dict[str, Any] = {"client": np.arange(len(beyond)), "non_neighbour": beyond}
    for name, one in last.items():
        table |= {f"exposed_by_{name}": one.exposed, f"noise_factor_{name}": one.noise_factor}
    lines = {
        name: (list(by_round), [float((one.exposed & beyond).sum()) for one in by_round.values()])
        for name, by_round in found.items()
    }
    curve = Curve(title="Non-neighbours exposed", x="rounds observed", y="clients", lines=lines, text=sentence)
    return Result(headline=sentence, figures=figures, table=table, curves=[curve])


def _figures(last: Exposure, beyond: NDArray[np.bool_]) -> dict[str, Any]:
    exposed = last.exposed & beyond
    factors = last.noise_factor[exposed]
    median = float(np.median(factors)) if len(factors) else None
    return {"exposed": int(exposed.sum()), "median_noise_factor": median}
