"""The proxy's address table: addresses change, reveal no node, and are forgotten."""

from __future__ import annotations

import hashlib
import hmac

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from p2p.random_streams import stream
from privacy.anonymity.pseudonyms import Pseudonyms


def registered(seed: int = 1, clients: int = 5, **settings: object) -> Pseudonyms:
    """Pseudonyms of `clients` that have registered."""
    pseudonyms = Pseudonyms(seed, **settings)  # type: ignore[arg-type]
    for node in range(clients):
        pseudonyms.register(node)
    return pseudonyms


def test_address_is_the_stated_hmac() -> None:
    """A member's address is HMAC-SHA256 of its initial address under the round's secret."""
    pseudonyms = registered()
    secret = stream(1, "round-secret", 7).bytes(32)
    expected = hmac.new(secret, pseudonyms.register(3), "sha256").digest()
    assert pseudonyms.open_round(7, [3]) == {3: expected}


@settings(max_examples=30)
@given(st.integers(0, 2**63), st.sets(st.integers(0, 40), min_size=1), st.integers(0, 9))
def test_the_book_reads_both_ways(seed: int, members: set[int], round: int) -> None:
    """Every address of an open round leads back to its node, and no two are equal."""
    addresses = registered(seed, 41).open_round(round, members)
    pseudonyms = registered(seed, 41)
    assert pseudonyms.open_round(round, sorted(members, reverse=True)) == addresses
    assert {pseudonyms.node_of(address): address for address in addresses.values()} == addresses
    assert all(len(address) == 32 for address in addresses.values())


def test_rounds_share_no_address() -> None:
    """With `every_round` nothing repeats, not even the initial addresses."""
    pseudonyms = registered()
    seen = [*(pseudonyms.register(node) for node in range(5))]
    for round in range(4):
        seen += pseudonyms.open_round(round, range(5)).values()
    assert len(set(seen)) == 25


def test_never_keeps_addresses() -> None:
    """With `never` a node has one address for the run, also after its rounds were closed."""
    pseudonyms = registered(rehash="never")
    first = dict(pseudonyms.open_round(0, range(5)))
    pseudonyms.close_round(0)
    assert pseudonyms.node_of(first[2]) is None
    assert pseudonyms.open_round(1, range(5)) == first
    assert pseudonyms.node_of(first[2]) == 2


def test_closing_forgets_one_round_only() -> None:
    """A closed round's addresses lead nowhere; another's still do; closing twice is no mistake."""
    pseudonyms = registered()
    old, new = pseudonyms.open_round(0, range(5)), pseudonyms.open_round(1, range(5))
    known = old[4]
    pseudonyms.close_round(0)
    pseudonyms.close_round(0)
    assert pseudonyms.node_of(known) is None
    # What nothing had asked for can be computed no more.
    assert dict(old) == {4: known}
    with pytest.raises(KeyError):
        old[3]
    assert pseudonyms.node_of(new[4]) == 4
    assert not pseudonyms._secrets.keys() & {0}


def test_who_never_registered_gets_no_address() -> None:
    """An intruder is left out, and the others are not disturbed."""
    assert list(registered(clients=2).open_round(0, [0, 99, 1])) == [0, 1]


def test_members_may_be_admitted_later() -> None:
    """The last leader gets an address in a round that is already open, without moving the others'."""
    pseudonyms = registered()
    early = dict(pseudonyms.open_round(3, [0, 1]))
    assert pseudonyms.node_of(early[1]) == 1
    late = pseudonyms.open_round(3, [4])
    assert [pseudonyms.node_of(address) for address in late.values()] == [0, 1, 4]
    assert late == {**early, 4: registered().open_round(3, [4])[4]}
    with pytest.raises(KeyError):
        late[2]


def test_another_seed_gives_other_addresses() -> None:
    """Addresses depend on the seed, and on nothing else."""
    assert registered(1).register(0) != registered(2).register(0)
    assert registered(1).register(0) == registered(1).register(0)


def test_chained_addresses_are_the_stated_chain() -> None:
    """With `chained` all addresses move on in every round, and a member is known by the hash of its current one."""
    pseudonyms = registered(rehash="chained")
    secrets = {round: stream(1, "round-secret", round).bytes(32) for round in (0, 2, 3)}
    address = pseudonyms.register(3)
    pseudonyms.open_round(0, [0, 1])  # member 3 is absent, its address moves on nevertheless
    pseudonyms.open_round(2, [3])
    found = pseudonyms.open_round(3, [3])
    for secret in secrets.values():
        address = hmac.new(secret, address, "sha256").digest()
    assert found == {3: hashlib.sha256(address).digest()}
    assert pseudonyms.open_round(3, iter([3])) == found  # a second call of the round moves nothing


def test_chained_addresses_admit_late_registrants() -> None:
    """A node that registers during a round joins the chain in that round and goes on with all others."""
    pseudonyms = registered(rehash="chained")
    pseudonyms.open_round(1, [0])
    pseudonyms.register(9)
    late = pseudonyms.open_round(1, [9, 0])
    assert len(set(late.values())) == 2
    first = hmac.new(stream(1, "round-secret", 1).bytes(32), pseudonyms.register(9), "sha256").digest()
    assert late[9] == hashlib.sha256(first).digest()
    second = hmac.new(stream(1, "round-secret", 2).bytes(32), first, "sha256").digest()
    assert pseudonyms.open_round(2, [9]) == {9: hashlib.sha256(second).digest()}


def test_what_is_registered_and_open_can_be_asked() -> None:
    """Of many nodes at once, and of a round."""
    pseudonyms = registered()
    assert pseudonyms.knows_all({0, 4})
    assert not pseudonyms.knows_all({0, 5})
    pseudonyms.open_round(2, [1])
    assert (pseudonyms.is_open(2), pseudonyms.is_open(1)) == (True, False)
    pseudonyms.close_round(2)
    assert not pseudonyms.is_open(2)
