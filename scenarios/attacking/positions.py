"""What is known of each observer before a run: its position, and which attacks it cannot carry out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

from nodes.adversaries.observers import Observer
from nodes.protocols import PROTOCOLS
from privacy.attacks.observations import Position
from scenarios.attacking.mixing_matrices import what_is_assumed, why_unknown

_PUBLIC = (
    "model",
    "training",
    "objective",
    "protocol",
    "anonymity",
    "privacy",
    "noise_shares",
    "reserved",
    "clients",
    "rounds",
    "learning",
)


def position_of(observer: Observer, parts: Mapping[str, Any], seed: int) -> Position:
    """Returns an observer's position in a scenario, given the scenario's parts by name."""
    anonymity, learns = parts["anonymity"], parts["learning"] != "none"
    can_read = observer.kind != "eavesdropper" or anonymity.sealed is False
    has_peers = observer.kind != "proxy" or getattr(observer, "peers", None) is not None
    knows = {field.name: getattr(observer.knows, field.name) for field in fields(observer.knows)}
    return Position(
        name=observer.called,
        kind=observer.kind,
        nodes=observer.nodes(parts["clients"], seed),
        vectors=learns and can_read and has_peers,
        snapshots=learns and (observer.keep.snapshots or observer.kind == "model"),
        knows=knows,
        public=public_parts(parts),
    )


def public_parts(parts: Mapping[str, Any]) -> dict[str, Any]:
    """Returns what every adversary knows of a scenario; never the seed."""
    form = parts["data"].form() if hasattr(parts["data"], "form") else None
    shape, classes = (None, None) if form is None else form
    kinds = {strategy: name for name, strategy in PROTOCOLS.items()}
    return {name: parts[name] for name in _PUBLIC} | {
        "data_shape": shape,
        "classes": classes,
        "pixels": parts["data"].pixel_range() if hasattr(parts["data"], "pixel_range") else None,
        "protocol_kind": kinds.get(type(parts["protocol"]), "plug-in"),
        "mixing_unknown": why_unknown(parts),
        "mixing_assumes": what_is_assumed(parts),
    }


def chosen(attack: Any, positions: Sequence[Position]) -> tuple[list[Position], list[str]]:
    """Returns the positions that an attack is carried out from, and why there are none.

    A named observer must be able to; without a name all that can are taken.
    """
    if not positions:
        return [], ["no adversary watches; add `adversaries: [{kind: peer}]` and run again"]
    names = [position.name for position in positions]
    if attack.by and attack.by not in names:
        return [], [f"by = {attack.by}: no such observer; there are {', '.join(names)}"]
    asked = [position for position in positions if not attack.by or position.name == attack.by]
    why = {position.name: attack.unfit(position) for position in asked}
    able = [position for position in asked if not why[position.name]]
    reasons: dict[str, list[str]] = {}
    for name, reason in why.items():
        reasons.setdefault(reason, []).append(name)
    return able, [] if able else [f"{', '.join(names)}: {reason}" for reason, names in reasons.items()]
