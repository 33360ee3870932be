"""What leaves clients or joins their records and is charged to no ledger; nothing rigorous is claimed then."""

from __future__ import annotations

from nodes.datasets.preparation import pooled_releases
from scenarios.schema import Scenario


def unaccounted_releases(scenario: Scenario) -> list[str]:
    """Returns a sentence for each: what a plug-in sends without declaring it, and statistics the data set pools."""
    plugins = [f"plug-in {name} does not declare what it releases" for name in scenario.plugins]
    return [*plugins, *pooled_releases(scenario.data)]
