"""The accountant: adds up over rounds what each view learns about each client, and turns it into epsilon.

One object serves the running figures and the final ones: rounds are added in order, and `views` may be asked at any
time. Rounds add up as mu^2 (adaptive Gaussian composition) because each view contains all that later contributions
depend on: every aggregate where aggregates are public, the whole ancestry of what was received where they are not.
Releases with other noise are counted by the same code, in full for every view that they reach, and their privacy
losses are composed (loss_events.py).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace

import numpy as np

from privacy.accounting.content_log import Floats, RoundContents
from privacy.accounting.curves.gaussian import epsilons_of
from privacy.accounting.curves.loss_events import LossEvent, composed_epsilon
from privacy.accounting.curves.zcdp import zcdp_epsilon
from privacy.accounting.figures import EpsilonFigure, infinite, proven
from privacy.accounting.gaussian_view import joint_mu2, sums_mu2
from privacy.accounting.paths import Paths
from privacy.accounting.public_sums import PublicSums
from privacy.accounting.setting import Learned, Setting

RECEIVERS = -1
"""An observer that stands for all receivers of updates together: it sees every release, and all that was opened."""
# Correlated updates are factorised together, which takes time with the cube of their number.
_MOST_CORRELATED = 1500
_TOO_MANY_PEERS = "the run is too large to follow each peer, so the local view stands for them"
_TOO_CORRELATED = f"more than {_MOST_CORRELATED:,} updates of a round have noise in common"
_CONTRADICTION = "the accountant contradicts itself here; please report this run"
_SHARED_NOISE = "the run is too large to follow what each peer knows of the noise shares"
_ADAPTIVE_SHARES = "updates with common noise may depend on each other within a round under this protocol"
_FACTORS = "random factors on shares are counted with a tail bound"
_SERVER_BY_PATH = "a server under this protocol is taken to receive every update"
_COMPOSED = "noise that is not Gaussian is charged in full to all it reaches, and composed by Renyi divergences"
_PRESET = "the preset budget of the zCDP filter: noise and number of rounds depend on earlier outputs"
_OVERSPENT = "the rounds spent more than the preset budget of the zCDP filter"
_SLACK = 1e-9  # relative: views are summed in different orders, and differ by rounding where they are equal
Totals = Mapping[LossEvent | None, Floats]
"""mu^2 of Gaussian releases, and how many releases of each other loss; arrays of one shape."""


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

    local: EpsilonFigure
    receiver: EpsilonFigure
    peer_worst: EpsilonFigure
    peer_median: EpsilonFigure
    coalition: EpsilonFigure | None
    model: EpsilonFigure

    def unproved(self, because: str) -> Views:
        """Returns infinite figures with this reason."""
        nothing = infinite(because)
        coalition = None if self.coalition is None else nothing
        return Views(
            local=nothing, receiver=nothing, peer_worst=nothing, peer_median=nothing, coalition=coalition, model=nothing
        )


_FIGURES = tuple(field.name for field in fields(Views))


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
        self._why_not = ""
        kind = PublicSums if setting.spread == "to_all" else Paths
        events: Sequence[LossEvent | None] = setting.losses or (None,)
        self._local: dict[LossEvent | None, Floats] = {event: np.zeros(setting.clients) for event in events}
        self._spread: dict[LossEvent | None, PublicSums | Paths] = {event: kind(setting) for event in events}

    def add(self, contents: RoundContents) -> None:
        """Adds one round."""
        if self._cannot_add(contents):
            return
        for event, spread in self._spread.items():
            part = contents if event is None else contents.counting(event)
            one = _all_receivers(part, self.setting.clients)
            self._local[event] += one
            if event is None:
                self.worst_round_mu2 = max(self.worst_round_mu2, float(one.max(initial=0.0)))
            spread.add(part)

    def _cannot_add(self, contents: RoundContents) -> bool:
        """Remembers why nothing is proved from this round on, if that is so."""
        # The first reason stays: nothing that a later round brings makes the figures finite again.
        if contents.uncharged:
            self._why_not = self._why_not or "an update arrived that no ledger was charged for"
        if not np.isfinite(contents.sensitivity).all():
            self._why_not = self._why_not or "updates are not clipped"
        if contents.shares is not None and not contents.sends_first:
            self._why_not = self._why_not or _ADAPTIVE_SHARES
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
        found = {event: spread.learned(collected) for event, spread in self._spread.items()}
        views = self._figures_but_receiver(found)
        views = replace(views, receiver=self._receiver(found, views))
        if setting.followed and any(self._contradicts(each) for each in found.values()):
            return views.unproved(_CONTRADICTION)
        return views if setting.preset_rho is None else self._filtered(views, setting.preset_rho)

    def _figures_but_receiver(self, found: Mapping[LossEvent | None, Learned]) -> Views:
        """Returns all figures but that of the best informed receiver."""
        setting = self.setting
        local = self._figure(self._local, setting.delta, _COMPOSED if setting.losses else "")
        label = next(iter(self._spread.values())).label
        # Random factors may leave less noise than is counted, with probability `tail`: delta pays for that.
        delta = setting.delta - setting.tail
        bound = _FACTORS if setting.tail else _COMPOSED if setting.losses else label
        together = self._figure(_of(found, "coalition"), delta, bound) if setting.colluders else None
        views = replace(
            _all_alike(local.at_most(_TOO_MANY_PEERS), bool(setting.colluders)),
            local=local,
            model=self._figure(_of(found, "model"), delta, bound),
            coalition=together,
        )
        if setting.followed:
            epsilons = _epsilons(_of(found, "peers"), delta)
            return replace(
                views,
                peer_worst=self._labelled(float(epsilons.max(initial=0.0)), bound),
                peer_median=self._labelled(float(np.median(epsilons)) if len(epsilons) else 0.0, bound),
            )
        if setting.spread == "by_path":
            # A model may hold all that a peer has seen, so what bounds the peers is the bound for models too.
            return replace(views, model=views.peer_worst, coalition=together and views.peer_worst)
        return views

    def _receiver(self, found: Mapping[LossEvent | None, Learned], views: Views) -> EpsilonFigure:
        """Returns the figure of the best informed single node that gets updates."""
        candidates = [views.peer_worst]
        if self.setting.server is not None:
            candidates.insert(0, self._server(found, views.local))
        elif self.setting.spread == "by_path":
            # The server that collects models in the end is a receiver of what stands behind them.
            candidates.append(views.model)
        return max(candidates, key=lambda figure: figure.epsilon)

    def _filtered(self, views: Views, rho: float) -> Views:
        """Returns the filter's preset budget in the place of every finite figure: the realised sum is an output."""
        # A Gaussian release of mu is (mu^2 / 2)-zCDP.
        spent = float(self._local[None].max(initial=0.0)) / 2.0 + self.setting.preset_reports
        if spent > rho * (1.0 + _SLACK) and views.local.how != "inf":
            return views.unproved(_OVERSPENT)
        preset = EpsilonFigure(zcdp_epsilon(rho, self.setting.delta), "bound", _PRESET)
        figures = {name: getattr(views, name) for name in _FIGURES}
        return Views(**{name: preset if figure and figure.how != "inf" else figure for name, figure in figures.items()})

    def _server(self, found: Mapping[LossEvent | None, Learned], local: EpsilonFigure) -> EpsilonFigure:
        setting = self.setting
        if setting.spread == "by_path":
            return local.at_most(_SERVER_BY_PATH)
        bound = _FACTORS if setting.tail else _COMPOSED if setting.losses else ""
        return self._figure(_of(found, "server"), setting.delta - setting.tail, bound)

    def _figure(self, totals: Totals, delta: float, bound: str = "") -> EpsilonFigure:
        """Returns the figure about the worst-off client."""
        rows = {event: total[None] for event, total in totals.items()}
        return self._labelled(float(_epsilons(rows, delta)[0]), bound)

    def _labelled(self, epsilon: float, bound: str) -> EpsilonFigure:
        return proven(epsilon, self.setting.if_infinite, bound or self.setting.only_bounds)

    def _contradicts(self, found: Learned) -> bool:
        """Returns whether something is violated that holds in every run: peer >= model, coalition >= its members."""
        count = self.setting.clients
        team = [node for node in self.setting.colluders if node < count]
        outside = np.ones(count, dtype=np.bool_)
        outside[team] = False
        slack = 1.0 + _SLACK
        # About themselves colluders learn nothing, in no view.
        broken = bool((found.peers[team][:, outside] > found.coalition[outside] * slack).any())
        if self.setting.spread == "to_all":
            below = found.model > found.peers * slack
            np.fill_diagonal(below, False)
            broken |= bool(below.any())
        return broken


