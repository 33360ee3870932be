"""Cost, residual noise and protection of the noise-share exchange, for the privacy report and the summary."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from p2p.log.records import KIND
from privacy.accounting.curves.gaussian import epsilon_of
from privacy.accounting.receipts import received_pairs, rows_by_round
from privacy.noise_shares.uploads import Upload
from privacy.noise_shares.variance import marginal_variance
from privacy.sealing.message_sizes import message_size
from privacy.sealing.wire_format import vector_size

if TYPE_CHECKING:
    from nodes.noise_shares.run_exchange import NoiseSharing
    from scenarios.composition.simulation import Simulation


_MAX_RESIDUALS = 1000
"""Runs with more aggregations list only the means of each round, in the rounds' table."""
_UNBOUNDED = "updates are not clipped, so Corollary 1 of NISS has no sensitivity"
_NO_NOISE = "no accounted noise"


def share_summary(simulation: Simulation) -> dict[str, Any]:
    """Returns the summary's `noise_shares` entry: residuals and predictions, bytes and the bytes of vectors."""
    sharing = simulation.sharing
    if sharing is None:
        return {}
    share_log, log = sharing.share_log, simulation.log
    measured = np.array([one.measured for one in share_log.residuals])
    predicted = np.array([one.predicted for one in share_log.residuals])
    return {
        "noise_shares": {
            "residual_variance": _mean(measured),
            "predicted_variance": _mean(predicted),
            "aggregations": len(predicted),
            "worst_residual_variance": _most(measured),
            "skipped_uploads": len(share_log.skipped),
            "corrected_aggregations": sum(bool(nodes) for nodes in share_log.repairs.values()),
            "bytes": _bytes(simulation, sharing),
            "residuals": [
                [one.round_number, one.aggregator, one.contributors, one.measured, one.predicted]
                for one in share_log.residuals
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
    as_vector = message_size(vector_size(sharing.share_log.maker.dimension), many=False, sealed=sealed)
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
    """Returns the privacy report, with what the exchange adds: the joint view of all uploads, and one upload alone."""
    sharing, privacy = simulation.sharing, simulation.scenario.privacy
    if sharing is None or privacy is None:
        return dict(report)
    rigorous, delta = report["rigorous"], sharing.plan.delta
    accountant = simulation.observer.privacy.final
    joint = {
        "per_round": math.inf if accountant is None else _epsilon(accountant.worst_round_mu2, delta),
        "composed": rigorous["local"],
    }
    if "coalition" in rigorous:
        joint["with_colluders"] = rigorous["coalition"]
    merged = dict(report)
    merged["noise_shares"] = {"joint": joint, "exposed_releases": _exposed(simulation, sharing)}
    merged["noise_shares"] |= _marginal(sharing, delta)
    if not isinstance(merged.get("published"), Mapping):
        merged["published"] = _published(sharing, delta)
    merged["notes"] = [note for note in report.get("notes", ()) if not note.startswith(_NO_NOISE)]
    return merged


def _exposed(simulation: Simulation, sharing: NoiseSharing) -> list[list[int]]:
    """Returns (round, client) whose upload came after its noise had been opened: a curious aggregator keeps it."""
    log, share_log, found = simulation.log, sharing.share_log, []
    rows = rows_by_round(log.messages)
    clients = simulation.scenario.clients
    for number, by_node in share_log.opened.items():
        lost = {share.receiver for sent, _ in by_node.values() for share in sent}
        lost |= {one.share.sender for _, taken in by_node.values() for one in taken}
        came = received_pairs(log.messages, rows[number], "update", clients, np.zeros(0, dtype=np.int64))
        found += [[number, node] for node in sorted(lost & set(came[:, 0].tolist()))]
    return found


def _epsilon(mu2: float, delta: float) -> float:
    return epsilon_of(math.sqrt(mu2), delta)


def _released(sharing: NoiseSharing) -> list[tuple[Upload, float]]:
    """Returns the uploads that carry shares, with sigma_k of each."""
    uploads = [one for by_node in sharing.share_log.uploads.values() for one in by_node.values() if one.sent]
    return [(upload, math.sqrt(sum(share.std**2 for share in upload.sent))) for upload in uploads]


def _published(sharing: NoiseSharing, delta: float) -> dict[str, Any] | str:
    """Returns Corollary 1 as printed, for the worst client: half of the classic epsilon, one upload of one round."""
    clip, scale = sharing.plan.clip_norm, math.sqrt(2.0 * math.log(1.25 / delta))
    released = _released(sharing)
    if math.isinf(clip) or not released:
        return _UNBOUNDED if math.isinf(clip) else "no upload of the run carried shares"
    epsilon = max(2.0 * clip * upload.weight * scale / sigma for upload, sigma in released)
    # The factor 1/2 is the paper's; it is kept to compare published figures and proves nothing.
    return {"epsilon": epsilon / 2.0, "delta": delta, "formula": "NISS, Corollary 1: one upload of one round, alone"}


def _marginal(sharing: NoiseSharing, delta: float) -> dict[str, Any]:
    """Returns the exact epsilon of one upload seen alone, per round and composed; an observer of several sees more."""
    released = _released(sharing)
    if math.isinf(sharing.plan.clip_norm) or not released:
        return {"marginal": None}
    totals: dict[int, float] = {}
    worst = 0.0
    for upload, sigma in released:
        tau = max((one.tau for one in upload.taken), default=0.0)
        mu2 = (2.0 * sharing.plan.clip_norm * upload.weight) ** 2 / marginal_variance(sigma**2, tau)
        worst = max(worst, mu2)
        # Gaussian releases compose by adding mu^2.
        totals[upload.node] = totals.get(upload.node, 0.0) + mu2
    scale = math.sqrt(2.0 * math.log(1.25 / delta))
    classic = max(2.0 * sharing.plan.clip_norm * upload.weight * scale / sigma for upload, sigma in released)
    composed = _epsilon(max(totals.values()), delta)
    return {
        "marginal": {
            "per_round": _epsilon(worst, delta),
            "composed": composed,
            "classic_over_sqrt2": classic / math.sqrt(2.0),
        }
    }
