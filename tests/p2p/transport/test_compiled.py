"""Machine code of the event core."""

from __future__ import annotations

import pytest

from p2p.transport.core import compiled
from tests.p2p.small_network import SmallNetwork


@pytest.mark.skipif(compiled.is_interpreted(), reason="nothing is compiled here")
def test_a_process_links_the_core_once() -> None:
    """An engine is never freed, and a worker of a sweep builds hundreds of worlds."""
    SmallNetwork()
    before = len(compiled._loaded)
    SmallNetwork()
    assert len(compiled._loaded) == before == 1