def _of(found: Mapping[LossEvent | None, Learned], view: str) -> Totals:
    return {event: getattr(learned, view) for event, learned in found.items()}


def _epsilons(totals: Totals, delta: float) -> Floats:
    """Returns each observer's epsilon about its worst-off client, from totals [observer, client]."""
    if set(totals) == {None}:
        return epsilons_of(np.sqrt(totals[None].max(axis=1, initial=0.0)), delta)
    # Many pairs have equal totals; each combination is composed once.
    stacked = np.stack(list(totals.values()))
    kinds, place = np.unique(stacked.reshape(len(stacked), -1), axis=1, return_inverse=True)
    composed = np.array([_composed(dict(zip(totals, column, strict=True)), delta) for column in kinds.T.tolist()])
    found: Floats = composed[place].reshape(stacked.shape[1:]) if composed.size else np.zeros(stacked.shape[1:])
    return np.asarray(found.max(axis=1, initial=0.0))


def _composed(totals: Mapping[LossEvent | None, float], delta: float) -> float:
    counts = [(event, round(count)) for event, count in totals.items() if event is not None]
    return composed_epsilon(totals.get(None, 0.0), counts, delta)


def _all_receivers(contents: RoundContents, count: int) -> Floats:
    """Returns mu^2 for the receivers of the clients' own updates; one that was not sent is seen in the aggregate."""
    sent = np.delete(np.arange(len(contents.clients)), contents.inside)
    found = joint_mu2(contents, sent, {RECEIVERS}, count, sums=False)
    if len(contents.inside):
        clients = contents.clients[contents.inside]
        found[clients] += sums_mu2(contents, [()], count)[0, clients]
    return found


def _all_alike(figure: EpsilonFigure, coalition: bool) -> Views:
    together = figure if coalition else None
    return Views(local=figure, receiver=figure, peer_worst=figure, peer_median=figure, coalition=together, model=figure)
