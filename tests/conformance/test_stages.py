"""Every stage does what a plain loop over one client does, written from the papers' algorithms, with the same draws."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.linalg import hadamard

from nodes.learning.release_stages import ReleaseStages, make_stages
from p2p.random_streams import stream, streams
from privacy.calibration.noise_plan import NoisePlan, PlanContext
from privacy.settings import Privacy
from privacy.stages.api import Bounds, Shape, Stage
from privacy.stages.binomial import Binomial
from privacy.stages.clipping import Clip, ClipCohortMedian, ClipCoordinates, ClipLayers, ClipOwnMedian
from privacy.stages.gaussian import Gaussian
from privacy.stages.laplace import Laplace
from privacy.stages.release_plan import plan_noise, plan_stages
from privacy.stages.selective import Asgp, Snlc
from privacy.stages.sparse import Mask, TopK
from privacy.stages.sparse_vector import AsgpSound
from privacy.stages.table import STAGES
from privacy.stages.wire import DENSE

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
        shape=Shape(D, LAYERS),
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
ids = [f"{plain.__name__}-{index}" for index, (plain, _) in enumerate(CASES)]


@pytest.mark.parametrize(("plain", "stages"), CASES, ids=ids)
def test_a_stage_is_its_algorithm(plain: Plain, stages: tuple[Stage, ...]) -> None:
    """Rows are releases of one client each, to single precision."""
    made, _ = pipeline(*stages)
    for round_number in (1, 7, 10):
        rows, models = updates(round_number)
        found = released(made, round_number)
        for place, node in enumerate((3, 0, 2)):
            expected = plain(rows[place].astype(np.float64), Client(node, round_number, models))
            np.testing.assert_allclose(found[place], expected, rtol=2e-5, atol=2e-6)


def test_own_medians_follow_each_clients_history() -> None:
    """Plain DPFL of Weng (2025): every layer to the median of that client's norms so far, noise by that and records."""
    made, plan = pipeline(ClipOwnMedian(), Gaussian(multiplier=3.0, per_record=True))
    history: dict[tuple[int, int], list[float]] = {}
    for round_number in (1, 2, 3, 4):
        rows, models = updates(round_number)
        found = released(made, round_number)
        for place, node in enumerate((3, 0, 2)):
            client, parts = Client(node, round_number, models), []
            noise = np.split(client.draws.standard_normal(D, dtype=np.float32), np.cumsum(LAYERS)[:-1])
            for layer, part in enumerate(np.split(rows[place].astype(np.float64), np.cumsum(LAYERS)[:-1])):
                norms = history.setdefault((node, layer), [])
                norms.append(float(np.linalg.norm(part)))
                bound = statistics.median(norms)
                parts.append(scaled(part, bound) + 3.0 * bound / client.records * noise[layer])
            np.testing.assert_allclose(found[place], np.concatenate(parts), rtol=2e-5, atol=2e-6)
    assert any("median of the client's own norms" in reason for reason in plan.unaccounted)


def test_the_surrogate_noises_what_moved_most_and_less_when_the_loss_settles() -> None:
    """omega_t = clip(omega |L_(t-1) - L_t| / |L_0 - L_1|, omega_min, omega)."""
    made, _ = pipeline(Snlc(sigma=5.0, omega=0.8, omega_min=0.1))
    for round_number, loss, share in ((1, 3.0, 0.8), (2, 2.0, 0.8), (3, 1.5, 0.4), (4, 1.49, 0.1), (5, 9.0, 0.8)):
        rows, _ = updates(round_number)
        found = released(made, round_number, (loss, loss, loss))
        for place in range(3):
            moved = set(np.flatnonzero(found[place] != rows[place]).tolist())
            assert moved == set(np.argsort(-np.abs(rows[place]))[: math.ceil(share * D)].tolist())


def test_bounds_are_those_of_each_client() -> None:
    """From a list of public norms: bounds by all three norms, noise, sensitivity and loss of each client."""
    norms = np.array(OWN_NORMS)
    bounds = plan_stages([Clip(norm=OWN_NORMS), ClipCoordinates(bound=0.2)], context())[-1].declared.bounds
    np.testing.assert_allclose(bounds.l2, np.minimum(norms, 0.2 * math.sqrt(D)))
    np.testing.assert_allclose(bounds.linf, np.minimum(norms, 0.2))
    np.testing.assert_allclose(bounds.l1, math.sqrt(D) * bounds.l2)
    assert bounds.of(1).linf == 0.1
    given, relative = (
        pipeline(Clip(norm=OWN_NORMS), noise)[1] for noise in (Gaussian(sigma=3.0), Gaussian(multiplier=3.0))
    )
    np.testing.assert_allclose(given.sensitivities, 2 * norms)
    assert set(given.noise_std) == {3.0}
    np.testing.assert_allclose(relative.noise_std, 3 * norms)
    assert (given.clip_norm, given.sensitivity) == (2.0, 4.0)
    losses = pipeline(Clip(norm=OWN_NORMS), Laplace(scale=5.0))[1].losses
    np.testing.assert_allclose([getattr(loss, "ratio", 0.0) for loss in losses], 2 * math.sqrt(D) * norms / 5.0)


