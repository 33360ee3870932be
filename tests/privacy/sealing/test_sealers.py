"""Sealing: the three modes behave alike, real sealing is real, and sizes are those of `cryptography`."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from p2p.random_streams import stream
from privacy.anonymity.settings import Sealed
from privacy.sealing.envelopes import Ciphertext, Envelope, Payload, Rejected
from privacy.sealing.keys import SALT, KeyPair
from privacy.sealing.message_sizes import message_size, seal_size
from privacy.sealing.sealers import Receiver, Sealer, make_sealer, tamper
from privacy.sealing.wire_format import (
    HEADER_BYTES,
    NAME_BYTES,
    decode_vector,
    encode_header,
    encode_vector,
    vector_size,
)

MODES: list[Sealed] = [True, "sizes", False]
PROTECTED: list[Sealed] = [True, "sizes"]


@dataclass
class Party:
    """Some members of a round, who may write to each other."""

    sealer: Sealer
    keys: list[KeyPair]
    addresses: list[bytes]

    def receivers(self, *members: int) -> list[Receiver]:
        return [(self.addresses[member], self.keys[member].public) for member in members]

    def open(self, envelope: Envelope, reader: int, sender: int = 0) -> object:
        return self.sealer.open(envelope, self.keys[reader], self.keys[sender].public)

    def send(self, payload: Payload, *members: int, sequence: int = 1) -> list[Envelope]:
        to = self.receivers(*members)
        return list(self.sealer.seal_many("update", 3, sequence, self.keys[0], self.addresses[0], to, payload))


def party(sealed: Sealed, members: int = 4) -> Party:
    """`members` members with keys and addresses."""
    sealer = make_sealer(sealed)
    keys = [sealer.draw_keys(1, node, 3) for node in range(members)]
    return Party(sealer, keys, [bytes([65 + node]) * 32 for node in range(members)])


def vector_payload(vector: NDArray[np.float32]) -> Payload:
    """The payload of an update."""
    return Payload(vector, vector_size(vector.size), lambda: encode_vector(vector), decode_vector)


def row(size: int = 10) -> NDArray[np.float32]:
    """Some vector."""
    return np.arange(1, size + 1, dtype=np.float32)


@pytest.mark.parametrize("sealed", MODES)
@pytest.mark.parametrize("members", [(1,), (1, 2, 3)])
def test_the_named_receiver_reads_by_reference(sealed: Sealed, members: tuple[int, ...]) -> None:
    """Every receiver gets the very vector that was sent, from one or from many."""
    group, vector = party(sealed), row()
    envelopes = group.send(vector_payload(vector), *members)
    assert [envelope.receiver for envelope in envelopes] == [group.addresses[member] for member in members]
    assert all(group.open(e, member) is vector for e, member in zip(envelopes, members, strict=True))


@settings(max_examples=30)
@given(st.integers(0, 2000), st.booleans())
def test_stated_sizes_are_the_real_ones(size_bytes: int, many: bool) -> None:
    """Header, wrapped key and ciphertext together have the size that was counted, in both sealing modes."""
    payload = Payload("x", size_bytes, lambda: bytes(size_bytes))
    members = (1, 2) if many else (1,)
    real, counted = (party(mode).send(payload, *members)[0] for mode in PROTECTED)
    assert isinstance(real.content, Ciphertext)
    assert isinstance(real.wrap, bytes)
    assert real.size_bytes == HEADER_BYTES + len(real.wrap) + len(real.content.data)
    assert real.size_bytes == counted.size_bytes == message_size(size_bytes, many=many, sealed=True)
    assert real.overhead_bytes == counted.overhead_bytes == HEADER_BYTES + seal_size(many=many, sealed=True)
    assert real.code == counted.code


def test_the_seal_adds_what_the_ciphers_add() -> None:
    """16 bytes of tag to one receiver; to many, also a key, a hash and the tag around both."""
    tag = len(AESGCM(bytes(32)).encrypt(bytes(12), b"", None))
    assert seal_size(many=False, sealed=True) == tag
    assert seal_size(many=True, sealed=True) == tag + len(AESGCM(bytes(32)).encrypt(bytes(12), bytes(64), None))
    assert seal_size(many=True, sealed=False) == 0
    assert party(False).send(vector_payload(row(10)), 1, 2)[0].size_bytes == HEADER_BYTES + 40


def test_an_independent_reader_opens_a_real_message() -> None:
    """With `cryptography` alone, following the module's description, the receiver reads the bytes."""
    group, vector = party(True), row()
    for many in (False, True):
        envelope = group.send(vector_payload(vector), *((1, 2) if many else (1,)))[0]
        header = encode_header(*envelope[:6])
        private, sender_public = group.keys[1].private, group.keys[0].private
        assert private is not None
        assert sender_public is not None
        shared = private.exchange(sender_public.public_key())
        key = HKDF(hashes.SHA256(), 32, SALT, header[:NAME_BYTES]).derive(shared)
        assert isinstance(envelope.content, Ciphertext)
        assert isinstance(envelope.wrap, bytes)
        associated: bytes | None = header
        if many:
            ticket = AESGCM(key).decrypt(bytes(12), envelope.wrap, header)
            digest = hashes.Hash(hashes.SHA256())
            digest.update(envelope.content.data)
            assert ticket[32:] == digest.finalize()
            key, associated = ticket[:32], None
        assert AESGCM(key).decrypt(bytes(12), envelope.content.data, associated) == vector.tobytes()


