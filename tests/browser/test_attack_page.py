"""The page of an attacked run in a real browser: ROC, noise curves, and pictures that load."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from scenarios.cli.main import main

pytestmark = pytest.mark.slow


def test_attacks_are_drawn_with_numbers_and_text(visit: Any, tmp_path: Path) -> None:
    """No complaint of the browser; every picture is loaded; charts hold the lines and their tables the numbers."""
    options = ["--set", "rounds=2", "--set", "attacks.0.steps=20", "--set", "attacks.0.manner=one_round"]
    victims = ["--set", "reserved.victims=0-3", "--set", "adversaries.0.knows.members=1"]
    assert main(["run", "attack-reconstruction", "--out", str(tmp_path / "run"), "--quiet", *options, *victims]) == 0
    assert main(["attack", "membership", str(tmp_path / "run")]) == 0
    assert main(["report", str(tmp_path / "run")]) == 0
    opened = visit(tmp_path / "run" / "report.html")
    page = opened.page
    assert opened.complaints == []
    loaded = page.eval_on_selector_all(
        "#attacks img", "all => all.map(one => [one.complete, one.naturalWidth, one.alt])"
    )
    assert len(loaded) >= 5 * 4
    assert all(complete and width == 8 and alt for complete, width, alt in loaded)
    names = page.evaluate("document.getElementById('attack-0-0').data.map(line => line.name)")
    assert names == ["one_round", "guess without the update"]
    roc = page.evaluate("document.getElementById('attack-1-0').data.map(line => line.name)")
    assert roc[-1] == "chance"
    assert roc[0].startswith("loss_threshold (AUC ")
    for name in ("attack-0-0", "attack-0-1", "attack-1-0"):
        assert page.locator(f"#{name}[data-drawn]").get_attribute("aria-label")
    page.click("#fig-attack-1-0 details.data summary")
    assert page.locator("#fig-attack-1-0 details.data td").first.inner_text().startswith("loss_threshold")
    assert page.locator('nav a[href="#attacks"]').count() == 1
    # Images of 8 x 8 are enlarged, and every column of the figures is inside the page.
    assert min(page.eval_on_selector_all("#attacks img", "all => all.map(one => one.clientWidth)")) >= 24
    tables = "all => all.map(one => one.scrollWidth - one.clientWidth)"
    assert max(page.eval_on_selector_all("#attacks > .scroll", tables)) <= 0
    heads = page.locator("#attacks thead th").all_inner_texts()
    assert {"AUC", "TPR at FPR 1%", "PSNR (dB)"} <= set(heads)
