"""The picture of docs/performance.md: what a round costs against how many peers there are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path


def draw_scaling(points: Sequence[Mapping[str, float]], path: Path) -> None:
    """CPU seconds and memory over peers, both axes logarithmic, with a line of slope one for the eye."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    peers = [point["peers"] for point in points]
    figure, (left, right) = pyplot.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
    cpu_s = [point["cpu_s"] for point in points]
    left.loglog(peers, cpu_s, "o-", label="measured")
    left.loglog(peers, [cpu_s[-1] * count / peers[-1] for count in peers], "k:", label="proportional to peers")
    left.set(xlabel="peers", ylabel="CPU seconds, a run of one round")
    left.legend()
    right.loglog(peers, [point["bytes"] / 2**30 for point in points], "o-")
    right.set(xlabel="peers", ylabel="memory, GiB")
    for axes in (left, right):
        axes.grid(visible=True, which="both", alpha=0.2)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)
    pyplot.close(figure)