@pytest.mark.parametrize("sealed", PROTECTED)
def test_others_cannot_read_or_forge(sealed: Sealed) -> None:
    """A wrong reader, a wrong sender and a spoofed address are all refused as corrupt."""
    group = party(sealed)
    for members in ((1,), (1, 2)):
        envelope = group.send(vector_payload(row()), *members)[0]
        for reader, sender in ((3, 0), (1, 3)):
            with pytest.raises(Rejected, match="corrupt"):
                group.open(envelope, reader, sender)
        with pytest.raises(Rejected, match="corrupt"):
            group.open(envelope._replace(sender=group.addresses[3]), 1)


@pytest.mark.parametrize("sealed", PROTECTED)
def test_a_payload_cannot_be_swapped_for_another(sealed: Sealed) -> None:
    """Another payload of the same sender under the old seal is refused, although its key is known."""
    group = party(sealed)
    first = group.send(vector_payload(row()), 1, 2)[0]
    second = group.send(vector_payload(-row()), 1, 2, sequence=2)[0]
    with pytest.raises(Rejected, match="corrupt"):
        group.open(first._replace(content=second.content), 1)


@settings(max_examples=60)
@given(st.sampled_from(PROTECTED), st.sampled_from([(1,), (1, 2)]), st.integers(0, 2**32))
def test_any_flipped_bit_is_noticed(sealed: Sealed, members: tuple[int, ...], seed: int) -> None:
    """Header, wrapped key or ciphertext: one bit suffices; the original still opens before and after."""
    group, vector = party(sealed), row()
    envelope = group.send(vector_payload(vector), *members)[0]
    damaged = tamper(envelope, stream(seed, "tamper"))
    assert damaged.tampered
    assert not envelope.tampered
    assert damaged.size_bytes == envelope.size_bytes
    with pytest.raises(Rejected, match="corrupt"):
        group.open(damaged, 1)
    assert group.open(envelope, 1) is vector


def test_real_sealing_ignores_the_flag() -> None:
    """Only arithmetic decides in mode true: a set flag on an intact envelope changes nothing."""
    group, vector = party(True), row()
    envelope = group.send(vector_payload(vector), 1, 2)[0]
    assert group.open(envelope._replace(tampered=True), 1) is vector


def test_unsealed_messages_arrive_altered() -> None:
    """Without sealing no node notices a flipped bit in the payload; a damaged length is still unreadable."""
    group, vector = party(False), row()
    envelope = group.send(vector_payload(vector), 1)[0]
    copies = [tamper(envelope, stream(seed, "tamper")) for seed in range(40)]
    altered = [copy for copy in copies if copy[:6] == envelope[:6]]
    assert altered
    assert all(np.sum(np.asarray(group.open(copy, 1)) != vector) == 1 for copy in altered)
    for damaged in (envelope._replace(payload_bytes=41), envelope._replace(code=99)):
        with pytest.raises(Rejected, match="corrupt"):
            group.open(damaged, 1)
    assert envelope._replace(code=99).kind == "unknown"


def test_unreadable_plain_payloads_are_refused() -> None:
    """A control message that no longer parses is corrupt in any mode."""
    group = party(False)
    envelope = group.send(Payload("invite", 2, lambda: b"ab"), 1)[0]
    copies = [tamper(envelope, stream(seed, "tamper")) for seed in range(20)]
    for damaged in (copy for copy in copies if copy[:6] == envelope[:6]):
        with pytest.raises(Rejected, match="corrupt"):
            group.open(damaged, 1)
    assert group.open(envelope, 1) == "invite"


def test_a_mode_refuses_the_envelopes_of_another() -> None:
    """An unsealed envelope does not pass for a sealed one."""
    plain = party(False).send(vector_payload(row()), 1)[0]
    for sealed in PROTECTED:
        with pytest.raises(Rejected, match="corrupt"):
            party(sealed).open(plain, 1)


@pytest.mark.parametrize("sealed", ["sizes", False])
def test_bytes_are_made_for_real_sealing_only(sealed: Sealed) -> None:
    """The other modes never encode, so a run without learning can use them."""

    def encode() -> bytes:
        raise AssertionError("the bytes are not needed")

    group = party(sealed)
    envelopes = group.send(Payload("value", 10**9, encode), 1, 2)
    assert group.open(envelopes[0], 1) == "value"
    group.sealer.close_round(3)


