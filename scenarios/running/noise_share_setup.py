"""The `noise_shares` section put to work: its rules, its parts, and what it leaves in the round's row."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from nodes.faults.targets import parse_nodes
from nodes.protocols.central import Central
from nodes.protocols.gossip import Gossip
from nodes.protocols.rotating_leader import RotatingLeader
from p2p.config.errors import UserError
from privacy.calibration.strategies import RigorousCalibration
from privacy.noise_shares.settings import NoiseShares
from privacy.settings import Privacy

if TYPE_CHECKING:
    from nodes.noise_shares.exchange_log import NoiseShareLog
    from nodes.noise_shares.partner_graph import Tracker
    from nodes.noise_shares.plan import NoiseSharePlan
    from nodes.roles.participant import Participant
    from nodes.world import World
    from privacy.calibration.noise_plan import NoisePlan
    from scenarios.schema import Scenario

Finding = tuple[tuple[str | int, ...], Any, str]
_COUNTS_CANCELLED = (
    "would count noise that cancels as privacy: one who gets all uploads takes it off; drop it and give "
    "`noise_shares.tau_ind`, or set `privacy.budget.by: published` to compare published figures only"
)


def share_findings(
    shares: NoiseShares | None, protocol: Any, privacy: Any, anonymity: Any, clients: int
) -> Iterator[Finding]:
    """What does not go together with an exchange of noise shares."""
    if shares is None:
        return
    yield from _protocol_findings(shares, protocol)
    yield from _privacy_findings(shares, privacy)
    yield from _client_findings(shares, clients)
    if shares.share_as == "pairwise" and anonymity.sealed is False:
        yield ("noise_shares", "share_as"), "pairwise", "needs keys to agree with; set `anonymity.sealed: true`"
    varied = isinstance(shares.epsilon, tuple) or isinstance(shares.sigma_k, tuple) or shares.weights == "records"
    if shares.share_as == "pairwise" and varied:
        rule = "sends nothing, so peers cannot tell each other's sigma_k; use `seed`, or one sigma_k for all"
        yield ("noise_shares", "share_as"), "pairwise", rule


def _protocol_findings(shares: NoiseShares, protocol: Any) -> Iterator[Finding]:
    gossip = isinstance(protocol, Gossip)
    if not isinstance(protocol, Gossip | RotatingLeader | Central):
        rule = "must be gossip, rotating_leader or central to exchange noise shares; take another or drop them"
        yield ("protocol", "kind"), type(protocol).__name__, rule
        return
    if gossip and shares.policy == "correct":
        rule = "cannot work with gossip: an upload missing at one peer has reached another, which could then take its "
        yield ("noise_shares", "policy"), "correct", rule + "opened noise off; use `none` or `omit`"
    if gossip and shares.weights == "records":
        rule = "needs one sum over the cohort; with gossip every peer sums another one, so use `equal`"
        yield ("noise_shares", "weights"), "records", rule
    if not gossip and shares.partners == "co_recipients":
        rule = "is for gossip; elsewhere all updates meet at one place, so use `random`"
        yield ("noise_shares", "partners"), "co_recipients", rule
    if shares.deadline is not None and shares.deadline >= protocol.deadline:
        rule = f"must be < protocol.deadline, which is {protocol.deadline:g} s: uploads come after shares; lower it"
        yield ("noise_shares", "deadline"), shares.deadline, rule
    least = 3 if isinstance(protocol, RotatingLeader) else 2
    if protocol.train_per_round is not None and protocol.train_per_round < least:
        rule = f"must be >= {least} to exchange noise shares: a leader is nobody's partner; raise it"
        yield ("protocol", "train_per_round"), protocol.train_per_round, rule


def _privacy_findings(shares: NoiseShares, privacy: Privacy | None) -> Iterator[Finding]:
    if shares.epsilon is not None and (privacy is None or not np.isfinite(privacy.clip_norm)):
        rule = "needs bounded updates; set `privacy.clip: {kind: flat, norm: 1.0}`, or give `sigma_k` instead"
        yield ("noise_shares", "epsilon"), shares.epsilon, rule
    if privacy is None:
        return
    by, calibration = privacy.resolved_budget().by, privacy.calibration
    if isinstance(calibration, RigorousCalibration) or (calibration is not None and by != "published"):
        yield ("privacy", "noise", "calibrate"), type(calibration).__name__, _COUNTS_CANCELLED
    elif by == "rigorous":
        yield ("privacy", "budget", "by"), "rigorous", _COUNTS_CANCELLED


def _client_findings(shares: NoiseShares, clients: int) -> Iterator[Finding]:
    for key in ("epsilon", "sigma_k"):
        values = getattr(shares, key)
        if isinstance(values, tuple) and len(values) != clients:
            rule = f"has {len(values)} numbers for {clients} clients; give one for each, or one for all"
            yield ("noise_shares", key), list(values[:3]), rule
    seen: set[int] = set()
    for index, group in enumerate(shares.coalitions):
        named = parse_nodes(group, clients, (), "coalitions")
        for problem in named.problems:
            yield ("noise_shares", "coalitions", index), group, problem.partition(": ")[2]
        if seen & set(named.nodes):
            rule = f"client {min(seen & set(named.nodes))} is in two coalitions; leave it in one"
            yield ("noise_shares", "coalitions", index), group, rule
        seen |= set(named.nodes)


def check_resumable(scenario: Scenario) -> None:
    """A resumed run draws other keys, so noise agreed by keys could not be what it was before the interrupt.

    Raises:
        UserError: it is agreed by keys.
    """
    if scenario.noise_shares is not None and scenario.noise_shares.share_as == "pairwise":
        rule = "a resumed run has other keys, and the noise follows from them; run it anew, or use `seed`"
        raise UserError(f"noise_shares.share_as = pairwise: {rule}")


@dataclass(frozen=True, slots=True)
class NoiseSharing:
    """The exchange of one run."""

    plan: NoiseSharePlan
    tracker: Tracker
    book: NoiseShareLog

    @property
    def extra_s(self) -> float:
        """How much longer a round may take for corrections."""
        return self.plan.settings.correct_within if self.plan.settings.policy == "correct" else 0.0

    def figures(self, round_number: int, log: Any) -> dict[str, float]:
        """The residual of a round's aggregations on average, beside the predicted one."""
        found = self.book.close(round_number, log)
        if not found:
            return {"residual_variance": np.nan, "predicted_variance": np.nan}
        measured, predicted = ([getattr(one, name) for one in found] for name in ("measured", "predicted"))
        return {"residual_variance": float(np.mean(measured)), "predicted_variance": float(np.mean(predicted))}


