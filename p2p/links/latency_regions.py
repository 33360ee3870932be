"""Regions of the world and the round-trip times between them.

Source: IBM Cloud VPC documentation, "Network latency", inter-region averages of 28 September to 27 October 2024
(github.com/ibm-cloud-docs/vpc, _include-segments/network-latency.md). The values are measured between data centres
over one provider's backbone. They exclude the last mile of homes and phones, and do not cover South Asia and Africa.
For a study, use a matrix measured between the actual peers (`latency: {kind: matrix, path: ...}`).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

REGIONS: dict[str, str] = {
    "us-south": "Dallas",
    "ca-east": "Toronto",
    "us-east": "Washington DC",
    "eu-central": "Frankfurt",
    "eu-west": "London",
    "eu-south": "Madrid",
    "jp-west": "Osaka",
    "au-east": "Sydney",
    "jp-east": "Tokyo",
    "sa-east": "Sao Paulo",
}
"""Each region's name and the city it was measured in, in the order of the table below."""

_ROUND_TRIP_MS = (
    (0, 34, 31, 123, 113, 119, 150, 185, 141, 144),
    (34, 0, 19, 93, 84, 108, 169, 214, 162, 131),
    (31, 19, 0, 90, 76, 89, 175, 213, 169, 119),
    (123, 92, 92, 0, 13, 29, 232, 250, 231, 197),
    (114, 84, 76, 13, 0, 27, 244, 261, 242, 188),
    (119, 107, 90, 29, 27, 0, 259, 275, 255, 207),
    (150, 171, 176, 234, 245, 259, 0, 122, 9, 292),
    (184, 214, 214, 250, 261, 275, 122, 0, 115, 328),
    (143, 164, 167, 231, 243, 257, 9, 115, 0, 283),
    (144, 131, 119, 198, 188, 206, 291, 327, 287, 0),
)
"""From row to column, as published; the two directions are separate averages over one month and differ slightly."""


def one_way_s(names: list[str], same_region_s: float) -> NDArray[np.float64]:
    """Returns one-way latencies between regions: half the mean of both round trips; `same_region_s` on the diagonal."""
    order = list(REGIONS)
    rows = [order.index(name) for name in names]
    round_trips = np.array(_ROUND_TRIP_MS, dtype=np.float64)[np.ix_(rows, rows)]
    latencies = (round_trips + round_trips.T) / 4 / 1e3  # mean of two directions, half of it, ms to s
    np.fill_diagonal(latencies, same_region_s)
    return latencies
