"""Mixing speed of averaging over a graph: weights, spectral gap, connectivity.

Edges are arrays [e, 2] of (sender, receiver) over the nodes 0..n-1. A weight matrix is a sparse scipy array;
row i holds the weights of node i's next model, and every row sums to one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from scipy.sparse import csr_array

NO_MODULUS = 1e-12
"""What is returned for a second modulus of zero, and how closely all of them are computed."""
_BASIS = 200
"""Vectors of the iteration. With the usual 20 it does not end where moduli lie close together, as on directed rings and
on random directed graphs; a graph of fewer nodes is taken as a whole."""
_RESTARTS = 100
"""How often the iteration begins again from its best vectors: more take minutes on graphs of thousands, in vain."""
_PADDING = 4
"""Coordinates added to the matrix: ARPACK needs three for one eigenvalue, and does not start from a zero matrix.

One has the eigenvalue `NO_MODULUS`, the others zero, so the largest modulus stays what it is.
"""


def edges_of(graph: Any) -> NDArray[np.int64]:
    """Returns the sorted edges of a networkx graph, in both directions if it is undirected."""
    pairs = np.array(list(graph.edges()), dtype=np.int64).reshape(-1, 2)
    if not graph.is_directed():
        pairs = np.concatenate([pairs, pairs[:, ::-1]])
    return pairs[np.lexsort((pairs[:, 1], pairs[:, 0]))]


def uniform_weights(edges: NDArray[np.int64], n: int, include_own: bool = True) -> csr_array:
    """Returns the unweighted mean over received models, with or without the receiver's own.

    Doubly stochastic if every node sends as many messages as it receives. A node that receives nothing keeps
    its own model.
    """
    received = np.bincount(edges[:, 1], minlength=n)
    # A row of zeros would not sum to one, so a node without input averages its own model alone.
    keeps = np.flatnonzero(np.ones(n, dtype=np.bool_) if include_own else received == 0)
    rows = np.concatenate([edges[:, 1], keeps])
    columns = np.concatenate([edges[:, 0], keeps])
    parts = np.bincount(rows, minlength=n)
    return _matrix(1.0 / parts[rows], rows, columns, n)


def metropolis_weights(edges: NDArray[np.int64], n: int) -> csr_array:
    """Returns Metropolis-Hastings weights 1 / (1 + max degree of the two ends) (Xiao, Boyd, Kim 2007).

    The remainder to one is each node's own weight.

    Guarantees:
        Symmetric and doubly stochastic for any undirected graph (both directions present in `edges`).
    """
    # Where all edges carried something, the degrees as planned are those that arrived.
    return arrived_weights(edges, np.bincount(edges[:, 1], minlength=n))


def arrived_weights(edges: NDArray[np.int64], degree: NDArray[np.int64]) -> csr_array:
    """Returns Metropolis-Hastings weights of the edges over which something arrived; the own weight is the rest to one.

    Args:
        degree: neighbours of each node in the graph as planned.
    """
    n = len(degree)
    weights = _edge_weights(edges, degree)
    # What a lost message would have weighed stays with the receiver, so rows still sum to one.
    own = 1.0 - np.bincount(edges[:, 1], weights=weights, minlength=n)
    nodes = np.arange(n)
    rows, columns = np.concatenate([edges[:, 1], nodes]), np.concatenate([edges[:, 0], nodes])
    return _matrix(np.concatenate([weights, own]), rows, columns, n)


def metropolis_edge_weights(edges: NDArray[np.int64]) -> NDArray[np.float64]:
    """Returns the Metropolis-Hastings weight of each edge of an undirected graph, given in both directions."""
    return _edge_weights(edges, np.bincount(edges[:, 1]))


def second_eigenvalue(weights: csr_array) -> float:
    """Returns the second largest eigenvalue modulus: the asymptotic factor by which disagreement shrinks per round.

    It is the spectral radius of W - 11'/n, whose eigenvalues are those of W with one 1 replaced by 0 (Brauer), since
    the rows of W sum to one. Found by Arnoldi iteration, whatever the size.
    """
    from scipy.sparse.linalg import ArpackError, LinearOperator, eigs

    n = weights.shape[0]

    def apply(vector: NDArray[np.float64]) -> NDArray[np.float64]:
        # An operator, since W - 11'/n itself would be dense.
        inside, result = vector[:n], np.zeros(n + _PADDING)
        result[:n] = weights @ inside - inside.mean()
        result[n] = NO_MODULUS * vector[n]
        return result

    # ARPACK's default start vector is random; a fixed one keeps the result reproducible.
    start = np.sin(np.arange(1.0, n + _PADDING + 1.0))
    padded = LinearOperator((n + _PADDING, n + _PADDING), matvec=apply, dtype=np.float64)
    try:
        found = eigs(
            padded,
            k=1,
            which="LM",
            v0=start,
            tol=NO_MODULUS,
            return_eigenvectors=False,
            ncv=min(n + _PADDING, _BASIS),
            maxiter=_RESTARTS,
        )
    except ArpackError as error:
        raise ValueError(f"the spectral gap of these {n} nodes was not found; take a smaller graph") from error
    return float(np.abs(found).max())


def spectral_gap(weights: csr_array) -> float:
    """Returns one minus the second largest modulus: 1 for consensus in one round, 0 for no mixing."""
    return 1.0 - second_eigenvalue(weights)


def _edge_weights(edges: NDArray[np.int64], degree: NDArray[np.int64]) -> NDArray[np.float64]:
    weights: NDArray[np.float64] = 1.0 / (1 + np.maximum(degree[edges[:, 0]], degree[edges[:, 1]]))
    return weights


def _matrix(values: NDArray[Any], rows: NDArray[np.int64], columns: NDArray[np.int64], n: int) -> csr_array:
    from scipy.sparse import coo_array

    return coo_array((values, (rows, columns)), shape=(n, n)).tocsr()