def test_every_stage_of_the_table_is_tested_here() -> None:
    """A new stage needs its plain implementation."""
    tried = {type(stage) for _, stages in CASES for stage in stages} | {ClipOwnMedian, Snlc}
    assert tried == set(STAGES.values())


@pytest.mark.parametrize(("plain", "stages"), CASES, ids=ids)
def test_releases_have_the_bytes_that_are_declared(plain: Plain, stages: tuple[Stage, ...]) -> None:
    """Each one is really encoded, and decoded again to the same bits."""
    made, _ = pipeline(*stages)
    for round_number in (1, 2):
        for node, row in zip((3, 0, 2), released(made, round_number), strict=True):
            wire = made.wire_of(round_number, node)
            data = wire.encode(row)
            assert len(data) == wire.size_bytes(D)
            np.testing.assert_array_equal(wire.decode(data, D), row)
            # Damaged bytes decode to something, never to an error.
            assert wire.decode(bytes(255 - byte for byte in data), D).shape == (D,)


OBJECTS: tuple[Any, ...] = ("update", "gradient", "weights")
CLIPS = [
    *(Clip(norm=norm, clip_object=what) for norm in (0.3, 4.0) for what in OBJECTS),
    *(ClipLayers(norm=1.0, of="layer", clip_object=what) for what in OBJECTS),
    *(ClipCoordinates(bound=bound, clip_object=what) for bound in (0.1, 1.5) for what in OBJECTS),
    Mask(rate=0.3),
]


@pytest.mark.parametrize("first", CLIPS, ids=repr)
@pytest.mark.parametrize("second", CLIPS, ids=repr)
def test_two_contents_are_never_further_apart_than_twice_the_bounds(first: Stage, second: Stage) -> None:
    """By all three norms, in any order of stages and for whatever is clipped; where bounds are centred, so is it."""
    planned = plan_stages([first, second], context())
    made, bounds = pipeline(first, second)[0], planned[-1].declared.bounds
    drawn, nodes = np.random.default_rng(3), [0] * 100
    rows = drawn.standard_normal((100, D)) * 10.0 ** drawn.uniform(-2, 2, (100, 1)) * (drawn.random((100, D)) < 0.5)
    model = np.where(np.arange(D) == 4, 3.0, 0.1).astype(np.float32)
    models, generators = np.tile(model, (5, 1)), [drawn] * 100
    # Some around the model itself, where scaled weights differ most by single coordinates.
    rows[::2] += model
    found = made.apply(rows.astype(np.float32), nodes, generators, models, 2, 1).astype(np.float64)
    for order, bound in ((1, bounds.l1), (2, bounds.l2), (np.inf, bounds.linf)):
        apart = max(np.linalg.norm(found - one, ord=order, axis=1).max() for one in found)
        assert apart <= 2.0 * bound * (1.0 + 1e-5) + 1e-5
        if bounds.centred:
            assert np.linalg.norm(found, ord=order, axis=1).max() <= bound * (1.0 + 1e-5) + 1e-5


def test_scaling_around_a_model_may_move_one_coordinate_far() -> None:
    """Weights within 0.15 of zero, a model with one large coordinate: scaled to 1, that one moves by more than 0.3."""
    stages, wide = (
        (ClipCoordinates(bound=0.15, clip_object="weights"), Clip(norm=1.0)),
        replace(context(), shape=Shape(100)),
    )
    bounds = plan_stages(stages, wide)[-1].declared.bounds
    models = np.zeros((5, 100), np.float32)
    models[:, 0] = 1.0
    trained = np.full((2, 100), -0.15, np.float32) * [[0.0], [1.0]]
    trained[:, 0] = -0.15, 0.15
    rows = (models[:2] - trained).astype(np.float32)
    made = make_stages(stages, wide, SEED, lambda _: RATE, DENSE)
    found = made.apply(rows, [0, 1], streams(SEED, [("noise", node, 2) for node in (0, 1)]), models, 2, 1)
    apart = float(np.abs(found[0] - found[1]).max())
    assert 0.3 < apart <= 2.0 * bounds.linf


def test_the_largest_coordinates_of_a_noisy_release_cost_what_the_release_costs() -> None:
    """Which ones are left is found from all of them, so their number does not bound how far the release can move."""
    before = ClipCoordinates(bound=0.3), Gaussian(sigma=1.0)
    whole, chosen, masked = (pipeline(*before, *after)[1] for after in ((), (TopK(rate=0.2),), (Mask(rate=0.2),)))
    assert chosen.sensitivity == whole.sensitivity == pytest.approx(2 * 0.3 * math.sqrt(D))
    assert masked.sensitivity == pytest.approx(2 * 0.3 * math.sqrt(math.ceil(0.2 * D)))


