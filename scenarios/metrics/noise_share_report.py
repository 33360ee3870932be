"""Cost, residual noise and protection of the noise-share exchange, for the privacy report and the summary."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from p2p.log.records import KIND
from privacy.noise_shares.uploads import Upload
from privacy.noise_shares.variance import marginal_variance
from privacy.sealing.message_sizes import message_size
from privacy.sealing.wire_format import vector_size
from scenarios.metrics.noise_share_account import NoiseShareAccount, Totals
from scenarios.metrics.unaccounted import unaccounted_releases

if TYPE_CHECKING:
    from scenarios.build import Simulation
    from scenarios.running.noise_share_setup import NoiseSharing


_MAX_RESIDUALS = 1000
"""Runs with more aggregations list only the means of each round, in the rounds' table."""
_NO_NOISE = "no accounted noise"


def share_summary(simulation: Simulation) -> dict[str, Any]:
    """Returns the summary's `noise_shares` entry: residuals and predictions, bytes and the bytes of vectors."""
    sharing = simulation.sharing
    if sharing is None:
        return {}
    book, log = sharing.book, simulation.log
    measured = np.array([one.measured for one in book.residuals])
    predicted = np.array([one.predicted for one in book.residuals])
    return {
        "noise_shares": {
            "residual_variance": _mean(measured),
            "predicted_variance": _mean(predicted),
            "aggregations": len(predicted),
            "worst_residual_variance": _most(measured),
            "skipped_uploads": len(book.skipped),
            "corrected_aggregations": sum(bool(nodes) for nodes in book.repairs.values()),
            "bytes": _bytes(simulation, sharing),
            "residuals": [
                [one.round_number, one.aggregator, one.contributors, one.measured, one.predicted]
                for one in book.residuals
            ]
            if len(predicted) <= _MAX_RESIDUALS
            else [],
            "shares_used": int(np.count_nonzero(log.messages["used"] & (log.messages["kind"] == KIND["share"]))),
        }
    }


def _mean(values: NDArray[np.float64]) -> float | None:
    known = values[np.isfinite(values)]
    return float(known.mean()) if len(known) else None


def _most(values: NDArray[np.float64]) -> float | None:
    known = values[np.isfinite(values)]
    return float(known.max()) if len(known) else None


def _bytes(simulation: Simulation, sharing: NoiseSharing) -> dict[str, Any]:
    """Returns the bytes of shares per client and round, those of equivalent vectors, and their ratio."""
    messages = simulation.log.messages
    # Without retransmissions and relay hops, so that the cost does not depend on loss or anonymity.
    first = (messages["attempt"] == 1) & (messages["sender"] == messages["origin"])
    rows = first & (messages["kind"] == KIND["share"])
    count = max(int(np.count_nonzero(rows)), 1)
    senders = np.unique(np.column_stack([messages["round"][rows], messages["origin"][rows]]), axis=0)
    sealed = simulation.scenario.anonymity.sealed
    as_vector = message_size(vector_size(sharing.book.maker.dimension), many=False, sealed=sealed)
    sent = int(messages["size_bytes"][rows].sum())
    return {
        "shares": sent,
        "per_share": sent / count,
        "per_share_as_vector": as_vector,
        "ratio_to_vectors": sent / (count * as_vector),
        "per_client_round": sent / max(len(senders), 1),
        "corrections": int(messages["size_bytes"][messages["kind"] == KIND["correction"]].sum()),
    }


