"""Resolves the clients a privacy section names: budget classes and colluders."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nodes.faults.targets import parse_nodes
from nodes.protocols import roles_of
from p2p.config.population_shares import place_of, share_problem
from p2p.random_streams import draws
from privacy.settings import Privacy
from scenarios.node_numbers import SERVER

Finding = tuple[tuple[str | int, ...], Any, str]
_CLASSES = ("privacy", "budget", "classes")


def budget_epsilons(privacy: Privacy, clients: int, seed: int) -> NDArray[np.float64]:
    """Returns the epsilon each client may spend: its class's, or the section's."""
    epsilons = np.array([*(group.epsilon for group in privacy.budget.classes), privacy.resolved_budget().epsilon])
    return epsilons[budget_classes(privacy, clients, seed)]


def budget_classes(privacy: Privacy, clients: int, seed: int) -> NDArray[np.int64]:
    """Returns each client's index into `budget.classes`; one past the last for clients in no class."""
    groups = privacy.budget.classes
    shares = [group.share for group in groups if group.share is not None]
    # One draw per client, independent of their number: adding clients moves none to another class.
    # Shares and named clients are never mixed (see _class_findings).
    if shares:
        return place_of(draws(seed, "budget", np.arange(clients)), shares)
    classes = np.full(clients, len(groups), dtype=np.int64)
    for index, group in enumerate(groups):
        if group.clients is not None:
            classes[list(parse_nodes(group.clients, clients, ()).nodes)] = index
    return classes


def colluding_nodes(privacy: Privacy, clients: int, seed: int) -> tuple[int, ...]:
    """Returns the nodes that pool their views; a fraction means that many randomly drawn clients, at least one."""
    named = privacy.colluders
    if named is None or isinstance(named, tuple):
        return tuple(sorted(set(named or ())))
    # A positive fraction means at least one colluder; rounding must not silently disable the attack.
    count = min(clients, max(1, round(named * clients))) if named > 0 else 0
    # Clients are ranked by one draw each, so a larger fraction contains every smaller one.
    order = np.argsort(draws(seed, "colluder", np.arange(clients)), kind="stable")
    return tuple(sorted(order[:count].tolist()))


def privacy_findings(privacy: Any, clients: int, protocol: Any) -> Iterator[Finding]:
    """Yields the problems with the clients a privacy section names, as (path, value, rule)."""
    if privacy is None:
        return
    yield from _class_findings(privacy, clients)
    for index, stage in enumerate(privacy.stages):
        norm = getattr(stage, "norm", None)
        if isinstance(norm, tuple) and len(norm) != clients:
            rule = f"has {len(norm)} numbers for {clients} clients; give one for each, or one for all"
            yield ("update", index, "norm"), list(norm[:3]), rule
    server = clients + SERVER if "server" in roles_of(protocol) else None
    known = f"clients 0 to {clients - 1}" + ("" if server is None else f" and the server, {server}")
    for index, node in enumerate(privacy.colluders if isinstance(privacy.colluders, tuple) else ()):
        if not 0 <= node < clients and node != server:
            yield ("privacy", "colluders", index), node, f"there are {known}; name some of them"


def _class_findings(privacy: Any, clients: int) -> Iterator[Finding]:
    groups = privacy.budget.classes
    shares = [group.share for group in groups if group.share is not None]
    if shares and len(shares) < len(groups):
        # The remaining checks would only repeat this problem in other words.
        yield _CLASSES, f"{len(groups)} classes", "some have a share and some name clients; use one way for all"
        return
    if shares and share_problem("", shares):
        yield _CLASSES, round(sum(shares), 6), "the shares must sum to 1; change them"
    taken: dict[int, int] = {}
    for index, group in enumerate(groups):
        if group.clients is not None:
            yield from _named_findings(group.clients, index, clients, taken)
    if groups and not shares and len(taken) < clients and _no_epsilon(privacy):
        rule = "these clients are in no class; name them, or give `budget.epsilon` for the rest"
        first = next(node for node in range(clients) if node not in taken)
        yield _CLASSES, f"{first}, ...", rule


def _named_findings(who: Any, index: int, clients: int, taken: dict[int, int]) -> Iterator[Finding]:
    named = parse_nodes(who, clients, ())
    for problem in named.problems:
        # parse_nodes words its problems for the `who` of a fault; the path here is another one.
        value, _, rule = problem.removeprefix("who = ").partition(": ")
        yield (*_CLASSES, index, "clients"), value, rule
    twice = [node for node in named.nodes if node in taken]
    if twice:
        rule = f"client {twice[0]} is in class {taken[twice[0]]} already; name it once"
        yield (*_CLASSES, index, "clients"), who, rule
    taken.update(dict.fromkeys(named.nodes, index))


def _no_epsilon(privacy: Any) -> bool:
    return privacy.budget.epsilon is None and privacy.calibration is None
