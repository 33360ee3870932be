"""Protocols in which releases travel on inside models: each observer is given all that reached it by any path."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from privacy.accounting.ancestry import Ancestry, SetBits
from privacy.accounting.content_log import Floats, Ids, RoundContents
from privacy.accounting.gaussian_view import joint_mu2
from privacy.accounting.setting import Learned, Setting

Bools = NDArray[np.bool_]
Teams = Sequence[tuple[int, ...]]
_MOST_KEPT = 10_000_000
"""Numbers of earlier factorisations that are kept; they are computed again when asked for after that."""


class Paths:
    """Each observer sees every release that reached it by any path, each as a row of its own, jointly per round.

    Totals grow with what is new: a long run costs no more a round than a short one, once old releases are everywhere.
    """

    label = "training is not linear, so a release counts in full for everyone it reached by any path"

    def __init__(self, setting: Setting) -> None:
        self._setting = setting
        count = setting.clients if setting.followed else 0
        self._ancestry = Ancestry(count)
        self._rounds: list[RoundContents] = []
        self._peers, self._models = np.zeros((2, count, count))
        self._coalition = np.zeros(setting.clients)
        self._teams = [(node,) for node in range(count)]
        self._known: dict[tuple[int, bytes, tuple[int, ...]], Floats] = {}

    def add(self, contents: RoundContents) -> None:
        """Adds a round to the ancestry of everything, and what it brings to each observer."""
        if not self._setting.followed:
            return
        self._rounds.append(contents)
        changed = self._ancestry.add(contents)
        team = [node for node in self._setting.colluders if node < self._setting.clients]
        self._learn_alone([place for place in changed if self._rounds[place].shares is None], team)
        for place in changed:
            if self._rounds[place].shares is None:
                continue
            now, before = self._ancestry.held(place), self._ancestry.held_before(place)
            self._learn_jointly(self._peers, place, now.seen, before.seen, self._teams)
            # An outsider who gets a client's model knows no noise, not even that client's own: empty teams.
            self._learn_jointly(self._models, place, now.model, before.model, [()] * len(self._teams))
            if self._setting.colluders:
                ours, ours_before = (_together(held.seen, team) for held in (now, before))
                self._learn_jointly(self._coalition[None], place, ours, ours_before, [self._setting.colluders])

    def learned(self, collected: Sequence[int] | None) -> Learned:
        """Returns the totals; the outsider follows the worst client's model, or the models collected."""
        count, peers = self._setting.clients, self._peers.copy()
        np.fill_diagonal(peers, 0.0)
        # Whose models are collected is known only in the end, so these sums cannot be kept from round to round.
        model = self._models.max(axis=0, initial=0.0) if collected is None else np.zeros(count)
        for place in range(len(self._rounds) if collected is not None else 0):
            behind = _together(self._ancestry.held(place).model, list(collected or ()))
            model = model + self._about(place, behind, [()])[0]
        return Learned(peers, self._coalition, np.zeros(count), model)

    def _learn_alone(self, places: Sequence[int], team: Sequence[int]) -> None:
        """Adds what new releases of these rounds tell: the noise of each is independent, so it stands alone."""
        rounds = {place: self._rounds[place] for place in places}
        clients = self._ancestry.by_bit({place: contents.clients for place, contents in rounds.items()}, np.int64)
        mu2 = self._ancestry.by_bit({place: contents.mu2() for place, contents in rounds.items()}, np.float64)
        # What a peer knows of itself is counted here, and left out of what it has learned.
        _count(self._peers, self._ancestry.fresh_seen(places), clients, mu2)
        # An outsider who gets a client's model knows no noise, not even that client's own.
        _count(self._models, self._ancestry.fresh_in_models(places), clients, mu2)
        if self._setting.colluders:
            # About themselves colluders learn nothing.
            foreign = np.where(np.isin(clients, self._setting.colluders), 0.0, mu2)
            _count(self._coalition[None], self._ancestry.fresh_to(team, places), clients, foreign)

    def _learn_jointly(self, totals: Floats, place: int, now: Bools, before: Bools, teams: Teams) -> None:
        """Adds what the releases of one round with correlated noise tell now and did not tell before."""
        # The new releases may also uncover old ones, so the whole is computed twice and subtracted.
        # What was infinite before stays so in the totals; infinity less infinity would be NaN.
        old = self._about(place, before, teams)
        totals += np.where(np.isinf(old), 0.0, self._about(place, now, teams) - np.where(np.isinf(old), 0.0, old))

    def _about(self, place: int, seen: Bools, teams: Teams) -> Floats:
        """Returns [team, client]: all that these releases of one round tell, jointly."""
        contents, count = self._rounds[place], self._setting.clients
        # Factorised once for each set of releases and each team that matters.
        found: list[Floats] = []
        known = [] if contents.shares is None else contents.shares.known[:, 0].tolist()
        # Nodes outside the round know none of its noise: as observers they are all the same.
        part = {*contents.clients.tolist(), *known}
        keys = [
            (place, np.packbits(row).tobytes(), tuple(node for node in team if node in part))
            for row, team in zip(seen, teams, strict=True)
        ]
        for key, row in zip(keys, seen, strict=True):
            if key not in self._known:
                if len(self._known) * count > _MOST_KEPT:
                    self._known.clear()
                self._known[key] = joint_mu2(contents, np.flatnonzero(row), key[2], count, sums=False)
            found.append(self._known[key])
        return np.array(found).reshape(-1, count)


def _count(totals: Floats, fresh: Iterable[SetBits], clients: Ids, mu2: Floats) -> None:
    """Adds the mu^2 of new releases to totals [team, client]; clients and mu^2 are those of each bit."""
    for new in fresh:
        # Flat, which numpy adds fastest. Pairs of team and client may repeat: a client may have released twice.
        np.add.at(totals.reshape(-1), new.rows * totals.shape[1] + clients[new.bits], mu2[new.bits])


def _together(held: Bools, nodes: list[int]) -> Bools:
    """Returns one row: what these nodes hold together."""
    return np.asarray(held[nodes].any(axis=0, keepdims=True))
