"""What a message turns into when its bytes change on the way."""

from __future__ import annotations

from typing import Any

import numpy as np

from nodes.endpoint import Damaged
from privacy.envelopes import Envelope
from privacy.sealing import tamper


def alter_content(content: Any, rng: np.random.Generator) -> Any:
    """A copy with a bit flipped: an envelope for real, a control message by a mark its connection will notice."""
    return tamper(content, rng) if isinstance(content, Envelope) else Damaged(content)
