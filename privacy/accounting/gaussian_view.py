"""The one formula: what an observer learns about each client from the contents of one round.

Given the past, a round's contributions are constants, so an observer of `A x + N s` (s independent Gaussian noise with
variances D, without what the observer knows) has

    mu_u^2 = Delta_u^2 A_u^T (N D N^T)^+ A_u        infinite if A_u leaves the range of N D N^T

about client u (docs/privacy.md has the proof). All views use this module; the functions differ only in which rows they
stack, and so in what algebra they save.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from p2p.log.records import NO_NODE
from privacy.accounting.content_log import Floats, Ids, RoundContents

# Eigenvalues below this part of the largest, times the number of rows, may be rounding errors: they count as no noise.
_SILENT = 1e-13
# A unit vector with more than this of its squared length in a noiseless direction is seen without noise.
_SHOWN = 1e-18


def joint_mu2(
    contents: RoundContents, seen: Collection[int] | Ids, team: Collection[int], count: int, *, sums: bool
) -> Floats:
    """Returns mu^2 about each of `count` clients for a team that sees these releases and, if asked, all aggregates.

    Guarantees:
        exact for the rows given, with factors on shares that are exactly 1; a share with a random factor counts as
        known, which can only raise the result. Zero about the team itself.
    """
    members = np.array(sorted(team), dtype=np.int64)
    foreign = ~np.isin(contents.clients, members)
    rows = np.unique(np.concatenate([np.asarray(seen, dtype=np.int64), contents.opened if sums else _NONE]))
    rows = rows[foreign[rows]]
    # What is seen alone is subtracted from the aggregates: equivalent rows, in which no release occurs twice.
    left = contents.sums * foreign if sums else np.zeros((0, len(foreign)))
    left[:, rows] = 0.0
    each = np.zeros(len(foreign))
    noise = None if contents.shares is None else _share_rows(contents, rows, left, members, sums)
    # A release without hidden shares is independent of everything else, so its block of the covariance is one number.
    alone = np.ones(len(rows), dtype=np.bool_) if noise is None else np.diff(noise.indptr)[: len(rows)] == 0
    each[rows[alone]] = contents.mu2()[rows[alone]]
    found = by_client(each[None], contents, count)[0]
    gram = (left * contents.variance) @ left.T
    if sums:
        gram += np.diag(contents.hidden_sum_variance(members.tolist()))
    if noise is None:
        hidden = _quadratic_forms(gram[None], left) * np.square(contents.sensitivity)
        return np.asarray(found + by_client(hidden, contents, count)[0])
    noise, rows = noise[np.append(~alone, np.ones(len(left), dtype=np.bool_))], rows[~alone]
    covariance = (noise @ noise.T).toarray()
    place = np.arange(len(rows))
    covariance[place, place] += contents.variance[rows]
    covariance[len(rows) :, len(rows) :] += gram
    form = np.concatenate([np.zeros((len(rows), len(foreign))), left])
    form[place, rows] = 1.0
    return np.asarray(found + _worst_moves(contents, covariance, form, count))


def sums_mu2(contents: RoundContents, teams: Sequence[Collection[int]], count: int, tail: float = 0.0) -> Floats:
    """Returns [team, client]: mu^2 of teams that see the aggregates and no single release.

    Args:
        tail: probability with which the noise of random factors on shares may be smaller than it is counted.

    Guarantees:
        exact, as in `joint_mu2`. With random factors (tau > 0) and one aggregate: holds with probability 1 - tail
        over the factors, which are independent of data (see `_least_residual`).
    """
    if len(contents.opened) and contents.shares is not None:
        return np.array([joint_mu2(contents, (), team, count, sums=True) for team in teams]).reshape(-1, count)
    foreign = foreign_to(teams, contents.clients)
    form = contents.sums.copy()
    form[:, contents.opened] = 0.0
    outer = np.einsum("kn,ln->nkl", form, form).reshape(form.shape[1], len(form) ** 2)
    covariance = (foreign * contents.variance) @ outer
    if contents.sum_variance is not None:
        covariance = covariance + [np.diag(contents.hidden_sum_variance(team)).ravel() for team in teams]
    if contents.shares is not None:
        covariance = covariance + _residuals(contents, form, teams, tail)
    size = len(form)
    quadratic = _quadratic_forms(covariance.reshape(len(teams), size, size), form) * np.square(contents.sensitivity)
    quadratic[:, contents.opened] += contents.mu2()[contents.opened]
    return by_client(np.where(foreign, quadratic, 0.0), contents, count)


def foreign_to(teams: Sequence[Collection[int]], clients: Ids) -> NDArray[np.bool_]:
    """Returns [team, release]: whether a release is of a client outside the team; `clients` are the releases'."""
    # Most teams are single nodes, and looking each up by itself would take longer than all that follows.
    alone = np.array([next(iter(team)) if len(team) == 1 else NO_NODE for team in teams], dtype=np.int64)
    found = clients[None, :] != alone[:, None]
    for row, team in enumerate(teams):
        if len(team) > 1:
            found[row] = ~np.isin(clients, list(team))
    return np.asarray(found)


def by_client(each: Floats, contents: RoundContents, count: int) -> Floats:
    """Returns [observer, client] from [observer, release]; releases of one client add up, as independent noise does."""
    found = np.zeros((len(each), count))
    order = np.argsort(contents.clients, kind="stable")
    distinct, firsts = np.unique(contents.clients[order], return_index=True)
    if len(distinct):
        found[:, distinct] = np.add.reduceat(each[:, order], firsts, axis=1)
    return found


_NONE = np.zeros(0, dtype=np.int64)


