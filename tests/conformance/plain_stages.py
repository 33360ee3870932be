"""Every stage as a plain loop over one client, written from the papers' algorithms; four clients to apply them to."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import hadamard

from nodes.learning.release_stages import ReleaseStages, make_stages
from p2p.random_streams import stream, streams
from privacy.calibration.noise_plan import NoisePlan, PlanContext
from privacy.settings import Privacy
from privacy.stages.api import Stage, UpdateShape
from privacy.stages.binomial import Binomial
from privacy.stages.clipping import Clip, ClipCohortMedian, ClipCoordinates, ClipLayers
from privacy.stages.gaussian import Gaussian
from privacy.stages.laplace import Laplace
from privacy.stages.release_plan import plan_noise
from privacy.stages.selective import Asgp
from privacy.stages.sparse import Mask, TopK
from privacy.stages.sparse_vector import AsgpSound

SEED, ROUNDS, LAYERS = 5, 10, (12, 3, 8)
D = sum(LAYERS)
RECORDS = np.array([7, 20, 11, 5])
RATE = 0.25
Row = NDArray[np.float64]
Plain = Callable[[Row, "Client"], Row]


class Client:
    """What a plain implementation may look at: one client in one round."""

    def __init__(self, node: int, round_number: int, models: NDArray[np.float32]) -> None:
        self.node, self.round, self.records = node, round_number, int(RECORDS[node])
        self.model, self.last_step = models[node].astype(np.float64), last_steps(round_number)[node]
        self.draws = stream(SEED, "noise", node, round_number)


def context(topology: Any = "central") -> PlanContext:
    """Four clients."""
    return PlanContext(
        clients=4,
        train_per_round=3,
        exchange_with=None,
        rounds=ROUNDS,
        records=RECORDS,
        topology=topology,
        shape=UpdateShape(D, LAYERS),
    )


def pipeline(*stages: Stage) -> tuple[ReleaseStages, NoisePlan]:
    """The stages of a run, and what they declare."""
    plan = plan_noise(Privacy(stages=tuple(stages)), context())
    return make_stages(stages, context(), SEED, lambda _: RATE, plan.wire), plan


def updates(round_number: int) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Updates of three clients, and the models that they trained from."""
    drawn = np.random.default_rng(round_number)
    return drawn.standard_normal((3, D), dtype=np.float32), drawn.standard_normal((5, D), dtype=np.float32)


def released(made: ReleaseStages, round_number: int, losses: Sequence[float] = (1.0, 2.0, 3.0)) -> NDArray[np.float32]:
    """What clients 3, 0 and 2 release in a round."""
    rows, models = updates(round_number)
    nodes = [3, 0, 2]
    noises = streams(SEED, [("noise", node, round_number) for node in nodes])
    return made.apply(rows, nodes, noises, models, round_number, 1, np.array(losses), masks(last_steps(round_number)))


def last_steps(round_number: int) -> NDArray[np.float32]:
    """The last aggregate behind every client's model."""
    return np.random.default_rng(100 + round_number).standard_normal((5, D), dtype=np.float32)


def masks(steps: NDArray[np.float32]) -> NDArray[np.float32]:
    """Ones at the largest 30% of each aggregate."""
    order = np.argsort(np.argsort(-np.abs(steps), axis=1), axis=1)
    return (order < math.ceil(0.3 * D)).astype(np.float32)


def scaled(row: Row, norm: float) -> Row:
    return np.asarray(row / max(1.0, float(np.sqrt((row**2).sum())) / norm))


def clip(row: Row, client: Client) -> Row:
    return scaled(row, 0.5)


OWN_NORMS = (0.5, 0.1, 2.0, 0.3)


def clip_own(row: Row, client: Client) -> Row:
    return scaled(row, OWN_NORMS[client.node])


def gaussian_own(row: Row, client: Client) -> Row:
    noise = client.draws.standard_normal(D, dtype=np.float32)
    return scaled(row, OWN_NORMS[client.node]) + 2.0 * OWN_NORMS[client.node] * noise


def laplace_own(row: Row, client: Client) -> Row:
    bound = OWN_NORMS[client.node]
    return scaled(row, bound) + client.draws.laplace(0.0, 2 * math.sqrt(D) * bound / 4.0, D)


