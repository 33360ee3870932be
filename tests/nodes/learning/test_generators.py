"""Generators of records: gradients against autograd, what they cost a record, what fails, and how they are mixed in."""

from __future__ import annotations

import zlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from nodes.datasets.dataset import Dataset
from nodes.datasets.generated import ConditionalGan, Discriminator
from nodes.learning.generators.cgan import _Stack, class_ratios, generate_records
from nodes.learning.generators.stacked_nets import LEAK, StackedNet
from nodes.learning.kernels.per_sample import PrivateStep, RecordProtection
from nodes.learning.private_records.dp_sgd import noise_generator
from nodes.learning.private_records.record_batches import Mixture, draw_record_steps, fixed_sets
from nodes.learning.training import PerSample, Training
from p2p.config.errors import UserError
from p2p.random_streams import stream
from privacy.accounting.record_level import SampledGaussian, record_epsilon
from scenarios.build import build
from scenarios.loading.load import parse_scenario
from scenarios.metrics.headline.headline_rows import headline_rows
from scenarios.metrics.privacy.privacy_report import report_privacy
from scenarios.planning.plan import make_plan
from scenarios.report.data.run_data import read_run_data
from scenarios.report.sections.generated_section import generated_section
from scenarios.run_folder.sample_sheet import draw_sheet, png
from scenarios.running.run import run_scenario
from scenarios.schema import Scenario

TEXT = """
name: generated
rounds: 2
clients: 4
data: {name: synthetic, samples: 80, test_samples: 40, shape: [1, 2, 3], classes: 3, spread: 0.3, GENERATED}
model: {kind: linear}
training: {batch_size: 5, per_sample: {clip: 1.0, noise: 1.5}}
protocol: {kind: central, train_per_round: 3, deadline: 60 s}
"""
DP = "per_sample: {clip: 1.0, noise: 2.0}"


def scenario(generated: str) -> Scenario:
    """Four clients with twenty records of six numbers each."""
    return parse_scenario(TEXT.replace("GENERATED", f"generated: {{kind: cgan, hidden: 8, epochs: 4, {generated}}}"))


def small_data(labels: Any) -> Dataset:
    """Records of four numbers in three classes."""
    rng, count = stream(3, "test"), len(labels)
    records = (rng.standard_normal((count, 4)) * 0.2 + np.asarray(labels)[:, None]).astype(np.float32)
    return Dataset(records, np.asarray(labels), records, np.asarray(labels), 3)


def as_module(net: StackedNet, place: int) -> nn.Sequential:
    """One network of a stack as a torch module."""
    into, bias, out, shift = (part[place] for part in net.parts)
    module = nn.Sequential(nn.Linear(into.shape[1], len(into)), nn.LeakyReLU(LEAK), nn.Linear(out.shape[1], len(out)))
    with torch.no_grad():
        for own, given in zip(module.parameters(), (into, bias[0], out, shift[0]), strict=True):
            own.copy_(given)
    return module


def test_steps_are_those_of_torchs_adam() -> None:
    """Gradients by hand and moments in stacks, against autograd and torch.optim; later networks may stop earlier."""
    net = StackedNet.drawn((5, 7, 2), [noise_generator(stream(1, "test", number)) for number in range(2)])
    modules = [as_module(net, place) for place in range(2)]
    optimisers = [torch.optim.Adam(module.parameters(), 0.01, betas=(0.5, 0.999)) for module in modules]
    batches = torch.from_numpy(stream(2, "test").standard_normal((3, 2, 6, 5)).astype(np.float32))
    for number, (batch, count) in enumerate(zip(batches, (2, 2, 1), strict=True), start=1):
        values = batch[:count]
        hidden, out = net.forward(values)
        # The gradient of the sum of softplus(-out), as a discriminator has it on real records.
        delta = out.sigmoid() - 1.0
        net.step(net.gradients(values, hidden, delta, net.hidden_delta(hidden, delta)), 0.01, number)
        for module, optimiser, own in zip(modules, optimisers, values, strict=False):
            optimiser.zero_grad()
            nn.functional.softplus(-module(own)).sum().backward()  # type: ignore[no-untyped-call]
            optimiser.step()
    for place, module in enumerate(modules):
        for own, expected in zip(net.parts, module.parameters(), strict=True):
            assert torch.allclose(own[place].squeeze(0), expected.detach(), atol=1e-5)


