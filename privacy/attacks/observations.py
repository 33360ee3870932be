"""What an observer saw, as attacks read it: rows, vectors, snapshots, knowledge, and what the scenario makes public.

Nothing here tells true identities (except to one who holds the proxy's table), the seed, or rows of the message log.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from p2p.log.records import KIND
from p2p.random_streams import stream
from privacy.attacks.observation_columns import IN

if TYPE_CHECKING:
    from privacy.attacks.exposure import Mixing
    from privacy.attacks.membership.ceiling import Claim


@dataclass(frozen=True, slots=True)
class Observations:
    """Rows in order of time; `sender` holds pseudonyms, all zero where there is none."""

    columns: Mapping[str, NDArray[Any]]
    sender: NDArray[np.uint8]

    def __len__(self) -> int:
        return len(self.sender)

    def __getitem__(self, name: str) -> NDArray[Any]:
        return self.columns[name]

    def addresses(self, rows: NDArray[np.int64]) -> list[bytes]:
        """Returns the pseudonyms of rows."""
        return [self.sender[row].tobytes() for row in rows.tolist()]

    def received(self, kind: str, round_number: int | None = None) -> NDArray[np.int64]:
        """Returns the rows of a kind that the observer received, in one round or in all."""
        mine = (self.columns["kind"] == KIND[kind]) & (self.columns["direction"] == IN)
        if round_number is not None:
            mine &= self.columns["round"] == round_number
        found: NDArray[np.int64] = np.flatnonzero(mine)
        return found

    def rounds(self, kind: str) -> list[int]:
        """Returns the rounds in which something of a kind was received, in order."""
        found: list[int] = np.unique(self.columns["round"][self.received(kind)]).tolist()
        return found


class Records(NamedTuple):
    """Records with their labels; `numbers` are their places in the training set."""

    features: NDArray[np.float32]
    labels: NDArray[np.int64]
    numbers: NDArray[np.int64]

    def at(self, places: NDArray[np.int64]) -> Records:
        """Returns some of them."""
        return Records(self.features[places], self.labels[places], self.numbers[places])


def join_records(parts: Sequence[Records]) -> Records:
    """Returns all records in order."""
    return Records(
        np.concatenate([one.features for one in parts]),
        np.concatenate([one.labels for one in parts]),
        np.concatenate([one.numbers for one in parts]),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Knowledge:
    """What an adversary knows besides; records are loaded when asked for.

    Attributes:
        auxiliary: records of the same distribution that no client trains on
        own_records: the records of the observer's own nodes
        members: records of each victim that are known members; they are not scored
        victims: the clients whose members are asked for
        labels: of the records that the update of a row was trained on, sorted; None if not known
        batch_size: of local training, `all` if one batch holds all records; None if not known
        epochs: of local training; None if not known
    """

    auxiliary: Callable[[], Records] | None = None
    own_records: Callable[[], Records] | None = None
    members: Callable[[int], Records] | None = None
    victims: tuple[int, ...] = ()
    labels: Callable[[int], NDArray[np.int64]] | None = None
    batch_size: int | str | None = None
    epochs: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Position:
    """What decides whether an attack is possible at all, known before the run.

    Attributes:
        kind: peer, coalition, leader, server, eavesdropper, model or proxy
        vectors: whether it can read contents
        snapshots: whether models of the view are kept
        knows: the `knows` section, by key
        public: the parts of the scenario that are public, by name: `model, training, objective, protocol,
            anonymity, privacy, noise_shares, reserved, clients, rounds, learning, data_shape, classes, pixels,
            protocol_kind, mixing_unknown` (why the graphs are not known), `mixing_assumes` (what knowing them rests
            on); never the seed
    """

    name: str
    kind: str
    nodes: tuple[int, ...]
    vectors: bool
    snapshots: bool
    knows: Mapping[str, Any]
    public: Mapping[str, Any] = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """All that an attack may read.

    Attributes:
        kept_rounds: rounds whose vectors were kept
        model_rounds: rounds after which models were kept; 0 is the first model, which all have
    """

    position: Position
    rows: Observations
    kept_rounds: Sequence[int]
    model_rounds: Sequence[int]
    knowledge: Knowledge
    _tensor: Callable[[str], NDArray[np.float32]]

    def vectors(self, round_number: int) -> NDArray[np.float32]:
        """Returns the distinct vectors of a round's messages [k, d]; the column `vector` numbers them."""
        return self._tensor(f"round-{round_number}")

    def with_noise(self, std: float, seed: int) -> View:
        """Returns the view as it would be if every vector had that much more normal noise on each coordinate."""

        def noisier(name: str) -> NDArray[np.float32]:
            values = self._tensor(name)
            if not name.startswith("round-"):
                return values
            noise = stream(seed, "added noise", name).standard_normal(values.shape, dtype=np.float32)
            return values + np.float32(std) * noise

        return replace(self, _tensor=noisier)

    def models(self, round_number: int) -> NDArray[np.float32]:
        """Returns the models of the view after a round [m, d]: of the observer's nodes, or the round's aggregate."""
        return self._tensor(f"model-{round_number}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Truth:
    """What guesses are scored by; attacks do not get it.

    Attributes:
        origin: the true sender of each row
        trained_on: the records that a client trained on
        kept_out: records of a victim that it did not train on (`reserved.victims`)
        test: the global test set, which no client has
        noise_std: mean deviation of the noise on each coordinate of an update
        claims: epsilons that the run states about this position
        tried: comparisons with claims that were made on this run before
        mixing: what was averaged in each round of gossip, and whether all of it was as planned
    """

    origin: NDArray[np.int64]
    trained_on: Callable[[int], Records]
    kept_out: Callable[[int], Records]
    test: Callable[[], Records]
    victims: tuple[int, ...] = ()
    noise_std: float = 0.0
    claims: Sequence[Claim] = ()
    tried: int = 0
    mixing: Callable[[], tuple[Sequence[Mixing], bool]] = lambda: ((), True)
    seed: int = 0
    """For the scorer's own draws, such as bootstrap intervals."""