def _quadratic_forms(covariance: Floats, form: Floats) -> Floats:
    """Returns a' K^+ a for each covariance K and column a of `form`; infinite where a has a noiseless direction."""
    if not form.any():
        return np.zeros((len(covariance), form.shape[1]))
    values, vectors = np.linalg.eigh(covariance)
    parts = np.square(vectors.swapaxes(1, 2) @ form)
    silent, inverse = _inverted(values)
    shown = np.einsum("tk,tkn->tn", silent, parts) > _SHOWN * np.square(form).sum(axis=0)
    # A tiny eigenvalue that is not silent may overflow; infinity is the safe side.
    with np.errstate(over="ignore"):
        found: Floats = np.einsum("tk,tkn->tn", inverse, parts)
    found[shown] = np.inf
    return found


def _inverted(values: Floats) -> tuple[NDArray[np.bool_], Floats]:
    """Returns which eigenvalues are no noise, and the inverses of the others."""
    largest = np.maximum(values.max(axis=-1, keepdims=True), 0.0)
    silent = values <= largest * values.shape[-1] * _SILENT
    return silent, np.where(silent, 0.0, 1.0 / np.where(silent, 1.0, values))


def _worst_moves(contents: RoundContents, covariance: Floats, form: Floats, count: int) -> Floats:
    """Returns mu^2 by client where a client may have released several times into one covariance.

    With T releases, `mu^2 = max over moves h_t of sum_st S_st <h_s, h_t>`, at most `sum |S|` and `T lambda_max(S)`.
    """
    columns = np.flatnonzero(form.any(axis=0))
    clients = contents.clients[columns]
    scaled = form[:, columns] * contents.sensitivity[columns]
    each = _quadratic_forms(covariance[None], form[:, columns])[0] * np.square(contents.sensitivity[columns])
    total = np.zeros(count)
    np.add.at(total, clients, each)
    often, times = np.unique(clients, return_counts=True)
    if (times > 1).any():
        values, vectors = np.linalg.eigh(covariance)
        inverse = _inverted(values)[1]
        for client in often[times > 1].tolist():
            mine = np.flatnonzero(clients == client)
            if np.isfinite(total[client]):
                part = vectors.T @ scaled[:, mine]
                total[client] = _several_moves(part.T @ (inverse[:, None] * part))
    return total


def _several_moves(moves: Floats) -> float:
    return float(min(np.abs(moves).sum(), len(moves) * np.linalg.eigvalsh(moves)[-1]))


def _known_shares(contents: RoundContents, team: Collection[int]) -> NDArray[np.bool_]:
    """Returns the shares whose noise the team knows."""
    known = np.zeros(len(contents.share_noise.variance), dtype=np.bool_)
    pairs = contents.share_noise.known
    known[pairs[np.isin(pairs[:, 0], list(team)), 1]] = True
    return known


def _share_rows(contents: RoundContents, rows: Ids, left: Floats, team: Ids, sums: bool) -> Any:
    """Returns the sparse matrix [rows, shares] of hidden share noise in the releases seen and in the aggregates."""
    from scipy import sparse

    shares = contents.share_noise
    hidden = ~_known_shares(contents, team.tolist()) & (shares.spread == 0.0)
    repairs = shares.repairs if sums else np.zeros((0, len(hidden)))
    aggregates = sparse.csr_matrix(sparse.csr_matrix(left) @ shares.factor + repairs)
    noise = sparse.vstack([shares.factor[rows], aggregates]).tocsr() @ sparse.diags(np.sqrt(shares.variance) * hidden)
    noise.eliminate_zeros()
    return noise


def _residuals(contents: RoundContents, form: Floats, teams: Sequence[Collection[int]], tail: float) -> Floats:
    """Returns [team, aggregates^2]: the covariance that share noise leaves in the aggregates."""
    shares = contents.share_noise
    left = np.asarray(form @ shares.factor + shares.repairs)
    # A share that was sent and not taken is plain Gaussian noise; one taken with a random factor is counted below.
    sent = left * (np.asarray(form @ (shares.factor < 0)) == 0) > 0
    left = np.where(shares.spread == 0.0, left, np.where(sent, left, 0.0))
    columns = np.flatnonzero(left.any(axis=0))
    hidden = np.array([~_known_shares(contents, team) for team in teams]).reshape(len(teams), -1)
    outer = np.einsum("ks,ls->skl", left[:, columns], left[:, columns]).reshape(len(columns), len(form) ** 2)
    found: Floats = (hidden[:, columns] * shares.variance[columns]) @ outer
    # Several aggregates share factors; their joint distribution is not bounded here, so nothing is counted.
    if len(form) == 1 and tail > 0.0 and shares.spread.any():
        both = np.asarray(abs(shares.factor).T @ (form[0] != 0.0)).ravel() == 2
        both &= (shares.repairs[0] == 0.0) & (shares.spread > 0.0)
        for place in range(len(teams)):
            found[place] += _least_residual(
                (shares.spread**2 * shares.variance)[both & hidden[place]], tail / shares.coordinates
            )
    return found


def _least_residual(variances: Floats, tail: float) -> float:
    """Returns what `sum_i variances_i Z_i^2`, Z standard normal, exceeds with probability 1 - tail at least.

    A share that one upload adds and another takes off with factor s ~ N(1, tau^2) leaves `(1 - s)^2 sigma^2`. The sum
    is at least the j-th largest of the variances times a chi-square number with j degrees, whichever j is best.
    """
    from scipy.stats import chi2

    largest_first = np.sort(variances)[::-1]
    return float((largest_first * chi2.ppf(tail, np.arange(1, len(variances) + 1))).max(initial=0.0))
