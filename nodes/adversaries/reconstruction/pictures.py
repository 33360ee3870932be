"""Curves and grids of pictures of reconstructions, for the report page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from nodes.adversaries.reconstruction.comparison import Compared
from privacy.attacks.attack import Curve, PictureGrid

# Images of an upload that a grid shows, and points of a line of losses.
SHOWN, POINTS = 10, 100
Line = tuple[list[float], list[float]]


def draw_curves(results: Sequence[dict[str, Any]], noise_std: float, compared: Sequence[Compared]) -> list[Curve]:
    """Returns PSNR over noise, if several noises were tried, and the attack's loss over its steps."""
    manners = list(dict.fromkeys(one["manner"] for one in results))
    losses = _losses(compared, noise_std)
    if len(results) == len(manners):
        return [losses]
    lines = {manner: _over_noise(results, manner, "psnr_db", noise_std) for manner in manners}
    lines["guess without the update"] = _over_noise(results, manners[0], "prior_psnr_db", noise_std)
    ends = [
        f"{name}: {y[0]:.1f} dB at noise {x[0]:.3g}, {y[-1]:.1f} dB at {x[-1]:.3g}" for name, (x, y) in lines.items()
    ]
    over_noise = Curve(
        title="Reconstruction and noise",
        x="noise on each coordinate of an update",
        y="PSNR, dB",
        lines=lines,
        text=f"PSNR of reconstructions over the noise of an update. {'; '.join(ends)}.",
    )
    return [over_noise, losses]


def _over_noise(results: Sequence[dict[str, Any]], manner: str, key: str, noise_std: float) -> Line:
    mine = [one for one in results if one["manner"] == manner]
    return [float(np.hypot(noise_std, one["added_noise"])) for one in mine], [one[key] for one in mine]


def _losses(compared: Sequence[Compared], noise_std: float) -> Curve:
    lines: dict[str, Line] = {}
    for one in compared:
        noise = float(np.hypot(noise_std, one.attempt.added_noise))
        every = max(1, len(one.attempt.losses) // POINTS)
        steps = [float(step) for step in range(0, len(one.attempt.losses), every)]
        # Of several uploads the first stands for all.
        lines.setdefault(f"{one.attempt.manner}, noise {noise:.3g}", (steps, one.attempt.losses[::every]))
    ends = "; ".join(f"{name}: from {y[0]:.3g} to {y[-1]:.3g}" for name, (_, y) in lines.items())
    text = f"Loss of the attack over its steps, for the first upload. {ends}."
    return Curve(title="Loss of the attack", x="step", y="loss", lines=lines, text=text)


def draw_grid(first: Sequence[Compared]) -> PictureGrid:
    """Returns originals of the first attacked upload above their reconstructions, a row for each manner and noise."""
    top = first[0]
    shown = top.records.numbers[:SHOWN]
    rows, images = ["original"], [top.originals[:SHOWN]]
    for one in first:
        decibels = float(one.measured()["psnr_db"].mean())
        added = f", noise + {one.attempt.added_noise:g}" if one.attempt.added_noise else ""
        rows.append(f"{one.attempt.manner.replace('_', ' ')}{added}: {decibels:.1f} dB")
        images.append(torch.stack([_picture_of(one, number) for number in shown.tolist()]))
    text = f"{len(shown)} images. Rows from top to bottom: {'; '.join(rows)}."
    return PictureGrid(title="Originals and reconstructions", rows=rows, images=_pixels(torch.stack(images)), text=text)


def _picture_of(one: Compared, number: int) -> Tensor:
    """Returns the reconstruction that was paired with a record; black if none was."""
    places = np.flatnonzero(one.records.numbers == number)
    return one.found[int(places[0])] if len(places) else torch.zeros_like(one.found[0])


def _pixels(images: Tensor) -> NDArray[np.float32]:
    """Returns [rows, columns, channels, height, width] as pictures: grey, or colours last."""
    values = images.clamp(0.0, 1.0).float()
    pictures: NDArray[np.float32] = (values[:, :, 0] if values.shape[2] == 1 else values.movedim(2, -1)).numpy()
    return pictures
