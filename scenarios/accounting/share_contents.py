"""The noise shares of a round as the accountant takes them: which release carries them, and who knows them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from privacy.accounting.accountant import RECEIVERS
from privacy.accounting.content_log import Floats, Ids, ShareNoise
from privacy.noise_shares.uploads import Share, Upload

if TYPE_CHECKING:
    from nodes.noise_shares.exchange_log import NoiseShareLog
    from nodes.noise_shares.run_exchange import NoiseSharing


def share_noise(
    number: int,
    uploads: Sequence[Upload],
    sharing: NoiseSharing,
    aggregators: Ids,
    received: Mapping[str, Ids],
    *,
    in_the_clear: bool,
) -> ShareNoise:
    """Returns the shares in these uploads.

    Args:
        aggregators: the node of each of the round's aggregates.
        received: pairs (origin, destination) of shares and corrections that reached their destination.
        in_the_clear: whether a listener could read the shares on the wire.
    """
    from scipy import sparse

    column, std = _columns(uploads)
    entries = [
        *((row, column[_name(share)], share.std) for row, upload in enumerate(uploads) for share in upload.sent),
        *(
            (row, column[_name(one.share)], -one.share.std)
            for row, upload in enumerate(uploads)
            for one in upload.taken
        ),
    ]
    table = np.array(entries, dtype=np.float64).reshape(-1, 3)
    places = (table[:, 0].astype(np.int64), table[:, 1].astype(np.int64))
    spread = np.zeros(len(column))
    for upload in uploads:
        for one in upload.taken:
            place = column[_name(one.share)]
            spread[place] = max(one.tau, spread[place])
    maker, settings = sharing.share_log.maker, sharing.plan.settings
    agreed = settings.share_as == "pairwise"
    return ShareNoise(
        variance=np.square(std),
        factor=sparse.csr_matrix((table[:, 2] / std[places[1]], places), shape=(len(uploads), len(column))),
        repairs=_repairs(number, sharing.share_log, aggregators, column) / std,
        spread=spread,
        known=_known(number, sharing.share_log, column, received, agreed=agreed, overheard=in_the_clear and not agreed),
        coordinates=maker.dimension if maker.tau_mode == "vector" else 1,
    )


_Name = tuple[int, int, bytes]


def _name(share: Share) -> _Name:
    """Returns what identifies a share's noise: with agreed seeds its two ends may scale it differently."""
    return share.sender, share.receiver, share.seed


def _columns(uploads: Sequence[Upload]) -> tuple[dict[_Name, int], Floats]:
    """Returns a number for each share, and its standard deviation at the end that is found first: its sender's."""
    shares = [share for upload in uploads for share in upload.sent]
    shares += [one.share for upload in uploads for one in upload.taken]
    first: dict[_Name, float] = {}
    for share in shares:
        first.setdefault(_name(share), share.std)
    return {name: place for place, name in enumerate(first)}, np.array(list(first.values()), dtype=np.float64)


def _repairs(number: int, share_log: NoiseShareLog, aggregators: Ids, column: Mapping[_Name, int]) -> Floats:
    """Returns what corrections took off each aggregate: for each opened part the negative of what the upload added."""
    found = np.zeros((len(aggregators), len(column)))
    for place, aggregator in enumerate(aggregators.tolist()):
        for node in share_log.repairs.get((number, aggregator), ()):
            sent, taken = share_log.answers[number, aggregator, node]
            for share in sent:
                found[place, column[_name(share)]] -= share.std
            for one in taken:
                found[place, column[_name(one.share)]] += one.share.std
    return found


def _known(
    number: int,
    share_log: NoiseShareLog,
    column: Mapping[_Name, int],
    received: Mapping[str, Ids],
    *,
    agreed: bool,
    overheard: bool,
) -> Ids:
    """Returns pairs (observer, share): the ends, as far as the share reached them, and those it was opened to."""
    came = set(map(tuple, received["share"].tolist()))
    pairs: list[tuple[int, int]] = []
    for (sender, receiver, _), place in column.items():
        pairs.append((sender, place))
        if agreed or (sender, receiver) in came:
            pairs.append((receiver, place))
        if overheard:
            pairs.append((RECEIVERS, place))
    answered = set(map(tuple, received["correction"].tolist()))
    for when, asker, survivor in share_log.answers:
        if when == number and ((survivor, asker) in answered or survivor == asker):
            # All that the survivor opened in the round: an asker that asks twice knows both answers.
            sent, taken = share_log.opened[number][survivor]
            names = [_name(share) for share in (*sent, *(one.share for one in taken))]
            places = [column[name] for name in names if name in column]
            pairs += [(observer, place) for place in places for observer in (asker, RECEIVERS)]
    return np.array(sorted(set(pairs)), dtype=np.int64).reshape(-1, 2)
