"""How fast averaging over a graph brings nodes together: weights, spectral gap, connectivity.

Edges are arrays [e, 2] of (sender, receiver) over the nodes 0..n-1. A weight matrix is a sparse scipy array
whose row i says what node i's next model is made of; its rows sum to one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from scipy.sparse import csr_array

DENSE_NODES = 500


def edges_of(graph: Any) -> NDArray[np.int64]:
    """The edges of a networkx graph, both ways if it is undirected, sorted."""
    pairs = np.array(list(graph.edges()), dtype=np.int64).reshape(-1, 2)
    if not graph.is_directed():
        pairs = np.concatenate([pairs, pairs[:, ::-1]])
    return pairs[np.lexsort((pairs[:, 1], pairs[:, 0]))]


def uniform_weights(edges: NDArray[np.int64], n: int, include_own: bool = True) -> csr_array:
    """Each receiver's plain mean of what it receives, its own model included or not.

    Doubly stochastic if every node sends as much as it receives. A node that receives nothing keeps its own.
    """
    received = np.bincount(edges[:, 1], minlength=n)
    keeps = np.flatnonzero(np.ones(n, dtype=np.bool_) if include_own else received == 0)
    rows = np.concatenate([edges[:, 1], keeps])
    columns = np.concatenate([edges[:, 0], keeps])
    parts = np.bincount(rows, minlength=n)
    return _matrix(1.0 / parts[rows], rows, columns, n)


def metropolis_weights(edges: NDArray[np.int64], n: int) -> csr_array:
    """Metropolis-Hastings weights 1 / (1 + max degree of the two ends); the rest stays (Xiao, Boyd, Kim 2007).

    Guarantees:
        Symmetric and doubly stochastic for any undirected graph (both directions present in `edges`).
    """
    degree = np.bincount(edges[:, 1], minlength=n)
    weights = 1.0 / (1 + np.maximum(degree[edges[:, 0]], degree[edges[:, 1]]))
    own = 1.0 - np.bincount(edges[:, 1], weights=weights, minlength=n)
    nodes = np.arange(n)
    rows, columns = np.concatenate([edges[:, 1], nodes]), np.concatenate([edges[:, 0], nodes])
    return _matrix(np.concatenate([weights, own]), rows, columns, n)


def second_eigenvalue(weights: csr_array) -> float:
    """The second largest modulus of an eigenvalue: the factor by which disagreement shrinks per round, in the long run.

    Dense up to 500 nodes, else Arnoldi on the matrix with its eigenvalue one taken out.
    """
    n = weights.shape[0]
    if n <= DENSE_NODES:
        moduli = np.sort(np.abs(np.linalg.eigvals(weights.toarray() - 1.0 / n)))
        return float(moduli[-1])
    return _largest_modulus(weights, n)


def spectral_gap(weights: csr_array) -> float:
    """One minus the second largest modulus: 1 for instant agreement, 0 for none."""
    return 1.0 - second_eigenvalue(weights)


def is_strongly_connected(edges: NDArray[np.int64], n: int) -> bool:
    """Whether everything can reach everyone along the edges."""
    from scipy.sparse.csgraph import connected_components

    adjacency = _matrix(np.ones(len(edges)), edges[:, 0], edges[:, 1], n)
    components: int = connected_components(adjacency, directed=True, connection="strong", return_labels=False)
    return components == 1


def _largest_modulus(weights: csr_array, n: int) -> float:
    """Of W - 11'/n, whose eigenvalues are those of W with one 1 replaced by 0 (Brauer), since rows of W sum to one."""
    from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigs

    deflated = LinearOperator((n, n), matvec=lambda x: weights @ x - x.mean(), dtype=np.float64)
    start = np.sin(np.arange(1.0, n + 1.0))
    try:
        values = eigs(deflated, k=1, which="LM", v0=start, tol=1e-8, return_eigenvectors=False, maxiter=50 * n)
    except ArpackNoConvergence as error:
        raise ValueError(f"the spectral gap of these {n} nodes was not found; take a smaller graph") from error
    return float(np.abs(values).max())


def _matrix(values: NDArray[Any], rows: NDArray[np.int64], columns: NDArray[np.int64], n: int) -> csr_array:
    from scipy.sparse import coo_array

    return coo_array((values, (rows, columns)), shape=(n, n)).tocsr()