def add_share_views(simulation: Simulation, report: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the privacy report, with the joint view of all uploads where there is an exchange."""
    sharing, privacy = simulation.sharing, simulation.scenario.privacy
    if sharing is None or privacy is None:
        return dict(report)
    from scenarios.loading.privacy_classes import colluding_nodes

    scenario, delta = simulation.scenario, sharing.plan.delta
    colluders = colluding_nodes(privacy, scenario.clients, scenario.seed)
    unaccounted = _unaccounted(sharing)
    account = NoiseShareAccount(simulation, sharing)
    # A plug-in may release anything, and pooled statistics are not charged, so nothing is claimed with either.
    anything = unaccounted or unaccounted_releases(scenario)
    views = account.views(colluders) if not anything else _nothing(colluders)
    rigorous = dict(report["rigorous"])
    rigorous["unaccounted_releases"] = [*rigorous.get("unaccounted_releases", []), *unaccounted]
    for name in ("local", "model", "receiver", "coalition"):
        if name in views:
            rigorous[name] = _least(rigorous.get(name, math.inf), views[name], bool(unaccounted))
    peer = dict(rigorous["peer"])
    for name in ("worst", "median"):
        peer[name] = _least(peer[name], views["peer"][name], bool(unaccounted))
    # The joint account covers every observer, so the peer view is a bound and no longer an estimate.
    rigorous |= {"peer": peer | {"is_bound": True}}
    rigorous["record"] = {name: rigorous[name] for name in ("local", "peer", "model")}
    merged = dict(report) | {"rigorous": rigorous, "noise_shares": views["joint"] | _marginal(account, sharing, delta)}
    if not isinstance(merged.get("published"), Mapping):
        merged["published"] = _published(account, delta)
    merged["notes"] = [note for note in report.get("notes", ()) if not note.startswith(_NO_NOISE)]
    merged["why_infinite"] = _why(rigorous, rigorous["unaccounted_releases"], sharing, report)
    return merged


def _least(proven: float, joint: float, unaccounted: bool) -> float:
    """Returns the smaller of two proven bounds on one view; infinity if a release was not charged."""
    return math.inf if unaccounted else min(proven, joint)


def _why(
    rigorous: Mapping[str, Any], unaccounted: Sequence[str], sharing: NoiseSharing, report: Mapping[str, Any]
) -> str | None:
    if not math.isinf(rigorous["local"]):
        return None
    if unaccounted:
        return unaccounted[0]
    if math.isinf(sharing.plan.clip_norm):
        return "updates are not clipped"
    uploads = [upload for by_node in sharing.book.uploads.values() for upload in by_node.values()]
    if sharing.plan.settings.tau_ind == 0.0 and any(one.tau == 0.0 for upload in uploads for one in upload.taken):
        return "shares cancel: the sum of all uploads shows a client to one who knows the others (a masking scheme)"
    return "an upload was left without noise that its receiver does not know"


def _unaccounted(sharing: NoiseSharing) -> list[str]:
    settings, found = sharing.plan.settings, []
    if settings.weights == "records" and not settings.records_public:
        found.append("record counts, which the weights of updates tell; declare `noise_shares.records_public`")
    counts = {len(upload.sent) for by_node in sharing.book.uploads.values() for upload in by_node.values()} - {0}
    if settings.unequal == "list" and len(counts) > 1:
        found.append("sigma_k, which the number of partners tells; use `noise_shares.unequal: pad`")
    return found


def _nothing(colluders: Collection[int]) -> dict[str, Any]:
    nothing: dict[str, Any] = dict.fromkeys(("local", "model", "receiver"), math.inf)
    nothing |= {"peer": {"worst": math.inf, "median": math.inf}, "joint": {}}
    return nothing | ({"coalition": math.inf} if colluders else {})


def _released(account: NoiseShareAccount) -> list[tuple[Upload, float]]:
    """Returns the uploads that carry shares, with sigma_k of each."""
    uploads = [one for by_node in account.sharing.book.uploads.values() for one in by_node.values() if one.sent]
    return [(upload, math.sqrt(sum(share.std**2 for share in upload.sent))) for upload in uploads]


def _published(account: NoiseShareAccount, delta: float) -> dict[str, Any] | None:
    """Returns Corollary 1 as printed, for the worst client: half of the classic epsilon, one upload of one round."""
    clip, scale = account.sharing.plan.clip_norm, math.sqrt(2.0 * math.log(1.25 / delta))
    released = _released(account)
    if math.isinf(clip) or not released:
        return None
    epsilon = max(2.0 * clip * upload.weight * scale / sigma for upload, sigma in released)
    # The factor 1/2 is the paper's; it is kept to compare published figures and proves nothing.
    return {"epsilon": epsilon / 2.0, "delta": delta, "formula": "NISS, Corollary 1: one upload of one round, alone"}


def _marginal(account: NoiseShareAccount, sharing: NoiseSharing, delta: float) -> dict[str, Any]:
    """Returns the exact epsilon of one upload seen alone, per round and composed; an observer of several sees more."""
    released = _released(account)
    if math.isinf(sharing.plan.clip_norm) or not released:
        return {"marginal": None}
    totals: Totals = {}
    worst = 0.0
    for upload, sigma in released:
        tau = max((one.tau for one in upload.taken), default=0.0)
        mu2 = (2.0 * sharing.plan.clip_norm * upload.weight) ** 2 / marginal_variance(sigma**2, tau)
        worst = max(worst, mu2)
        # Gaussian releases compose by adding mu^2.
        totals[upload.node] = totals.get(upload.node, 0.0) + mu2
    scale = math.sqrt(2.0 * math.log(1.25 / delta))
    classic = max(2.0 * sharing.plan.clip_norm * upload.weight * scale / sigma for upload, sigma in released)
    composed = account.epsilon(max(totals.values()))
    return {
        "marginal": {
            "per_round": account.epsilon(worst),
            "composed": composed,
            "classic_over_sqrt2": classic / math.sqrt(2.0),
        }
    }