def test_many_readers_cost_one_decryption() -> None:
    """All envelopes share one ciphertext, which is turned to bytes once to seal and once to check."""
    made = []

    def encode() -> bytes:
        made.append(1)
        return b"payload"

    group = party(True)
    envelopes = group.send(Payload("value", 7, encode), 1, 2, 3)
    assert len({id(envelope.content) for envelope in envelopes}) == 1
    assert [group.open(e, reader) for e, reader in zip(envelopes, (1, 2, 3), strict=True)] == ["value"] * 3
    assert len(made) == 2


def test_no_key_seals_two_plaintexts() -> None:
    """Equal payloads give unlike ciphertexts by sequence, kind, direction and life; a name works once."""
    group = party(True)

    def send(kind: str, sequence: int, sender: int, to: list[int], keys: KeyPair) -> bytes:
        receivers = group.receivers(*to)
        address, payload = group.addresses[sender], vector_payload(row())
        content = group.sealer.seal_many(kind, 3, sequence, keys, address, receivers, payload)[0].content
        assert isinstance(content, Ciphertext)
        return content.data

    second_life = group.sealer.draw_keys(1, 0, 3, life=1)
    plan = [("update", 1, 0), ("update", 2, 0), ("model", 1, 0), ("update", 1, 1)]
    for to in ([2], [2, 3]):
        sealed = [send(kind, sequence, sender, to, group.keys[sender]) for kind, sequence, sender in plan]
        sealed.append(send("update", 1, 0, to, second_life))
        assert len(set(sealed)) == len(sealed)
        with pytest.raises(ValueError, match="sealed before"):
            send("update", 1, 0, to, group.keys[0])


def test_equal_seeds_give_equal_ciphertext() -> None:
    """A run repeats to the last byte, sealing included."""
    first, second = (party(True).send(vector_payload(row()), 1, 2)[1] for _ in range(2))
    assert isinstance(first.content, Ciphertext)
    assert isinstance(second.content, Ciphertext)
    assert (first.wrap, first.content.data) == (second.wrap, second.content.data)


def test_a_released_row_must_not_change() -> None:
    """Writing to a row under way is a bug of the simulation, and is said so rather than counted as corrupt."""
    group, vector = party(True), row()
    envelope = group.send(vector_payload(vector), 1, 2)[0]
    vector[0] = 7.0
    with pytest.raises(RuntimeError, match="changed between sealing and opening"):
        group.open(envelope, 1)


def test_a_misstated_size_is_refused() -> None:
    """The size that is counted is checked when bytes are really made."""
    with pytest.raises(RuntimeError, match="stated as 5 bytes has 7"):
        party(True).send(Payload("value", 5, lambda: b"payload"), 1)


def test_late_messages_open_after_the_round_was_closed() -> None:
    """Closing drops the cache only: a replay is still judged by its seal, and nothing is kept for it."""
    group, vector = party(True), row()
    envelope = group.send(vector_payload(vector), 1, 2)[0]
    group.sealer.close_round(3)
    assert group.open(envelope, 1) is vector


def test_no_receiver() -> None:
    """No receivers, no envelopes."""
    assert [party(mode).send(vector_payload(row())) for mode in MODES] == [[], [], []]


@pytest.mark.parametrize("sealed", MODES)
@pytest.mark.parametrize("members", [(1,), (1, 2, 3)])
def test_an_altered_length_field_changes_no_size(sealed: Sealed, members: tuple[int, ...]) -> None:
    """Overhead is what the message really has beyond its payload, also for an intruder's altered copy."""
    envelope = party(sealed).send(vector_payload(row()), *members)[0]
    copies = [tamper(envelope, stream(seed, "length")) for seed in range(100)]
    assert any(copy.payload_bytes != envelope.payload_bytes for copy in copies)
    many = len(members) > 1
    assert {copy.overhead_bytes for copy in copies} == {HEADER_BYTES + seal_size(many=many, sealed=sealed)}


@pytest.mark.parametrize("members", [(1,), (1, 2, 3)])
def test_both_sealing_modes_alter_the_same_part(members: tuple[int, ...]) -> None:
    """The same draw hits the header in both, also if the message was altered before; then reasons are the same."""
    real, counted = (party(mode).send(vector_payload(row()), *members)[0] for mode in PROTECTED)
    for seed in range(60):
        once = [tamper(envelope, stream(seed, "part")) for envelope in (real, counted)]
        twice = [tamper(envelope, stream(seed, "again")) for envelope in once]
        assert once[0][:6] == once[1][:6]
        assert twice[0][:6] == twice[1][:6]
