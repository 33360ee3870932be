"""The accountant: adds up over rounds what each view learns about each client, and turns it into epsilon.

One object serves the running figures and the final ones: rounds are added in order, and `views` may be asked at any
time. Rounds add up as mu^2 (adaptive Gaussian composition) because each view contains all that later contributions
depend on: every aggregate where aggregates are public, the whole ancestry of what was received where they are not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from privacy.accounting.ancestry import Ancestry
from privacy.accounting.content_log import Floats, RoundContents
from privacy.accounting.figures import Figure, infinite, proven
from privacy.accounting.gaussian import epsilons_of
from privacy.accounting.gaussian_view import by_client, joint_mu2, sums_mu2

Spread = Literal["to_all", "by_path"]
"""Where what a client sends may end up: in aggregates that everyone sees, or wherever a path leads."""

RECEIVERS = -1
"""An observer that stands for all receivers of updates together: it sees every release, and all that was opened."""
_MOST_PAIRS = 2000**2
_MOST_CORRELATED = 1500
_PATHS = "training is not linear, so a release counts in full for everyone it reached by any path"
_TOO_MANY_PEERS = "the run is too large to follow each peer, so the local view stands for them"
_TOO_CORRELATED = f"more than {_MOST_CORRELATED:,} updates of a round have noise in common"
_CONTRADICTION = "the accountant contradicts itself here; please report this run"
_SHARED_NOISE = "the run is too large to follow what each peer knows of the noise shares"
_FACTORS = "random factors on shares are counted with a tail bound"
_SERVER_BY_PATH = "a server under this protocol is taken to receive every update"
_SLACK = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class Views:
    """Rigorous figures about the worst-off client, at one delta.

    Attributes:
        local: against all receivers of updates together.
        receiver: against the best informed single node that gets updates, the server included.
        peer_worst: against the best informed single client.
        peer_median: against the median client.
        coalition: against the colluders together; None if none were named.
        model: against an outsider who sees only models.
    """

    local: Figure
    receiver: Figure
    peer_worst: Figure
    peer_median: Figure
    coalition: Figure | None
    model: Figure

    def unproved(self, because: str) -> Views:
        """Returns infinite figures with this reason."""
        nothing = infinite(because)
        coalition = None if self.coalition is None else nothing
        return Views(
            local=nothing, receiver=nothing, peer_worst=nothing, peer_median=nothing, coalition=coalition, model=nothing
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What the accountant knows before the first round.

    Attributes:
        clients: true ids 0..clients-1.
        spread: how contents spread under the protocol.
        delta: failure probability of all figures.
        rounds: the most rounds that the run may have.
        colluders: nodes that pool what they see; a colluding server is named by its node id.
        server: the node that receives updates and is no client; None if there is none.
        random_factors: whether shares are taken with random factors (tau > 0).
        if_infinite: what to say where the noise does not suffice.
    """

    clients: int
    spread: Spread
    delta: float
    rounds: int
    colluders: tuple[int, ...] = ()
    server: int | None = None
    random_factors: bool = False
    if_infinite: str = "an update was left without noise that its receiver does not know"

    @property
    def followed(self) -> bool:
        """Whether every pair of clients is followed; larger runs get the local view for their peers."""
        return self.clients**2 <= _MOST_PAIRS

    @property
    def tail(self) -> float:
        """The part of delta that covers too small factors on shares, over all rounds."""
        return self.delta / 2.0 if self.random_factors and self.spread == "to_all" else 0.0


