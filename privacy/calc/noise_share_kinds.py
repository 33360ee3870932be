"""Calculator kinds for noise shares, NISS (spec C)."""

from __future__ import annotations

import math
from typing import Annotated

from annotated_types import Ge, Le, Lt

from privacy.accounting.curves import gaussian
from privacy.calc.inputs import Count, Fraction, Natural, NonNegative, Positive, Result, Vector, answer, refuse
from privacy.noise_shares import seed_expansion
from privacy.noise_shares import variance as noise_shares

Cohort = Annotated[int, Ge(2), Le(2000)]
# The hypergeometric tail takes very long beyond these.
Clients = Annotated[int, Ge(1), Le(10**9)]
Members = Annotated[int, Ge(0), Le(10**9)]
Length = Annotated[int, Ge(1), Le(10**7)]
Word32 = Annotated[int, Ge(0), Lt(2**32)]
Word64 = Annotated[int, Ge(0), Lt(2**64)]


def niss_basic(
    *, m: Annotated[int, Ge(2)], sigma_k2: Positive, unit_variance: Positive, tau: NonNegative, rho: Fraction = 0.0
) -> Result:
    """The number of shares and the variances of NISS, as the paper states them."""
    wanted = sigma_k2 / unit_variance
    count = noise_shares.share_count(sigma_k2, unit_variance, m)
    least = noise_shares.least_tau2(rho)
    return answer(
        {
            "v": count,
            "share_residual_variance": tau**2 * unit_variance,
            "aggregate_variance": m * sigma_k2 * tau**2,
            "upload_marginal_variance": noise_shares.marginal_variance(sigma_k2, tau),
            "min_tau2_theorem3": least,
            "effective_variance_theorem3": noise_shares.colluding_variance(sigma_k2, tau, rho),
            "eps_factor_when_variance_doubles": math.sqrt(0.5),
        },
        (math.isclose(wanted, count), f"v = {wanted:.4g} is rounded to {count} shares of variance sigma_k^2/v (E-N09)"),
        (tau > 0.0, "at tau = 0 the noises cancel and the exact sum is released: masking, not privacy (E-N04)"),
        (tau**2 >= least, f"Theorem 3 asks for tau^2 >= {least:.4g} against that collusion; tau^2 = {tau**2:.4g}"),
    )


def niss_dropout_variance(
    *,
    m: Cohort,
    v: Count,
    unit_variance: Positive,
    tau: NonNegative,
    dropped_after_exchange: list[Natural],
    graph: str = "circulant",
) -> Result:
    """The residual variance of the sum if given clients drop out after exchanging shares on a circulant graph."""
    refuse(
        _circulant(graph),
        _degree(v, m),
        (all(k < m for k in dropped_after_exchange), f"dropped_after_exchange: must name clients below m = {m}"),
    )
    shares = noise_shares.circulant_shares(m, v)
    return {
        "aggregate_variance": noise_shares.residual_variance(shares, dropped_after_exchange, unit_variance, tau),
        "without_dropout": noise_shares.residual_variance(shares, (), unit_variance, tau),
    }


def niss_dropout_variance_random(
    *,
    m: Annotated[int, Ge(2)],
    v: Count,
    unit_variance: Positive,
    tau: NonNegative,
    dropped: Natural,
    graph: str = "random",
) -> Result:
    """The expected residual variance of the sum over random receivers, for a number of dropped clients."""
    refuse(_degree(v, m), (dropped <= m, f"dropped = {dropped}: must be at most m = {m}"))
    variance = noise_shares.expected_residual_variance(m, v, unit_variance, tau, dropped)
    return {"expected_aggregate_variance": variance}


def niss_joint_view(
    *,
    m: Cohort,
    v: Count,
    unit_variance: Positive,
    s: Vector,
    client: Natural = 0,
    sensitivity: Positive = 1.0,
    independent_variance: NonNegative = 0.0,
    graph: str = "circulant",
) -> Result:
    """The privacy loss of a client to a server that sees all uploads and the multipliers s: mu, and epsilon at 1e-4."""
    refuse(
        _circulant(graph),
        _degree(v, m),
        (len(s) == m * v, f"s: must have m v = {m * v} entries, one per share; it has {len(s)}"),
        (client < m, f"client = {client}: must be below m = {m}"),
    )
    shares = noise_shares.circulant_shares(m, v)
    covariance = noise_shares.upload_covariance(shares, s, m, unit_variance, independent_variance)
    mu = noise_shares.joint_mu(covariance, sensitivity, client)
    alone = sensitivity / math.sqrt(covariance[client, client])
    epsilon = {"eps_delta_1e-4": gaussian.epsilon_of(mu, 1e-4)} if math.isfinite(mu) else {}
    return answer(
        {"mu": mu, **epsilon, "mu_marginal_single_upload": alone},
        (math.isfinite(mu), "some combination of uploads shows this client without noise (E-N04)"),
    )


def niss_collusion_tail(*, other_clients: Clients, colluders: Natural, v: Natural, at_least: Members) -> Result:
    """The probability that at least a given number of a client's v random peers collude."""
    refuse(
        (colluders <= other_clients, f"colluders = {colluders}: must be at most other_clients = {other_clients}"),
        (v <= other_clients, f"v = {v}: must be at most other_clients = {other_clients}; peers are distinct"),
    )
    return {
        "expected": v * colluders / other_clients,
        "prob_at_least": noise_shares.collusion_tail(other_clients, colluders, v, at_least),
    }


def niss_seed_vector(
    *, seed_hex: str, round: Word64, sender: Word32, receiver: Word32, share_index: Word32, count: Length
) -> Result:
    """The unit normals of a 32-byte seed."""
    seed = _seed(seed_hex)
    normals = seed_expansion.unit_normals(seed, round, sender, receiver, share_index, count)
    return {"unit_normals": normals.tolist()}


def _seed(text: str) -> bytes:
    try:
        seed = bytes.fromhex(text)
    except ValueError:
        seed = b""  # fails the check of the length below, which has the message
    size = seed_expansion.SEED_BYTES
    refuse((len(seed) == size, f"seed_hex = {text}: must be {2 * size} hexadecimal digits, {size} bytes"))
    return seed


def _circulant(graph: str) -> tuple[bool, str]:
    return graph.split(":")[0].strip() == "circulant", f"graph = {graph}: must be circulant; no other is built in"


def _degree(v: int, m: int) -> tuple[bool, str]:
    return v < m, f"v = {v}: must be below m = {m}; receivers are distinct other clients"
