"""Brute force in plain NumPy: what an observer learns, from a list of releases, noises, forms and receipts.

Shares no code with the product. Everything is written out in full: each content is a row over contributions and a row
over elementary noises, known noises are struck out, and the pseudo-inverse does the rest.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

Form = dict[object, float]
"""Elementary noises with their factors."""

Members = list[int] | dict[int, float]
"""The releases in an aggregate, with weights if they are not 1."""


@dataclass
class Release:
    """A noisy update: its client, how far it can move, and the noises in it."""

    client: int
    sensitivity: float
    noise: Form


@dataclass
class Round:
    """One round.

    Attributes:
        variances: of the elementary noises.
        known: (observer, noise).
        sums: aggregates, as the releases in them (with weights, a mapping), and what corrections and aggregators added.
        received: (observer, release).
        used: (release, node): what entered a node's model.
        kept: releases that left their client only inside an aggregate.
    """

    releases: list[Release] = field(default_factory=list)
    variances: dict[object, float] = field(default_factory=dict)
    known: set[tuple[int, object]] = field(default_factory=set)
    sums: list[tuple[Members, Form]] = field(default_factory=list)
    received: set[tuple[int, int]] = field(default_factory=set)
    used: set[tuple[int, int]] = field(default_factory=set)
    kept: set[int] = field(default_factory=set)


def weights_of(members: Members) -> dict[int, float]:
    """The factor of each release in an aggregate."""
    return members if isinstance(members, dict) else dict.fromkeys(members, 1.0)


def mu2(one: Round, rows: Iterable[int], team: set[int], target: int, *, sums: bool) -> float:
    """mu^2 about the target for a team that sees these releases, and the aggregates if asked."""
    seen = [({row: 1.0}, dict(one.releases[row].noise)) for row in sorted(set(rows))]
    for members, extra in one.sums if sums else ():
        noise: Form = dict(extra)
        weights = weights_of(members)
        for row, weight in weights.items():
            for name, factor in one.releases[row].noise.items():
                noise[name] = noise.get(name, 0.0) + weight * factor
        seen.append((weights, noise))
    hidden = [name for name in one.variances if not any((node, name) in one.known for node in team)]
    mine = [row for row, release in enumerate(one.releases) if release.client == target]
    if not seen or not mine:
        return 0.0
    noise_matrix = np.array([[n.get(name, 0.0) * math.sqrt(one.variances[name]) for name in hidden] for _, n in seen])
    moves = np.array([[form.get(row, 0.0) * one.releases[row].sensitivity for row in mine] for form, _ in seen])
    covariance = noise_matrix.reshape(len(seen), -1) @ noise_matrix.reshape(len(seen), -1).T
    inverse = np.linalg.pinv(covariance, rcond=1e-11, hermitian=True)
    if np.abs(moves - covariance @ inverse @ moves).max() > 1e-6 * max(np.abs(moves).max(), 1e-300):
        return math.inf
    several = moves.T @ inverse @ moves
    return float(min(np.abs(several).sum(), len(mine) * np.linalg.eigvalsh(several)[-1]))


def closures(rounds: list[Round], clients: int) -> tuple[list[set[tuple[int, int]]], list[set[tuple[int, int]]]]:
    """For each client the releases (round, row) that it has seen by any path, and those behind its model."""
    seen: list[set[tuple[int, int]]] = [set() for _ in range(clients)]
    model: list[set[tuple[int, int]]] = [set() for _ in range(clients)]
    for number, one in enumerate(rounds):
        before = [set(held) for held in model]
        # If a client released twice in a round, a receiver of one release is taken to have received both.
        fresh = [
            {(number, row) for row, one_of in enumerate(one.releases) if one_of.client == u} for u in range(clients)
        ]
        carried = [before[u] | fresh[u] for u in range(clients)]
        for row, node in one.used:
            client = one.releases[row].client
            if node < clients:
                model[node] |= carried[client]
                seen[node] |= carried[client] if node != client else set()
        for node, row in one.received:
            if node < clients:
                seen[node] |= carried[one.releases[row].client]
    return seen, model


def public_mu2(rounds: list[Round], team: set[int], target: int) -> float:
    """Over all rounds, for a team that sees all aggregates and what it received."""
    if target in team:
        return 0.0
    return sum(mu2(one, {row for node, row in one.received if node in team}, team, target, sums=True) for one in rounds)


def path_mu2(rounds: list[Round], held: set[tuple[int, int]], team: set[int], target: int) -> float:
    """Over all rounds, for a team that holds these releases (round, row)."""
    if target in team:
        return 0.0
    return sum(
        mu2(one, {row for when, row in held if when == number}, team, target, sums=False)
        for number, one in enumerate(rounds)
    )
