"""Protocols in which all train from aggregates: every observer is given every aggregate that any node held."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from privacy.accounting.content_log import Floats, RoundContents
from privacy.accounting.gaussian_view import joint_mu2, sums_mu2
from privacy.accounting.setting import Learned, Setting


class PublicSums:
    """Every observer sees every aggregate that any node held, and what it received itself."""

    label = ""

    def __init__(self, setting: Setting) -> None:
        self._setting = setting
        count = setting.clients if setting.followed else 0
        self._peers = np.zeros((count, count))
        self._coalition, self._server, self._model = np.zeros((3, setting.clients))
        # Whatever the run's length turns out to be, the rounds' tails together stay within the setting's.
        self._tail = setting.tail / max(setting.rounds, 1)

    def add(self, contents: RoundContents) -> None:
        """Adds what each observer learns in a round."""
        setting = self._setting
        outsider = self._joint(contents, ())
        self._model += outsider
        if setting.server is not None:
            self._server += self._joint(contents, (setting.server,))
        if setting.colluders:
            self._coalition += self._joint(contents, setting.colluders)
        if not setting.followed:
            return
        receivers = np.unique(contents.receipts[:, 0])
        quiet = np.setdiff1d(np.arange(setting.clients), receivers)
        for node in receivers[(receivers >= 0) & (receivers < setting.clients)].tolist():
            self._peers[node] += self._joint(contents, (node,))
        known = [] if contents.shares is None else [contents.shares.known[:, 0]]
        # An aggregator knows the noise that it added, also where it released and received nothing itself.
        known += [] if contents.aggregators is None else [contents.aggregators]
        inside = np.isin(quiet, np.concatenate([contents.clients, *known]))
        # Peers that had no part in the round know no noise of it: all of them see what the outsider sees.
        self._peers[quiet[~inside]] += outsider
        if inside.any():
            teams = [(node,) for node in quiet[inside].tolist()]
            self._peers[quiet[inside]] += sums_mu2(contents, teams, setting.clients, self._tail)

    def _joint(self, contents: RoundContents, team: tuple[int, ...]) -> Floats:
        rows = contents.receipts[np.isin(contents.receipts[:, 0], team), 1]
        if not len(rows):
            return np.asarray(sums_mu2(contents, [team], self._setting.clients, self._tail)[0])
        return joint_mu2(contents, rows, team, self._setting.clients, sums=True)

    def learned(self, collected: Sequence[int] | None) -> Learned:
        """Returns the totals; `collected` does not matter, since all models are functions of the aggregates."""
        peers = self._peers.copy()
        np.fill_diagonal(peers, 0.0)
        return Learned(peers, self._coalition, self._server, self._model)