def test_the_discriminators_gradients_are_clipped_record_by_record() -> None:
    """The factor of a record is its weight times clip over the norm that autograd finds."""
    settings = ConditionalGan(hidden=6, latent=2, per_sample=Discriminator(clip=0.05, noise=1.0))
    dataset = small_data([0, 1, 2, 1])
    stack = _Stack(settings, dataset, [np.arange(4)], [0], None, 5)
    step = PrivateStep(torch.arange(4)[None], torch.full((1, 4), 0.25), [0.1])
    targets = nn.functional.one_hot(torch.from_numpy(dataset.train_y), 3).float()
    real = torch.cat([torch.from_numpy(dataset.train_x), targets], dim=1)[None]
    hidden, scores = stack._discriminator.forward(real)
    delta = scores.sigmoid() - 1.0
    factors = stack._factors(step, real, hidden, delta, stack._discriminator.hidden_delta(hidden, delta))
    module = as_module(stack._discriminator, 0)
    for place in range(4):
        loss = nn.functional.softplus(-module(real[0, place])).sum()
        norm = torch.cat([part.flatten() for part in torch.autograd.grad(loss, list(module.parameters()))]).norm()
        assert norm > 0.05
        assert float(factors[0, place, 0]) == pytest.approx(0.25 * 0.05 / float(norm), rel=1e-4)


@pytest.mark.slow
def test_generators_learn_and_do_not_depend_on_their_stack() -> None:
    """Class means of generated records tell classes apart; one client alone gets the records it gets among others."""
    dataset = small_data(np.arange(60) % 3)
    shards = np.split(np.arange(60), 3)
    settings = ConditionalGan(epochs=150, batch_size=10, hidden=16, latent=4)
    made = generate_records(settings, dataset, shards, None, 5, 1)
    assert made.quality["class_means_accuracy"]["generated"] > 0.8
    alone = generate_records(settings, dataset, shards[:1], None, 5, 1)
    assert np.allclose(alone.records, made.records[:20], atol=1e-3)
    again = generate_records(settings, dataset, shards, None, 5, 2)
    assert np.array_equal(made.records, again.records)


def test_what_fails_is_reported() -> None:
    """One class, three records, a generator that diverged, and classes that a client does not have."""
    dataset = small_data([0] * 12 + [1, 2, 1])
    shards = [np.arange(12), np.arange(12, 15)]
    made = generate_records(ConditionalGan(epochs=3, hidden=4), dataset, shards, None, 5, 1)
    assert made.quality["failed"]["one_class"] == 1
    assert made.quality["failed"]["few_records"] == 1
    assert made.quality["failed"]["unseen_classes"] >= 1
    assert any("1 of 2 generators have seen one class only" in note for note in made.quality["notes"])
    wild = generate_records(ConditionalGan(epochs=3, hidden=4, learning_rate=1e38), dataset, shards, None, 5, 1)
    assert wild.quality["failed"]["diverged"] == 2
    assert np.isfinite(wild.records).all()
    bounded = generate_records(ConditionalGan(epochs=3, hidden=4), dataset, shards, (-0.5, 0.5), 5, 1)
    assert np.abs(bounded.records).max() <= 0.5


def test_class_ratios_are_uniform_public_or_noised() -> None:
    """Noised counts that leave nothing become uniform."""
    labels = np.array([0, 0, 0, 2])
    rng = stream(1, "test")
    assert class_ratios(ConditionalGan(), labels, 3, rng).tolist() == [1 / 3] * 3
    assert class_ratios(ConditionalGan(class_ratios="public"), labels, 3, rng).tolist() == [0.75, 0.0, 0.25]
    noised = class_ratios(ConditionalGan(class_ratios="noised", ratio_noise=1.0), labels, 3, rng)
    assert noised.sum() == pytest.approx(1.0)
    assert noised.tolist() != [0.75, 0.0, 0.25]


def test_every_step_takes_real_and_generated_records_by_coins() -> None:
    """Real ones at the rate q (1 - gamma), and only those are clipped; the divisor stays the whole batch."""
    private = PerSample(clip=1.0, noise=1.0)
    training = Training(epochs=200, batch_size=5, per_sample=private)
    shards, mixture = [np.arange(20)], Mixture(0.6, [np.arange(100, 130)], 100)
    steps = draw_record_steps(shards, [0], [0], training, private, 1.0, 3, 1, mixture)
    real = sum(int((step.protected & (step.weights > 0)).sum()) for step in steps if step.protected is not None)
    used = sum(int((step.weights > 0).sum()) for step in steps)
    assert real / len(steps) == pytest.approx(2.0, rel=0.1)
    assert (used - real) / len(steps) == pytest.approx(3.0, rel=0.1)
    assert all(np.isclose(step.noise_std[0], 0.2) for step in steps)
    only = draw_record_steps(shards, [0], [0], training, private, 1.0, 3, 1, replace(mixture, share=1.0))
    assert all(step.noise_std[0] == 0.0 for step in only)
    assert all((step.rows[step.weights > 0] >= 100).all() for step in only)
    fixed = fixed_sets(shards, mixture, 3)[0]
    assert len(fixed) == 20
    assert (fixed >= 100).sum() == 12


