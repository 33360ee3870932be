"""Compares reconstructions with the records of true senders: figures, a table, and pictures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from nodes.adversaries.reconstruction.carry_out import Attempt
from nodes.adversaries.reconstruction.comparison import MEASURES, Compared
from nodes.adversaries.reconstruction.gradient_target import to_images
from nodes.adversaries.reconstruction.pictures import draw_curves, draw_grid
from nodes.adversaries.reconstruction.recognition import Ensemble
from nodes.adversaries.reconstruction.similarity import pair_images, psnr_db
from privacy.attacks.attack import Result
from privacy.attacks.observations import Records, Truth, join_records

# Test images for the judges: enough for five small networks.
JUDGED_BY = 5000


def score_attempts(attempts: Sequence[Attempt], truth: Truth) -> Result:
    """Returns means of all measures for each manner and noise, a row for each image, and a grid of pictures."""
    judges = _judges(attempts[0], truth)
    compared = [_compare(attempt, truth, judges) for attempt in attempts]
    results = [_summed(group) for group in grouped(compared)]
    return Result(
        headline=_headline(results[0]),
        figures={"results": results, "noise_std": truth.noise_std, "judges": "five networks trained on the test set"},
        table=_table(compared),
        curves=draw_curves(results, truth.noise_std, compared),
        grids=[draw_grid([group[0] for group in grouped(compared)])],
    )


def grouped(compared: Sequence[Compared]) -> list[list[Compared]]:
    """Returns the attempts of each manner and noise, in their order."""
    groups: dict[tuple[str, float], list[Compared]] = {}
    for one in compared:
        groups.setdefault((one.attempt.manner, one.attempt.added_noise), []).append(one)
    return list(groups.values())


def _judges(attempt: Attempt, truth: Truth) -> Ensemble:
    test = truth.test()
    images = to_images(torch.from_numpy(np.array(test.features[:JUDGED_BY])), attempt.pixels)
    return Ensemble(images, torch.from_numpy(np.array(test.labels[:JUDGED_BY])), attempt.classes, truth.seed)


def _compare(attempt: Attempt, truth: Truth, judges: Ensemble) -> Compared:
    senders = truth.origin[attempt.rows if attempt.manner == "sum" else attempt.rows[-1:]]
    records = join_records([truth.trained_on(node) for node in np.unique(senders).tolist()])
    originals = to_images(torch.from_numpy(np.array(records.features)), attempt.pixels)
    which, found = pair_images(attempt.images, originals)
    records = records.at(which)
    pairs = attempt.images[found], originals[which]
    # Weng's sigma C is the noise on a sum of gradients; an update's noise is that on a mean.
    noise = float(np.hypot(truth.noise_std, attempt.added_noise)) * attempt.scale * len(attempt.images)
    leakage = judges.judge(*pairs, noise)
    return Compared(
        attempt, pairs[1], pairs[0], records, _prior(attempt, truth, originals, which, records), leakage.printed,
        leakage.recognised, float(np.mean(truth.origin[attempt.rows] == truth.origin[attempt.rows[-1]])),
    )  # fmt: skip


def _prior(attempt: Attempt, truth: Truth, originals: Tensor, which: Any, records: Records) -> float:
    """Returns the mean PSNR of a guess without any update: the mean test image, of the same label if that is known."""
    test = truth.test()
    images = to_images(torch.from_numpy(np.array(test.features)), attempt.pixels)
    labels = torch.from_numpy(np.array(test.labels))
    guesses = [
        images[labels == label].mean(0) if attempt.labels_known and bool((labels == label).any()) else images.mean(0)
        for label in records.labels.tolist()
    ]
    return float(psnr_db(torch.stack(guesses), originals[which]).mean())


def _summed(group: Sequence[Compared]) -> dict[str, Any]:
    first, parts = group[0].attempt, [one.measured() for one in group]
    means = {name: float(torch.cat([part[name] for part in parts]).nanmean()) for name in MEASURES}
    recognised = np.concatenate([one.recognised for one in group])
    return {
        "manner": first.manner,
        "added_noise": first.added_noise,
        "round": first.round_number,
        "uploads": len(group),
        "images": len(recognised),
        **means,
        "recognised": float(recognised.mean()),
        "p_pl_printed": float(np.mean([one.printed for one in group])),
        "prior_psnr_db": float(np.mean([one.prior_db for one in group])),
        # Of the messages that were added up, how many are the attacked client's; a sum mixes clients on purpose.
        "linked_right": float(np.mean([one.right_links for one in group])) if first.manner == "all_round" else None,
        "loss": {"first": first.losses[0], "last": first.losses[-1]},
    }


_SOURCES = {
    "one_round": "single uploads",
    "all_round": "the linked uploads of a client",
    "sum": "the sum of a round's uploads",
}


def _headline(figures: dict[str, Any]) -> str:
    return (
        f"images from {_SOURCES[figures['manner']]} come out at {figures['psnr_db']:.1f} dB on average, where a guess "
        f"without the update has {figures['prior_psnr_db']:.1f} dB; {figures['recognised']:.0%} of "
        f"{figures['images']} are recognised"
    )


def _table(compared: Sequence[Compared]) -> dict[str, Any]:
    parts = [(one, one.measured()) for one in compared]
    counts = [len(one.found) for one in compared]

    def spread(values: list[Any]) -> list[Any]:
        return [value for value, count in zip(values, counts, strict=True) for _ in range(count)]

    return {
        "manner": spread([one.attempt.manner for one in compared]),
        "added_noise": spread([one.attempt.added_noise for one in compared]),
        "round": spread([one.attempt.round_number for one in compared]),
        "observation": spread([int(one.attempt.rows[-1]) for one in compared]),
        "record": np.concatenate([one.records.numbers for one in compared]),
        "label": np.concatenate([one.records.labels for one in compared]),
        **{name: torch.cat([part[name] for _, part in parts]).numpy() for name in MEASURES},
        "recognised": np.concatenate([one.recognised for one in compared]),
    }
