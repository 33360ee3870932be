"""Shakespeare by role: sequences, the character after each, who holds them, and what is held out."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from nodes.datasets.plays import ALPHABET, Shakespeare
from nodes.datasets.preparation import client_records
from p2p.config.errors import UserError


def write_plays(folder: Path) -> None:
    """Two roles that speak enough and one that does not; one of them in two speeches."""
    said = [
        ("A", "FIRST", "abcdefghij"),
        ("B", "OTHER", "x" * 25),
        ("A", "FIRST", "klmnopqrstuv~"),
        ("A", "MUTE", "hi"),
    ]
    lines = (json.dumps({"play": play, "role": role, "text": text}) for play, role, text in said)
    (folder / "shakespeare").mkdir()
    (folder / "shakespeare" / "shakespeare-speeches.jsonl").write_text("\n".join(lines), encoding="utf-8")


def read(records: np.ndarray[tuple[int, ...], np.dtype[np.float32]]) -> list[str]:
    """Codes as text."""
    return ["".join(ALPHABET[int(code)] for code in row) for row in records]


def test_a_role_predicts_what_it_says_later(tmp_path: Path) -> None:
    """Records follow each other, the last are held out, and an unknown character is a space."""
    write_plays(tmp_path)
    plays = Shakespeare(sequence=4, least=3, test_share=0.4)
    loaded = plays.load(tmp_path, 0)
    assert loaded.client is not None
    assert read(loaded.train_x[loaded.client == 0]) == ["abcd", "efgh", "ij\nk"]
    assert "".join(ALPHABET[code] for code in loaded.train_y[loaded.client == 0]) == "eil"
    assert read(loaded.test_x)[:2] == ["lmno", "pqrs"]
    assert "".join(ALPHABET[code] for code in loaded.test_y)[:2] == "pt"
    assert set(loaded.client.tolist()) == {0, 1}
    assert len(ALPHABET) == len(set(ALPHABET)) == loaded.classes == 80
    overlapping = Shakespeare(sequence=4, least=3, stride=1, most=5).load(tmp_path, 0)
    assert read(overlapping.train_x)[:2] == ["abcd", "bcde"]
    assert len(overlapping.train_y) + len(overlapping.test_y) == 10


def test_every_client_is_a_role(tmp_path: Path) -> None:
    """And more clients than roles are refused."""
    write_plays(tmp_path)
    _, shards = client_records(Shakespeare(sequence=4, least=3), 2, tmp_path, 1)
    assert [len(shard) for shard in shards] == [4, 5]
    with pytest.raises(UserError, match="set clients to at most 2"):
        client_records(Shakespeare(sequence=4, least=3), 3, tmp_path, 1)


def test_what_is_missing_or_damaged_is_named(tmp_path: Path) -> None:
    """With the place where to get it."""
    with pytest.raises(UserError, match=r"shakespeare-speeches.*TheMITTech"):
        Shakespeare().load(tmp_path, 0)
    write_plays(tmp_path)
    with pytest.raises(UserError, match=r"data.least = 900"):
        Shakespeare(sequence=4, least=900).load(tmp_path, 0)
    (tmp_path / "shakespeare" / "shakespeare-speeches.jsonl").write_text('{"play": 1}\n', encoding="utf-8")
    with pytest.raises(UserError, match="is not one object with play, role and text"):
        Shakespeare().load(tmp_path, 0)