class Accountant:
    """Adds rounds and tells the views.

    Guarantees:
        every figure is proved for the contents added (docs/privacy.md): exact, a bound, or infinite with a reason.
        Adding receipts never lowers a figure; more noise on the same contents never raises one.
    """

    def __init__(self, setting: Setting) -> None:
        self.setting = setting
        self.worst_round_mu2 = 0.0
        """What all receivers together learn about one client in one round, at most."""
        self._local = np.zeros(setting.clients)
        self._why_not = ""
        self._spread: _PublicSums | _Paths = _PublicSums(setting) if setting.spread == "to_all" else _Paths(setting)

    def add(self, contents: RoundContents) -> None:
        """Adds one round."""
        if self._cannot_add(contents):
            return
        one = _all_receivers(contents, self.setting.clients)
        self._local += one
        self.worst_round_mu2 = max(self.worst_round_mu2, float(one.max(initial=0.0)))
        self._spread.add(contents)

    def _cannot_add(self, contents: RoundContents) -> bool:
        """Remembers why nothing is proved from this round on, if that is so."""
        if contents.uncharged:
            self._why_not = self._why_not or "an update arrived that no ledger was charged for"
        if not np.isfinite(contents.sensitivity).all():
            self._why_not = self._why_not or "updates are not clipped"
        if contents.shares is not None and not self.setting.followed:
            self._why_not = self._why_not or _SHARED_NOISE
        if contents.shares is not None and len(contents.clients) > _MOST_CORRELATED:
            self._why_not = self._why_not or _TOO_CORRELATED
        return bool(self._why_not)

    def views(self, collected: Sequence[int] | None = None) -> Views:
        """Returns the figures of all rounds added so far.

        Args:
            collected: in gossip, the clients whose models the outsider sees; None for the worst single client's.
        """
        setting = self.setting
        if self._why_not:
            return _all_alike(infinite(self._why_not), bool(setting.colluders))
        local = self._figure(self._local.max(initial=0.0), setting.delta)
        found = self._spread.learned(collected)
        delta, bound = setting.delta - setting.tail, _FACTORS if setting.tail else self._spread.label
        together = self._figure(found.coalition.max(initial=0.0), delta, bound) if setting.colluders else None
        views = replace(
            _all_alike(local.at_most(_TOO_MANY_PEERS), bool(setting.colluders)),
            local=local,
            model=self._figure(found.model.max(initial=0.0), delta, bound),
            coalition=together,
        )
        if setting.followed:
            epsilons = epsilons_of(np.sqrt(found.peers.max(axis=1, initial=0.0)), delta)
            views = replace(
                views,
                peer_worst=self._labelled(float(epsilons.max(initial=0.0)), bound),
                peer_median=self._labelled(float(np.median(epsilons)) if len(epsilons) else 0.0, bound),
            )
        elif setting.spread == "by_path":
            views = replace(views, model=views.peer_worst, coalition=together and views.peer_worst)
        if setting.server is not None:
            server = self._server(found, local)
            views = replace(views, receiver=max(server, views.peer_worst, key=lambda figure: figure.epsilon))
        else:
            views = replace(views, receiver=views.peer_worst)
        return views.unproved(_CONTRADICTION) if setting.followed and self._contradicts(found) else views

    def _server(self, found: Learned, local: Figure) -> Figure:
        setting = self.setting
        if setting.spread == "by_path":
            return local.at_most(_SERVER_BY_PATH)
        return self._figure(
            found.server.max(initial=0.0), setting.delta - setting.tail, _FACTORS if setting.tail else ""
        )

    def _figure(self, mu2: float, delta: float, bound: str = "") -> Figure:
        return self._labelled(float(epsilons_of(np.sqrt([mu2]), delta)[0]), bound)

    def _labelled(self, epsilon: float, bound: str) -> Figure:
        return proven(epsilon, self.setting.if_infinite, bound)

    def _contradicts(self, found: Learned) -> bool:
        """Returns whether something is violated that holds in every run: peer >= model, coalition >= its members."""
        count = self.setting.clients
        team = [node for node in self.setting.colluders if node < count]
        outside = np.setdiff1d(np.arange(count), team)
        slack = 1.0 + _SLACK
        broken = bool((found.peers[team][:, outside] > found.coalition[outside] * slack).any())
        if self.setting.spread == "to_all":
            below = found.model > found.peers * slack
            np.fill_diagonal(below, False)
            broken |= bool(below.any())
        return broken


