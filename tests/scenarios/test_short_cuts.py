"""What is done for speed changes nothing that happens."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from p2p.network import Network
from scenarios.digest import events_digest
from tests.by_hand import _prepare
from tests.random_worlds import MANY, quiet_worlds, troubled_worlds


@pytest.mark.slow
@pytest.mark.soak
@MANY
@given(st.one_of(troubled_worlds(), quiet_worlds()))
def test_messages_handed_over_together_fare_as_if_each_were_sent_alone(world: list[str]) -> None:
    """As a wave, carried whole, taken in unread and opened together; or as parcels, looked at when they come."""
    together = _prepare(*world)
    together.run()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Network, "_passes_whole", property(lambda self: False))
        alone = _prepare(*world)
        alone.run()
    assert events_digest(together.log) == events_digest(alone.log)
    assert together.log.messages["used"].tolist() == alone.log.messages["used"].tolist()
