"""The epsilons that a run states about an observer, read from its summary."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from privacy.attacks.membership.ceiling import Claim

# The view of the accountant that covers a position. Several nodes that pool what they see, or know identities, are
# covered by the local view alone, which bounds everything that a client releases.
VIEWS = {"peer": "peer", "server": "receiver", "model": "model"}


def claims_about(summary: Mapping[str, Any], kind: str) -> list[Claim]:
    """Returns the published epsilon, if there is one, and the proved one of the observer's view, if it is finite."""
    privacy = summary["privacy"]
    published, rigorous = privacy["published"], privacy["rigorous"]
    claims = []
    if isinstance(published, Mapping):
        claims.append(Claim("published", _number(published["epsilon"]), float(published["delta"])))
    view = VIEWS.get(kind, "local")
    proved = _number(rigorous["peer"]["worst"] if view == "peer" else rigorous[view])
    if math.isfinite(proved):
        claims.append(Claim(f"rigorous, {view} view", proved, float(rigorous["delta"])))
    return [claim for claim in claims if math.isfinite(claim.epsilon)]


def noise_std(summary: Mapping[str, Any]) -> float:
    """Returns the deviation of the noise on each coordinate of an update, the middle of the clients' range."""
    stated = summary["privacy"].get("noise_std")
    return 0.0 if stated is None else (_number(stated["min"]) + _number(stated["max"])) / 2.0


def _number(value: Any) -> float:
    # Infinity is a string in a summary.
    return math.inf if value is None else float(value)