def share_noise(
    scenario: Scenario,
    world: World,
    participants: Mapping[int, Participant],
    noise: NoisePlan | None,
    records: NDArray[np.int64],
) -> NoiseSharing | None:
    """Gives every participant its desk; None if the scenario has no exchange."""
    settings = scenario.noise_shares
    if settings is None:
        return None
    from nodes.noise_shares.client_exchange import NoiseShareClient
    from nodes.noise_shares.exchange_log import NoiseShareLog
    from nodes.noise_shares.partner_graph import Tracker
    from nodes.noise_shares.plan import NoiseSharePlan
    from privacy.noise_shares.uploads import NoiseExpander

    protocol, privacy = scenario.protocol, scenario.privacy
    deadline_s = settings.deadline if settings.deadline is not None else protocol.deadline / 2.0
    plan = NoiseSharePlan(
        settings=settings,
        clients=scenario.clients,
        clip_norm=np.inf if privacy is None else privacy.clip_norm,
        delta=1e-5 if privacy is None else privacy.resolved_budget().delta,
        records=records,
        margin_s=protocol.deadline - deadline_s,
        noise_std=np.zeros(scenario.clients) if noise is None else noise.noise_std,
    )
    dimension = next(iter(participants.values())).learning.dimension
    maker = NoiseExpander(dimension, settings.expansion, settings.tau_mode, settings.share_as == "vector")
    book = NoiseShareLog(maker, measures=scenario.learning != "none")
    for node, participant in participants.items():
        participant.share_noise(NoiseShareClient(node, world, plan, book))
    return NoiseSharing(plan, Tracker(plan, protocol, scenario.seed), book)
