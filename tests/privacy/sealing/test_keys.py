"""One-time keys: real X25519, real HKDF, each pair once, no message sealed twice."""

from __future__ import annotations

import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from hypothesis import given
from hypothesis import strategies as st

from privacy.sealing.keys import SALT, PairSecrets, draw_key_pair, draw_stand_in, expand, extract


@given(st.binary(min_size=32, max_size=32), st.binary(max_size=120))
def test_hkdf_is_the_standard_one(shared: bytes, info: bytes) -> None:
    """Ours, in two halves, equals RFC 5869 as `cryptography` does it."""
    theirs = HKDF(hashes.SHA256(), 32, SALT, info).derive(shared)
    assert expand(extract(shared), info) == theirs


def test_both_ends_find_the_same_secret() -> None:
    """Each end computes it alone, from its own private and the other's public key."""
    first, second = draw_key_pair(1, 0, 0), draw_key_pair(1, 1, 0)
    assert PairSecrets().secret(0, first, second.public) == PairSecrets().secret(0, second, first.public)


def test_a_pair_is_exchanged_once_until_dropped() -> None:
    """The second end, and every later message, reuse the secret; dropping the round forgets it."""
    first, second = draw_key_pair(1, 0, 0), draw_key_pair(1, 1, 0)
    pairs = PairSecrets()
    pairs.begin(0)
    secret = pairs.secret(0, first, second.public)
    assert pairs.secret(0, second, first.public) is secret
    pairs.drop(0)
    assert pairs.secret(0, second, first.public) is not secret
    assert pairs.secret(0, first, second.public) is not pairs.secret(0, first, second.public), "nothing is kept"


def test_keys_differ_by_node_round_life_and_seed() -> None:
    """Keys are one-time: nothing that changes leaves them as they were."""
    names = [(1, 0, 0, 0), (1, 1, 0, 0), (1, 0, 1, 0), (1, 0, 0, 1), (2, 0, 0, 0)]
    for draw in (draw_key_pair, draw_stand_in):
        assert len({draw(*name).public for name in names}) == len(names)
        assert draw(*names[0]).public == draw(*names[0]).public
        assert len(draw(*names[0]).public) == 32


def test_a_message_is_named_once() -> None:
    """A second message under the same name is refused; to another receiver or of another kind it is not."""
    keys = draw_key_pair(1, 0, 0)
    keys.claim(3, 1)
    keys.claim(3, 1, b"receiver")
    keys.claim(4, 1)
    with pytest.raises(ValueError, match="sealed before"):
        keys.claim(3, 1)


def test_useless_public_keys_are_refused() -> None:
    """A key of small order would give a secret that is publicly known; a stand-in gives none at all."""
    with pytest.raises(ValueError, match="shared"):
        PairSecrets().secret(0, draw_key_pair(1, 0, 0), bytes(32))
    with pytest.raises(ValueError, match="stand-in"):
        PairSecrets().secret(0, draw_stand_in(1, 0, 0), draw_key_pair(1, 1, 0).public)