@pytest.mark.parametrize(
    "between", [(TopK(rate=0.3),), (TopK(rate=0.5),), (Clip(norm=0.1, clip_object="weights"),)], ids=repr
)
def test_noise_covers_exactly_what_a_mask_sends(between: tuple[Stage, ...]) -> None:
    """Also where an update is zero inside the mask, and where a stage after the mask moves what is outside."""
    made, plan = pipeline(Mask(rate=0.3), *between, Clip(norm=0.5), Gaussian(sigma=1.0))
    assert not plan.unaccounted
    rows = np.zeros((1, D), np.float32)
    models = np.ones((5, D), np.float32)
    found = made.apply(rows, [0], streams(SEED, [("noise", 0, 2)]), models, 2, 1)[0]
    inside = stream(SEED, "mask", 2).choice(D, math.ceil(0.3 * D), replace=False, shuffle=False)
    assert set(np.flatnonzero(found).tolist()) == set(inside.tolist())


def test_sizes_around_a_model_have_twice_the_sensitivity() -> None:
    """Weights within linf of zero are updates within linf of the model: a size may move by 2 linf."""
    sound = AsgpSound(epsilon=1.0, positives=4)
    update, weights = (
        sound.laplace_scales(ClipCoordinates(bound=0.3, clip_object=what).bounds(Bounds(), Shape(D)))
        for what in ("update", "weights")
    )
    assert (weights.query, weights.threshold) == (2.0 * update.query, 2.0 * update.threshold)
    assert weights.value == update.value


def test_bytes_by_hand() -> None:
    """Of 1,000 coordinates: indices are shorter up to 31 kept, a bitmap above; a common mask sends values only."""
    from privacy.stages.binomial import Quantised
    from privacy.stages.sparse_wire import CommonMask, Sparse

    assert Sparse(31).size_bytes(1000) == 31 * 4 + 31 * 4
    assert Sparse(32).size_bytes(1000) == 32 * 4 + 125
    assert CommonMask(100, random=True).size_bytes(1000) == 400
    assert Quantised(1.0, 16, 1000, rotated=True).size_bytes(1000) == 1250  # 0..1015 takes 10 bits


@pytest.mark.parametrize("stages", [(TopK(rate=1.0),), (Mask(rate=1.0),), (Mask(rate=1.0, by="last_aggregate"),)])
def test_keeping_everything_changes_no_bit(stages: tuple[Stage, ...]) -> None:
    """Neither of the release nor of its declaration."""
    plain, plan = pipeline(Clip(), Gaussian(sigma=0.1))
    other, other_plan = pipeline(*stages, Clip(), Gaussian(sigma=0.1))
    assert released(plain, 2).tobytes() == released(other, 2).tobytes()
    assert other_plan.wire is plan.wire
    assert other_plan.unaccounted == plan.unaccounted == ()


@pytest.mark.parametrize(
    ("stages", "reason"),
    [
        ((TopK(), Clip(), Gaussian(sigma=1.0)), "positions of a client's largest coordinates"),
        ((Gaussian(multiplier=1.0, scale="own_norm"),), "norm of the client's own update"),
        ((ClipOwnMedian(), Gaussian(multiplier=1.0)), "median of the client's own norms"),
        ((ClipCohortMedian(), Clip(), Gaussian(sigma=1.0)), "other clients' records"),
        ((Clip(), Asgp()), "leave without noise"),
        ((Clip(), Snlc()), "leave without noise"),
    ],
)
def test_what_is_not_accounted_for_is_named(stages: tuple[Stage, ...], reason: str) -> None:
    """Such a list makes every rigorous figure infinite."""
    assert any(reason in item for item in pipeline(*stages)[1].unaccounted)


@pytest.mark.parametrize(
    "stages",
    [
        (Clip(), Gaussian(sigma=1.0), TopK()),
        (Mask(), Clip(), Gaussian(sigma=1.0)),
        (Clip(), Laplace(epsilon=1.0)),
        (Clip(), Binomial()),
        (Clip(), AsgpSound()),
        (Clip(), Gaussian(sigma=1.0), ClipCohortMedian()),
    ],
)
def test_what_is_proved_releases_nothing_else(stages: tuple[Stage, ...]) -> None:
    """And what follows noise without being linear is hidden in no sum."""
    plan = pipeline(*stages)[1]
    assert plan.unaccounted == ()
    assert plan.noised
    assert plan.linear == (not isinstance(stages[-1], TopK | ClipCohortMedian))
