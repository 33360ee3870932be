"""Attacks on the page: pictures that others can read, tables, curves, and damage."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.image import imread

from privacy.attacks.attack import Curve, PictureGrid, Result
from scenarios.attacking.result_files import read_result, write_result
from scenarios.report.png import encode
from scenarios.report.sections.attack_section import AttackResult, attack_curves, attack_section

RESULT = Result(
    headline="half of it",
    figures={},
    curves=[Curve(title="<b>ROC", x="fpr", y="tpr", lines={"loss": ([0.0, 1.0], [0.0, 1.0])}, text="a line")],
    grids=[
        PictureGrid(
            title="Pictures", rows=["original", "<i>found"], images=np.zeros((2, 3, 8, 8), np.float32), text="two"
        )
    ],
)
ENTRY: dict[str, Any] = {
    "kind": "membership",
    "by": "server",
    "file": "membership-server",
    "headline": "half of it",
    "methods": [{"method": "loss", "auc": 0.71234, "low": None}, {"method": "other", "auc": float("inf"), "low": None}],
    "victims": 3,
    "skipped": {"white_box": "needs members"},
}


@pytest.mark.parametrize("shape", [(8, 8), (5, 7, 3)])
def test_pictures_are_what_another_reader_reads(shape: tuple[int, ...]) -> None:
    """Matplotlib's decoder is the oracle; values out of range are clipped, others rounded to 8 bits."""
    image = np.random.default_rng(0).uniform(-0.2, 1.2, shape).astype(np.float32)
    image[0, 0] = np.nan
    read = imread(io.BytesIO(encode(image)), format="png")
    assert read.shape == shape
    np.testing.assert_allclose(read, np.nan_to_num(image).clip(0, 1), atol=0.5 / 255 + 1e-6)


def test_a_section_has_answer_figures_curves_and_pictures(tmp_path: Path) -> None:
    """All text is escaped; columns without values are left out; six pictures have text alternatives."""
    write_result(tmp_path, "membership-server", RESULT)
    results = [AttackResult(ENTRY, read_result(tmp_path, "membership-server"))]
    told = attack_section(results)
    assert "<p>half of it</p>" in told
    assert "0.712" in told
    assert "white box needs members" in told
    assert ">low<" not in told
    assert told.count("<img ") == 6
    assert 'alt="&lt;i&gt;found, image 3"' in told
    assert "<b>ROC" not in told
    assert [curve["chart"] for curve in attack_curves(results)] == ["attack-0-0"]
    assert 'id="attack-0-0"' in told


def test_without_attacks_there_is_no_section() -> None:
    """And a damaged result keeps its headline and says so."""
    assert attack_section([]) == ""
    told = attack_section([AttackResult(ENTRY, None, "attacks/x.json: is missing")])
    assert "half of it" in told
    assert "is missing" in told
