"""A one-sentence verdict on the privacy of a run, with `published` and `rigorous` kept apart.

The input is `{"published": ..., "rigorous": {view: ..., "unit": ..., "delta": ...}, "why_infinite": ...}`. A view is
an epsilon or a mapping with `epsilon` or `worst`; an epsilon is a number, `"inf"` or None (no mechanism, or the
formula does not apply).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from scenarios.metrics.headline.number_format import epsilon_text

SLACK = 1e-9
"""Relative tolerance of comparisons: both epsilons come out of numerical solvers."""
NO_PROTECTION = 20.0
"""From this epsilon on an attacker's odds change by a factor of 5e8; calling it a guarantee would mislead."""


def epsilon_of(value: Any) -> float | None:
    """Returns the epsilon of a published or rigorous entry, or None if it has none."""
    if isinstance(value, Mapping):
        # The first of these keys that is there.
        named = (value[key] for key in ("epsilon", "worst", "max") if key in value)
        return epsilon_of(next(named, None))
    if value == "inf":
        return math.inf
    if value is None or isinstance(value, str) or math.isnan(value):
        return None
    return float(value)


def why_unpublished(privacy: Mapping[str, Any]) -> str:
    """Returns why no paper's epsilon is stated; empty where one is."""
    claim = privacy.get("published")
    if epsilon_of(claim) is not None:
        return ""
    return claim if isinstance(claim, str) else "the run folder does not say why"


def published_text(privacy: Mapping[str, Any]) -> str:
    """Returns the published epsilon as text, or why there is none: never a bare blank."""
    epsilon = epsilon_of(privacy.get("published"))
    return f"none ({why_unpublished(privacy)})" if epsilon is None else epsilon_text(epsilon)


def receiver_epsilon(privacy: Mapping[str, Any]) -> float | None:
    """Returns the rigorous epsilon against the worst peer, or the `local` one, which bounds it."""
    rigorous = privacy.get("rigorous") or {}
    worst = epsilon_of(rigorous.get("peer"))
    return worst if worst is not None else epsilon_of(rigorous.get("local"))


def epsilon_headline(privacy: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the headline's privacy entry."""
    rigorous = privacy.get("rigorous") or {}
    return {
        "published": epsilon_of(privacy.get("published")),
        "why_unpublished": why_unpublished(privacy),
        "rigorous_local": epsilon_of(rigorous.get("local")),
        "rigorous_worst_peer": receiver_epsilon(privacy),
        "rigorous_model": epsilon_of(rigorous.get("model")),
        "unit": rigorous.get("unit", "client"),
        "delta": _delta(privacy),
        **_record_headline(privacy),
        "verdict": verdict(privacy),
    }


def _record_headline(privacy: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the record-level figure with its own delta, for runs that protect single records."""
    entry = privacy.get("record")
    if not isinstance(entry, Mapping):
        return {}
    return {"record": epsilon_of(entry), "record_delta": entry.get("delta")}


def verdict(privacy: Mapping[str, Any]) -> str:
    """Returns one sentence: the claim, whether it is proven, and the reason if nothing is proven.

    Where single records are protected, a sentence about one record comes first and one about the whole client second.
    """
    entry, whole = privacy.get("record"), _of_clients(privacy)
    if not isinstance(entry, Mapping):
        return whole
    proven, delta = epsilon_of(entry), entry.get("delta")
    if proven is None or math.isinf(proven):
        return f"at record level nothing is proven, because {entry.get('because')}; at client level {whole}"
    at = "" if delta is None else f" at delta {delta:.3g}"
    what = f"the proven record-level epsilon against all who receive updates is {epsilon_text(proven)}{at}"
    return f"{what} (one record added or removed){_comment(proven)}; at client level {whole}"


def _of_clients(privacy: Mapping[str, Any]) -> str:
    published, proven = epsilon_of(privacy.get("published")), _against_whom(privacy)
    if published is None or math.isinf(published):
        return _without_claim(privacy, proven)
    claim = f"published epsilon {epsilon_text(published)} ({_formula(privacy)})"
    if proven is not None and proven <= published * (1 + SLACK):
        return f"{claim} is covered: the proven {_unit(privacy)}-level epsilon {_against(privacy, proven)}."
    if proven is None or math.isinf(proven):
        return f"{claim} is not a proven guarantee: nothing is proven against a single receiver{_because(privacy)}."
    what = f"the proven {_unit(privacy)}-level epsilon {_against(privacy, proven)}"
    return f"{claim} is not a proven guarantee: {what}{_comment(proven)}."


def _without_claim(privacy: Mapping[str, Any], proven: float | None) -> str:
    start = ""
    claim = privacy.get("published")
    if isinstance(claim, Mapping) or (isinstance(claim, str) and claim.startswith("not applicable")):
        start = "the published formula does not apply; "
    if proven is None or math.isinf(proven):
        nothing = "no differential privacy is proven: a receiver may learn all that an update tells"
        return f"{start}{nothing}{_because(privacy)}."
    return f"{start}the proven {_unit(privacy)}-level epsilon {_against(privacy, proven)}{_comment(proven)}."


def _against_whom(privacy: Mapping[str, Any]) -> float | None:
    """Returns the rigorous epsilon against the worst receiver of updates: the server if there is one, else a peer."""
    receiver = epsilon_of((privacy.get("rigorous") or {}).get("receiver"))
    return receiver if receiver is not None else receiver_epsilon(privacy)


def _because(privacy: Mapping[str, Any]) -> str:
    return f", because {privacy['why_infinite']}" if privacy.get("why_infinite") else ""


def _against(privacy: Mapping[str, Any], proven: float) -> str:
    delta = _delta(privacy)
    at = "" if delta is None else f" at delta {delta:.3g}"
    return f"against a single receiver is {epsilon_text(proven)}{at}"


def _comment(proven: float) -> str:
    return ", which is no protection" if proven >= NO_PROTECTION else ""


def _unit(privacy: Mapping[str, Any]) -> str:
    return str((privacy.get("rigorous") or {}).get("unit", "client"))


def _formula(privacy: Mapping[str, Any]) -> str:
    published = privacy.get("published")
    # Folders of the first version have the number alone, when there was one formula.
    found = published if isinstance(published, Mapping) else {"formula": "Theorem 8 of Weng 2025"}
    return str(found.get("formula", "its paper's formula"))


def _delta(privacy: Mapping[str, Any]) -> float | None:
    for part in (privacy.get("rigorous"), privacy.get("published"), privacy):
        if isinstance(part, Mapping) and part.get("delta") is not None:
            return float(part["delta"])
    return None