def clip_gradient(row: Row, client: Client) -> Row:
    return scaled(row / RATE, 0.5)


def clip_weights(row: Row, client: Client) -> Row:
    return np.asarray(client.model - scaled(client.model - row, 0.5))


def clip_layers(row: Row, client: Client) -> Row:
    parts = np.split(row, np.cumsum(LAYERS)[:-1])
    return np.concatenate([scaled(part, 0.5 / math.sqrt(3)) for part in parts])


def clip_each_layer(row: Row, client: Client) -> Row:
    return np.concatenate([scaled(part, 0.5) for part in np.split(row, np.cumsum(LAYERS)[:-1])])


def clip_coordinates(row: Row, client: Client) -> Row:
    return np.array([max(-0.3, min(0.3, value)) for value in row])


def gaussian(row: Row, client: Client) -> Row:
    return scaled(row, 0.5) + 2.0 * 0.5 / client.records * client.draws.standard_normal(D, dtype=np.float32)


def top_k(row: Row, client: Client) -> Row:
    """LDP-FL: the largest 20% with noise of their own norm by records."""
    kept = sorted(sorted(range(D), key=lambda j: -abs(row[j]))[: math.ceil(0.2 * D)])
    out, norm = np.zeros(D), math.sqrt(sum(row[j] ** 2 for j in kept))
    noise = client.draws.standard_normal(len(kept), dtype=np.float32)
    for place, j in enumerate(kept):
        out[j] = row[j] + 3.0 * norm / client.records * noise[place]
    return out


def top_k_after(row: Row, client: Client) -> Row:
    noisy = scaled(row, 0.5) + 0.1 * client.draws.standard_normal(D, dtype=np.float32)
    kept = sorted(range(D), key=lambda j: -abs(noisy[j]))[: math.ceil(0.2 * D)]
    return np.array([noisy[j] if j in kept else 0.0 for j in range(D)])


def mask(row: Row, client: Client) -> Row:
    kept = sorted(stream(SEED, "mask", client.round).choice(D, math.ceil(0.3 * D), replace=False, shuffle=False))
    out = np.zeros(D)
    out[kept] = scaled(row[kept], 0.5) + 0.1 * client.draws.standard_normal(len(kept), dtype=np.float32)
    return out


def mask_of_last_aggregate(row: Row, client: Client) -> Row:
    moved = np.abs(client.last_step)
    kept = sorted(sorted(range(D), key=lambda j: -moved[j])[: math.ceil(0.3 * D)]) if client.round > 1 else range(D)
    out = np.zeros(D)
    out[list(kept)] = scaled(row[list(kept)], 0.5)
    return out


def laplace(row: Row, client: Client) -> Row:
    return clip_coordinates(row, client) + client.draws.laplace(0.0, 2 * D * 0.3 / 4.0, D)


def rotation(client: Client) -> NDArray[np.float64]:
    """Hadamard blocks of 16, 4, 2 and 1 times random signs."""
    matrix, start = np.zeros((D, D)), 0
    for size in (16, 4, 2, 1):
        matrix[start : start + size, start : start + size] = hadamard(size) / math.sqrt(size)
        start += size
    signs = 2 * stream(SEED, "rotation", client.round).integers(0, 2, D, dtype=np.int8).astype(np.float64) - 1
    return matrix * signs


def binomial(row: Row, client: Client, turn: bool = False) -> Row:
    """cpSGD: k = 8 levels on [-0.2, 0.2], Bin(100, 1/2) - 50."""
    clipped, matrix = scaled(row, 0.5), rotation(client) if turn else np.eye(D)
    step, uniform = 0.4 / 7, client.draws.random(D)
    noise, out = client.draws.binomial(100, 0.5, D), np.zeros(D)
    for j, value in enumerate(matrix @ clipped):
        place = (max(-0.2, min(0.2, value)) + 0.2) / step
        level = math.floor(place) + (1 if uniform[j] + place - math.floor(place) >= 1.0 else 0)
        out[j] = (level + noise[j] - 50) * step - 0.2
    return matrix.T @ out


def binomial_rotated(row: Row, client: Client) -> Row:
    return binomial(row, client, turn=True)


