"""Shakespeare's plays by role, for next-character prediction: a client is a role, a record some of its speech."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, ClassVar

import numpy as np
from annotated_types import Ge, Interval
from numpy.typing import NDArray

from nodes.datasets.client_split import ByClient
from nodes.datasets.dataset import Dataset, Floats, Ints, SplitChoice
from nodes.datasets.original_formats import Source, malformed, read_bytes
from p2p.config.errors import UserError

# 80 characters, as LEAF has them, with $ in the place of }. A character that is not among them counts as a space.
ALPHABET = "\n !\"$&'(),-.0123456789:;>?ABCDEFGHIJKLMNOPQRSTUVWXYZ[]abcdefghijklmnopqrstuvwxyz"
_CODES = {letter: code for code, letter in enumerate(ALPHABET)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Shakespeare:
    """37 plays, 1,377 roles: `sequence` characters of a role's speeches, labelled with the character that follows.

    Attributes:
        sequence: characters per record
        stride: characters from the beginning of one record to that of the next; by default they do not overlap
        least: roles with fewer records are left out
        most: records used of each role, the first ones; none uses all
        test_share: share of each role's records, the last ones, that are held out
        test_records: held-out records in the global test set, spread evenly over all roles
        split: who holds which records; by_client makes every client a role
    """

    sequence: Annotated[int, Ge(1)] = 80
    stride: Annotated[int, Ge(1)] | None = None
    least: Annotated[int, Ge(2)] = 10
    most: Annotated[int, Ge(2)] | None = None
    test_share: Annotated[float, Interval(gt=0, lt=1)] = 0.2
    test_records: Annotated[int, Ge(1)] = 1000
    split: SplitChoice = field(default=ByClient())
    client: ClassVar[str] = "role"
    SOURCE: ClassVar[Source] = Source(
        "shakespeare",
        "shakespeare",
        "the plays at https://github.com/TheMITTech/shakespeare: one JSON object with play, role and text a line",
        {"shakespeare-speeches.jsonl.gz": "SHA-256 b413a1fcc52df1dde16632f45f0efb1b217166b2222c4806f3615409e8e98ddc"},
    )

    def class_counts(self) -> None:
        """Returns None: unknown before the plays are read."""

    def records(self) -> None:
        """Returns None: unknown before the plays are read."""

    def pooled(self) -> tuple[str, ...]:
        """Returns nothing: characters are coded by a fixed alphabet."""
        return ()

    def form(self) -> tuple[tuple[int, ...], int]:
        """Returns the shape of one record and the number of characters."""
        return (self.sequence,), len(ALPHABET)

    def load(self, data_dir: Path, seed: int) -> Dataset:
        """Loads the roles that speak enough, in the order of their names."""
        texts = read_roles(self.SOURCE.locate(data_dir)[0])
        # By name and not by the order of the file, so that client numbers do not depend on it.
        roles = [self._windows(texts[role]) for role in sorted(texts)]
        roles = [role for role in roles if len(role[1]) >= self.least]
        if not roles:
            raise UserError(f"data.least = {self.least}: no role has so many records; lower it, sequence or stride")
        train, test = zip(*(self._hold_out(*role) for role in roles), strict=True)
        owners = np.repeat(np.arange(len(roles)), [len(labels) for _, labels in train])
        records, labels = (np.concatenate(column) for column in zip(*train, strict=True))
        held, truth = (np.concatenate(column) for column in zip(*test, strict=True))
        # Evenly over all roles, which stand one after the other; nothing is drawn.
        kept = np.linspace(0, len(truth) - 1, min(self.test_records, len(truth))).round().astype(np.int64)
        return Dataset(records, labels, held[kept], truth[kept], len(ALPHABET), owners)

    def _windows(self, text: str) -> tuple[Floats, Ints]:
        """Returns a role's sequences as codes, and the code of the character after each."""
        codes = np.array([_CODES.get(letter, _CODES[" "]) for letter in text], dtype=np.int64)
        # The last sequence ends one character before the end, which is its label.
        starts = np.arange(0, max(len(codes) - self.sequence, 0), self.stride or self.sequence)[: self.most]
        windows = codes[starts[:, None] + np.arange(self.sequence)]
        labels: NDArray[np.int64] = codes[starts + self.sequence]
        # Float, as all records are; the model takes whole numbers from them.
        return windows.astype(np.float32), labels

    def _hold_out(self, records: Floats, labels: Ints) -> tuple[tuple[Floats, Ints], tuple[Floats, Ints]]:
        """Splits off the last records, at least one and not all: what a role says later is to be predicted."""
        kept = len(labels) - min(max(round(self.test_share * len(labels)), 1), len(labels) - 1)
        return (records[:kept], labels[:kept]), (records[kept:], labels[kept:])


def read_roles(path: Path) -> dict[str, str]:
    """Returns the speeches of each role of each play, joined in their order."""
    speeches: dict[str, list[str]] = {}
    try:
        for line in read_bytes(path).decode("utf-8").splitlines():
            said = json.loads(line)
            speeches.setdefault(f"{said['play']}, {said['role']}", []).append(str(said["text"]))
    except (UnicodeDecodeError, json.JSONDecodeError, KeyError, TypeError) as error:
        raise malformed(path, f"is not one object with play, role and text a line ({error})") from error
    return {role: "\n".join(parts) for role, parts in speeches.items()}
