"""Text alternatives of the charts, for screen readers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from p2p.log import records
from p2p.log.log import Log
from scenarios.metrics.headline.number_format import accuracy_text, bytes_text, count_text, epsilon_text, seconds_text


def accuracy_alternative(rounds: Mapping[str, Any], against: str) -> str:
    """Describes the first, best and last mean accuracy and when they occurred."""
    known = [(place, mean) for place, mean in enumerate(rounds["accuracy_after_mean"]) if mean is not None]
    if not known:
        return "No accuracy was measured."
    at = _place(rounds, against)
    (first, low), (last, high), (best, most) = known[0], known[-1], max(known, key=lambda pair: pair[1])
    return (
        f"Mean accuracy is {accuracy_text(low)} {at(first)}, {accuracy_text(most)} at best {at(best)}, "
        f"and {accuracy_text(high)} {at(last)}."
    )


def _place(rounds: Mapping[str, Any], against: str) -> Any:
    if against == "round":
        return lambda place: f"in round {rounds['round'][place]}"
    return lambda place: f"after {seconds_text(rounds['end_s'][place])}"


def bytes_alternative(rounds: Mapping[str, Any]) -> str:
    """Describes the bytes by kind, largest first."""
    sums = {kind: sum(amounts) for kind, amounts in rounds["bytes"].items()}
    kinds = [
        f"{kind} {bytes_text(amount)}" for kind, amount in sorted(sums.items(), key=lambda item: -item[1]) if amount
    ]
    return f"Bytes of the rounds by kind: {', '.join(kinds)}." if kinds else "No bytes were sent."


def node_bytes_alternative(traffic: Mapping[str, Any]) -> str:
    """Describes the three nodes with the most bytes."""
    bars = traffic["bars"]
    total = [sent + received for sent, received in zip(bars["sent"], bars["received"], strict=True)]
    most = sorted(range(len(total)), key=lambda place: -total[place])[:3]
    busiest = ", ".join(f"{bars['name'][place]} {bytes_text(total[place])}" for place in most)
    start = "Histogram of bytes per client. " if "histogram" in traffic else ""
    return f"{start}Most bytes sent and received: {busiest}." if busiest else f"{start}No node sent anything."


def gap_alternative(rounds: Mapping[str, Any]) -> str:
    """Describes the range of the spectral gap."""
    known = [gap for gap in rounds["spectral_gap"] if gap is not None]
    if not known:
        return "No round has a known spectral gap."
    return f"The spectral gap lies between {min(known):.3f} and {max(known):.3f} over {len(known)} rounds."


def dropout_alternative(summary: Mapping[str, Any], log: Log) -> str:
    """Describes the totals and the round with the most dropouts."""
    dropped = log.dropouts["round"][log.dropouts["what"] == records.WHAT["dropout"]]
    totals = ", ".join(
        f"{count_text((summary.get(key) or {}).get('total'))} {name}"
        for key, name in (("dropouts", "dropouts"), ("missing", "missing updates"), ("absences", "absences"))
    )
    # np.argmax has no answer on an empty array.
    if not len(dropped):
        return f"{totals}."
    numbers, counts = np.unique(dropped, return_counts=True)
    return f"{totals}; most dropouts ({counts.max()}) in round {numbers[np.argmax(counts)]}."


def views_alternative(privacy: Mapping[str, Any]) -> str:
    """Describes the published epsilon and that of every view."""
    views = [f"{view} {epsilon_text(value)}" for view, value in privacy["views"].items()]
    published = "none" if privacy["published"] is None else epsilon_text(privacy["published"])
    return f"Published epsilon {published}; rigorous: {', '.join(views) or 'none'}."


def spent_alternative(name: str, privacy: Mapping[str, Any]) -> str:
    """Describes the epsilon spent after the last round."""
    spent = privacy["spent"]
    last: Sequence[Any] = [spent[name][what][-1] for what in ("min", "median", "max")]
    low, middle, high = (epsilon_text(value) for value in last)
    return f"After round {spent['round'][-1]} the clients have spent {low} to {high}, median {middle} ({name})."


def time_alternative(rounds: Mapping[str, Any]) -> str:
    """Describes the shortest and longest round."""
    lengths = [end - start for start, end in zip(rounds["start_s"], rounds["end_s"], strict=True)]
    if not lengths:
        return "No whole round was held."
    longest = max(range(len(lengths)), key=lengths.__getitem__)
    span = f"{seconds_text(min(lengths))} to {seconds_text(lengths[longest])}"
    return f"Rounds take {span}; the longest is round {rounds['round'][longest]}."


def load_alternative(load: Mapping[str, Any]) -> str:
    """Describes the busiest client of all rounds."""
    known = [
        (most, who, number) for most, who, number in zip(load["most"], load["who"], load["round"], strict=True) if most
    ]
    if not known:
        return "No client sent anything in a round."
    most, who, number = max(known)
    return f"The busiest client of a round is {who} with {bytes_text(most)} in round {number}."