def test_generated_records_are_not_clipped() -> None:
    """Real ones are, beside them; one without a finite gradient counts as none, whichever it is."""
    protection = RecordProtection(1.0, [])
    squares, weights = torch.tensor([[16.0, 16.0, float("inf")]]), torch.full((1, 3), 0.5)
    factors = protection.factors(squares, weights, torch.tensor([[True, False, False]]))
    assert factors.tolist() == [[0.125, 0.5, 0.0]]


@pytest.mark.slow
def test_no_share_is_training_without_generators_to_the_bit() -> None:
    """No generator is trained, and nothing else changes."""
    models = []
    for text in ("share: 0", ""):
        world = scenario(text) if text else parse_scenario(TEXT.replace(", GENERATED", ""))
        simulation = build(world)
        simulation.run()
        model = simulation.collected_model()
        assert model is not None
        models.append(model.array())
    assert np.array_equal(models[0], models[1])


@pytest.mark.slow
def test_generators_with_dp_sgd_are_charged_to_the_same_record() -> None:
    """Their steps, noised class counts and training together, as composed by hand; without DP-SGD nothing is proved."""
    world = scenario(f"share: 0.6, class_ratios: noised, ratio_noise: 5.0, {DP}")
    simulation = build(world)
    simulation.run()
    told = report_privacy(simulation)["record"]
    most = told["trainings"]["max"]
    # 20 records in batches of 16: two steps a pass, four passes.
    charges = (SampledGaussian(0.8, 2.0, 8), SampledGaussian(1.0, 5.0, 1), SampledGaussian(0.25 * 0.4, 1.5, 4 * most))
    assert told["epsilon"] == pytest.approx(record_epsilon(charges, 1e-5))
    assert make_plan(world)["privacy"]["record"]["epsilon"] == pytest.approx(told["epsilon"])
    open_one = make_plan(scenario("share: 0.6, class_ratios: public"))["privacy"]["record"]
    assert open_one["epsilon"] == np.inf
    assert "without noise" in open_one["because"]


@pytest.mark.slow
def test_a_run_tells_and_shows_what_was_generated(tmp_path: Path) -> None:
    """In the summary, the final table and on the page, with a picture; without per_sample too."""
    world = scenario("share: 0.5, class_ratios: public")
    plain = replace(world, training=replace(world.training, per_sample=None))
    summary, folder = run_scenario(plain, tmp_path / "run")
    assert summary["generated"]["records"] == 80
    rows = "\n".join(f"{label}: {text}" for label, text in headline_rows(summary))
    assert "generated records: 80, 50% of what is trained on" in rows
    page = generated_section(read_run_data(folder.path))
    assert "data:image/png;base64," in page
    (folder.path / "generated.png").write_bytes(b"<script>")
    assert "<img" not in generated_section(read_run_data(folder.path))


def test_the_sheet_is_a_valid_picture() -> None:
    """A row for each class, a column for each client, grey where a client made none."""
    records = np.zeros((3, 1, 30, 30), dtype=np.float32)
    records[1] = 1.0
    sheet = draw_sheet(records, np.array([0, 1, 1]), [np.array([0, 1]), np.array([2])])
    assert sheet.shape == (62, 62, 1)
    assert sheet[0, 0, 0] == 0
    assert sheet[31, 0, 0] == 255
    assert sheet[0, 31, 0] == 128
    content = png(sheet)
    start = content.index(b"IDAT") + 4
    lines = zlib.decompress(content[start : start + int.from_bytes(content[start - 8 : start - 4], "big")])
    assert len(lines) == 62 * 63


@pytest.mark.parametrize(
    ("generated", "message"),
    [
        ("share: 1.2", r"data.generated.share = 1.2"),
        ("share: 0.5, class_ratios: noised", "ratio_noise"),
        ("share: 0.5, ratio_noise: 2", "ratio_noise"),
        ("share: 0.5, per_sample: {clip: 1, noise: 0}", r"per_sample.noise = 0"),
    ],
)
def test_bad_settings_are_refused(generated: str, message: str) -> None:
    """With path and cure."""
    with pytest.raises(UserError, match=message):
        scenario(generated)
