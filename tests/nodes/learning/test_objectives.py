"""Gradients of objectives against the papers' formulas and the reference values; where a constant is out of range."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from nodes.learning.objectives import CrossEntropy, Fednore1, Fednore2, FednoreBoth, FedProx, Hinge

CASES = json.loads((Path(__file__).parents[2] / "privacy" / "reference_cases.json").read_text())


def cases(kind: str) -> list[Any]:
    """The reference cases of one kind."""
    found = CASES["cases"] if isinstance(CASES, dict) else CASES
    return [pytest.param(case["inputs"], case["expected"], id=case["id"]) for case in found if case["kind"] == kind]


@pytest.mark.parametrize(("inputs", "expected"), cases("fednore1_penalty"))
def test_fednore1_pulls_as_the_reference_says(inputs: dict[str, Any], expected: dict[str, Any]) -> None:
    """The factor times the distance is the gradient of each layer."""
    pull = Fednore1(lam=inputs["lam"], sigma=inputs["sigma"]).terms(torch.tensor([float(inputs["n"])]).double()).pull
    assert pull is not None
    for start, local, gradient in zip(inputs["W_t"], inputs["W_i"], expected["gradient_wrt_W_i"], strict=True):
        away = torch.tensor(local).double() - torch.tensor(start).double()
        assert (pull(away.square().sum()[None]) * away).tolist() == pytest.approx(gradient, rel=1e-6)


def test_fednore1_has_the_printed_force_and_none_at_the_start() -> None:
    """lambda 1, sigma 8, 600 records: 0.0133 per layer, whatever the distance; (A.22) pushes n^2 times as strongly."""
    records = torch.tensor([600.0])
    pull, printed = (Fednore1(penalty=penalty).terms(records).pull for penalty in ("smoothed", "printed"))
    assert pull is not None
    assert printed is not None
    for distance in (0.1, 5.0):
        square = torch.tensor([distance**2])
        assert float(pull(square)) * distance == pytest.approx(0.01333, rel=1e-3)
        assert float(printed(square)) * distance == pytest.approx(-4800, rel=1e-3)
    assert torch.isfinite(pull(torch.zeros(1))).all()


@pytest.mark.parametrize(("inputs", "expected"), cases("fednore2_loss"))
def test_fednore2_weighs_as_the_reference_says(inputs: dict[str, Any], expected: dict[str, Any]) -> None:
    """keep_label multiplies the gradient of cross-entropy by the reference's weight; printed by exactly 1."""
    settings = {name: inputs[name] for name in ("lam", "sigma", "c_max")}
    records = torch.tensor([float(inputs["n"])]).double()
    scores = torch.tensor([[[np.log(a / (1 - a)), 0.0] for a in inputs["a_p"]]])
    targets = torch.tensor([1.0, 0.0]).double().expand_as(scores)
    plain = CrossEntropy().terms(records).slope(scores, targets)
    kept = Fednore2(**settings).terms(records).slope(scores, targets)
    printed = Fednore2(**settings, reading="printed").terms(records).slope(scores, targets)
    assert (kept / plain)[0, :, 0].tolist() == pytest.approx(expected["keep_label_gradient_weight"], rel=1e-9)
    assert torch.equal(printed, plain)


def test_fednore2_tells_where_its_constant_is_out_of_range() -> None:
    """lambda 10, sigma 8: c is 3.3 with 600 records and 0.8 with 10,000."""
    records = np.array([600, 10_000, 600])
    assert Fednore2(lam=10.0, reading="printed").remarks(records) == {"undefined": 2}
    assert Fednore2(lam=10.0).remarks(records) == {"capped": 2}
    assert FednoreBoth(lam=10.0, c_max=0.5).remarks(records) == {"capped": 3}


def test_keep_label_survives_an_impossible_class() -> None:
    """A probability that underflows gives no gradient instead of 0 / 0; without noise, that of cross-entropy."""
    scores, targets = torch.tensor([[[0.0, 500.0]]]), torch.tensor([[[1.0, 0.0]]])
    records = torch.tensor([100.0])
    assert Fednore2().terms(records).slope(scores, targets).abs().max() < 1e-30
    assert Fednore2(lam=0.0).terms(records).slope(scores, targets).tolist() == [[[-1.0, 1.0]]]


def test_hinge_of_two_classes_is_the_linear_machines() -> None:
    """`max(0, 1 - y m)` with m the difference of both scores: slope -y by m where y m < 1, else none."""
    margins = torch.tensor([-2.0, 0.5, 1.0, 3.0])
    scores = torch.stack([torch.zeros(4), margins], dim=1)[None]
    for label, slopes in ((1, [-1.0, -1.0, 0.0, 0.0]), (0, [0.0, 1.0, 1.0, 1.0])):
        targets = torch.nn.functional.one_hot(torch.tensor([label]), 2).float().expand_as(scores)
        found = Hinge().terms(torch.ones(1)).slope(scores, targets)
        assert found[0, :, 1].tolist() == slopes
        assert (found[0, :, 0] == -found[0, :, 1]).all()


def test_fedprox_pulls_in_proportion() -> None:
    """The gradient of mu/2 times the squared distance is mu times the distance."""
    pull = FedProx(mu=0.3).terms(torch.ones(2)).pull
    assert pull is not None
    assert pull(torch.tensor([1.0, 9.0])).tolist() == pytest.approx([0.3, 0.3])