@dataclass(frozen=True, slots=True)
class Learned:
    """mu^2 about each client so far: of each peer (a row), of coalition and server, and of the outsider."""

    peers: Floats
    coalition: Floats
    server: Floats
    model: Floats


class _PublicSums:
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


class _Paths:
    """Each observer sees every release that reached it by any path, each as a row of its own, jointly per round."""

    label = _PATHS

    def __init__(self, setting: Setting) -> None:
        self._setting = setting
        self._ancestry = Ancestry(setting.clients if setting.followed else 0)
        self._rounds: list[RoundContents] = []
        self._memory: dict[tuple[int, bytes, tuple[int, ...]], Floats] = {}

    def add(self, contents: RoundContents) -> None:
        """Adds a round to the ancestry of everything."""
        if self._setting.followed:
            self._ancestry.add(contents)
            self._rounds.append(contents)

    def learned(self, collected: Sequence[int] | None) -> Learned:
        """Returns the totals: an old release may reach an observer in any later round."""
        setting, count = self._setting, self._setting.clients
        peers, coalition = np.zeros((count, count)) if setting.followed else np.zeros((0, 0)), np.zeros(count)
        models = np.zeros((count if collected is None else 1, count))
        team = [node for node in setting.colluders if node < count]
        for place in range(len(self._rounds)):
            seen, behind = self._ancestry.seen(place), self._ancestry.behind_models(place)
            if collected is not None:
                behind = np.asarray(behind[list(collected)].any(axis=0, keepdims=True))
            peers += self._about(place, seen, [(node,) for node in range(count)])
            models += self._about(place, behind, [()] * len(behind))
            if setting.colluders:
                together = np.asarray(seen[team].any(axis=0, keepdims=True))
                coalition += self._about(place, together, [setting.colluders])[0]
        np.fill_diagonal(peers, 0.0)
        return Learned(peers, coalition, np.zeros(count), models.max(axis=0, initial=0.0))

    def _about(self, place: int, seen: NDArray[np.bool_], teams: Sequence[tuple[int, ...]]) -> Floats:
        """Returns [team, client] for one round; with independent noise each release stands alone."""
        contents, count = self._rounds[place], self._setting.clients
        if contents.shares is None:
            about = by_client(np.where(seen, contents.mu2(), 0.0), contents, count)
            for row, team in enumerate(teams):
                about[row, [node for node in team if node < count]] = 0.0
            return about
        # Factorised only for new sets of releases, and once for all who had no part in the round and saw the same.
        part = {*contents.clients.tolist(), *contents.shares.known[:, 0].tolist()}
        teams = [tuple(node for node in team if node in part) for team in teams]
        keys = [(place, np.packbits(row).tobytes(), team) for row, team in zip(seen, teams, strict=True)]
        for key, row in zip(keys, seen, strict=True):
            if key not in self._memory:
                self._memory[key] = joint_mu2(contents, np.flatnonzero(row), key[2], count, sums=False)
        return np.array([self._memory[key] for key in keys]).reshape(-1, count)


def _all_receivers(contents: RoundContents, count: int) -> Floats:
    """Returns mu^2 for whoever received the clients' own updates; one that was not sent is seen in the aggregate."""
    sent = np.setdiff1d(np.arange(len(contents.clients)), contents.inside)
    found = joint_mu2(contents, sent, {RECEIVERS}, count, sums=False)
    if len(contents.inside):
        clients = contents.clients[contents.inside]
        found[clients] += sums_mu2(contents, [()], count)[0, clients]
    return found


def _all_alike(figure: Figure, coalition: bool) -> Views:
    together = figure if coalition else None
    return Views(local=figure, receiver=figure, peer_worst=figure, peer_median=figure, coalition=together, model=figure)
