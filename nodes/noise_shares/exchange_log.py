"""The experimenter's log of the exchange: the noise in each upload, the opened shares, and the corrections used.

It holds true identities, like the message log, and no adversary reads it. Facts are kept for the whole run (they are
small); noise is kept until its round is over.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

import numpy as np

from p2p.log.log import Log
from privacy.noise_shares.uploads import Noise, NoiseExpander, ReceivedShare, Share, Upload, predicted_variance

Opened = tuple[tuple[Share, ...], tuple[ReceivedShare, ...]]
"""A survivor's shares with lost peers: those it sent, those it received."""


def united(one: Opened, other: Opened) -> Opened:
    """Returns the shares of either, each once."""
    return tuple(dict.fromkeys((*one[0], *other[0]))), tuple(dict.fromkeys((*one[1], *other[1])))


@dataclass(frozen=True, slots=True)
class Residual:
    """The residual noise of one aggregation, as variance per coordinate: measured, and predicted by the formulas."""

    round_number: int
    aggregator: int
    contributors: int
    measured: float
    predicted: float


@dataclass(slots=True)
class NoiseShareLog:
    """Facts by round.

    Attributes:
        shares: every share sent or agreed on, by round, sender and receiver.
        uploads: what each client uploads, by round and client; the last one if it exchanged twice.
        replaced: earlier uploads of clients that exchanged again in the round, after a crash.
        opened: the shares that survivors opened to any aggregator of the round, by round and survivor.
        answers: the same for each aggregator on its own, by round, aggregator and survivor.
        repairs: the survivors whose answers entered a sum, by round and aggregator.
        skipped: clients that withheld their update for lack of shares.
        measures: whether residuals are measured; False without learning.
    """

    maker: NoiseExpander
    measures: bool = True
    shares: dict[tuple[int, int, int], Share] = field(default_factory=dict)
    uploads: dict[int, dict[int, Upload]] = field(default_factory=dict)
    replaced: dict[int, list[Upload]] = field(default_factory=dict)
    opened: dict[int, dict[int, Opened]] = field(default_factory=dict)
    answers: dict[tuple[int, int, int], Opened] = field(default_factory=dict)
    repairs: dict[tuple[int, int], tuple[int, ...]] = field(default_factory=dict)
    skipped: list[tuple[int, int]] = field(default_factory=list)
    residuals: list[Residual] = field(default_factory=list)
    _noise: dict[tuple[int, int], Noise] = field(default_factory=dict)

    def noise(self, round_number: int, node: int) -> Noise:
        """Returns the noise in a client's upload."""
        key = (round_number, node)
        if key not in self._noise:
            self._noise[key] = self.maker.upload(self.uploads[round_number][node])
        return self._noise[key]

    def add(self, upload: Upload) -> None:
        """Records what a client uploads; an earlier upload of the round may have left its node and is kept."""
        mine = self.uploads.setdefault(upload.round_number, {})
        if upload.node in mine:
            self.replaced.setdefault(upload.round_number, []).append(mine[upload.node])
        mine[upload.node] = upload

    def released(self, round_number: int, nodes: Collection[int]) -> list[Upload]:
        """Returns all uploads that these clients made in a round, by client."""
        every = [*self.uploads.get(round_number, {}).values(), *self.replaced.get(round_number, ())]
        # Sorted, so that columns of the accountant do not depend on the order of events; equal nodes keep theirs.
        return sorted((one for one in every if one.node in nodes), key=lambda upload: upload.node)

    def repair(self, round_number: int, aggregator: int, node: int) -> Noise:
        """Returns the correction that a survivor's answer to an aggregator adds to its sum."""
        # Negative: added to the sum, it takes off what the upload of the survivor had added.
        return -self.maker.parts(*self.answers[round_number, aggregator, node])

    def open(self, round_number: int, aggregator: int, node: int, opened: Opened) -> None:
        """Records the shares that a survivor opens to an aggregator, beside those it has opened to others."""
        self.answers[round_number, aggregator, node] = opened
        # A second leader asks about other missing peers; what the first was told stays known.
        of_round = self.opened.setdefault(round_number, {})
        of_round[node] = united(of_round.get(node, ((), ())), opened)

    def close(self, round_number: int, log: Log) -> list[Residual]:
        """Measures every aggregation of a round that is not void."""
        table = log.aggregations
        rows = (table["round"] == round_number) & ~table["void"]
        found = []
        for aggregator in np.unique(table["aggregator"][rows]).tolist():
            contributors = table["contributor"][rows & (table["aggregator"] == aggregator)].tolist()
            found.append(self._residual(round_number, aggregator, contributors))
        self.residuals += found
        return found

    def forget(self, round_number: int) -> None:
        """Frees a round's noise; its facts stay."""
        self.maker.forget(round_number)
        self._noise = {key: noise for key, noise in self._noise.items() if key[0] != round_number}
        # Uploads and opened shares stay: the privacy account reads them after the run.
        self.shares = {key: share for key, share in self.shares.items() if key[0] != round_number}

    def _residual(self, round_number: int, aggregator: int, contributors: Sequence[int]) -> Residual:
        repaired = self.repairs.get((round_number, aggregator), ())
        parts = {node: self.answers[round_number, aggregator, node] for node in repaired}
        opened = {(node, share) for node, (sent, _) in parts.items() for share in sent}
        opened |= {(node, one.share) for node, (_, taken) in parts.items() for one in taken}
        uploads = [self.uploads[round_number][node] for node in contributors]
        # Summed in float64 and apart from the updates: the residual is the noise alone, not the error of the model.
        measured = np.nan
        if self.measures:
            noise = np.zeros(self.maker.dimension)
            for node in contributors:
                noise += self.noise(round_number, node)
            for node in repaired:
                noise += self.repair(round_number, aggregator, node)
            # The mean of the noise is known to be zero, so its square estimates the variance without a correction.
            measured = float(np.mean(np.square(noise)))
        predicted = predicted_variance(uploads, opened)
        return Residual(round_number, aggregator, len(contributors), measured, predicted)
