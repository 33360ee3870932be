"""Corruption of message contents in transit."""

from __future__ import annotations

from typing import Any

import numpy as np

from nodes.messaging.receiver import Damaged
from privacy.sealing.envelopes import Envelope
from privacy.sealing.sealers import tamper


def alter_content(content: Any, rng: np.random.Generator) -> Any:
    """Returns a corrupted copy: an envelope with a flipped bit, a control message marked as damaged."""
    # Control messages have no bytes in the simulation; the receiver's connection rejects the mark instead.
    return tamper(content, rng) if isinstance(content, Envelope) else Damaged(content)