def asgp(row: Row, client: Client, absolute: bool = False) -> Row:
    """DP-FedASGP, Algorithm 1, with the text's noise on values; epsilon 1 is divided 0.05, 0.05 and 0.9 for q = 1."""
    g, size = scaled(row, 0.5), 2 * RATE * 0.5 / client.records
    values = np.abs(g) if absolute else g
    rank = min(max(1, math.ceil(client.round * D / ROUNDS)), math.ceil(0.9 * D))
    line = sorted(values)[rank - 1]
    alpha = client.draws.laplace(0.0, size / 0.05, D if absolute else 1) * np.ones(D)
    beta = client.draws.laplace(0.0, size / 0.05)
    noised = [j for j in range(D) if values[j] + alpha[j] >= line + beta]
    for j, noise in zip(noised, client.draws.laplace(0.0, size / 0.9, len(noised)), strict=True):
        g[j] += noise
    return g


def asgp_abs(row: Row, client: Client) -> Row:
    return asgp(row, client, absolute=True)


def asgp_sound(row: Row, client: Client) -> Row:
    """Sparse vector: ask one after the other, answer at most 4, then stop; all that was not answered is zero."""
    g, e_value, c = clip_coordinates(row, client), 0.5 * 8.0, 4
    e_query = 0.5 * 8.0 * 4 ** (2 / 3) / (4 ** (2 / 3) + 1)
    e_line = 0.5 * 8.0 / (4 ** (2 / 3) + 1)
    line = 0.5 * 0.3 + client.draws.laplace(0.0, 0.3 / e_line)
    asks, out = client.draws.laplace(0.0, 2 * c * 0.3 / e_query, D), np.zeros(D)
    found: list[int] = []
    for ask, j in enumerate(stream(SEED, "svt order", client.round).permutation(D)):
        if len(found) < c and abs(g[j]) + asks[ask] >= line:
            found.append(j)
    out[found] = g[found] + client.draws.laplace(0.0, 2 * c * 0.3 / e_value, len(found))
    return out


CASES: list[tuple[Plain, tuple[Stage, ...]]] = [
    (clip, (Clip(norm=0.5),)),
    (clip, (Clip(norm=0.5), ClipCohortMedian())),
    (clip_own, (Clip(norm=OWN_NORMS),)),
    (gaussian_own, (Clip(norm=OWN_NORMS), Gaussian(multiplier=2.0))),
    (laplace_own, (Clip(norm=OWN_NORMS), Laplace(epsilon=4.0))),
    (clip_gradient, (Clip(norm=0.5, clip_object="gradient"),)),
    (clip_weights, (Clip(norm=0.5, clip_object="weights"),)),
    (clip_layers, (ClipLayers(norm=0.5),)),
    (clip_each_layer, (ClipLayers(norm=0.5, of="layer"),)),
    (clip_coordinates, (ClipCoordinates(bound=0.3),)),
    (gaussian, (Clip(norm=0.5), Gaussian(multiplier=2.0, per_record=True))),
    (top_k, (TopK(rate=0.2), Gaussian(multiplier=3.0, scale="own_norm", per_record=True))),
    (top_k_after, (Clip(norm=0.5), Gaussian(sigma=0.1), TopK(rate=0.2))),
    (mask, (Mask(rate=0.3), Clip(norm=0.5), Gaussian(sigma=0.1))),
    (mask_of_last_aggregate, (Mask(rate=0.3, by="last_aggregate"), Clip(norm=0.5))),
    (laplace, (ClipCoordinates(bound=0.3), Laplace(epsilon=4.0))),
    (binomial, (Clip(norm=0.5), Binomial(levels=8, trials=100, limit=0.2))),
    (binomial_rotated, (Clip(norm=0.5), Binomial(levels=8, trials=100, limit=0.2, rotate=True))),
    (asgp, (Clip(norm=0.5), Asgp())),
    (asgp_abs, (Clip(norm=0.5), Asgp(select_on="abs", alpha_mode="per_coordinate"))),
    (asgp_sound, (ClipCoordinates(bound=0.3), AsgpSound(epsilon=8.0, positives=4, value_fraction=0.5))),
]
IDS = [f"{plain.__name__}-{index}" for index, (plain, _) in enumerate(CASES)]
