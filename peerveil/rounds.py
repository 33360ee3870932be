"""Round by round: a simulation that can be looked into, and stopped, after every round."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from peerveil.sources import read_source
from peerveil.values import Values

if TYPE_CHECKING:
    import networkx as nx
    import numpy as np
    import pandas as pd
    from numpy.typing import NDArray

    from scenarios.composition.simulation import Simulation
    from scenarios.schema import Scenario


class RoundState:
    """A simulation after one of its rounds. It is a view: the next round changes what it shows.

    >>> import peerveil as pv
    >>> states = pv.simulate("tiny", rounds=3, learning="none")
    >>> first = next(states)
    >>> first.number, first.graph.number_of_nodes() > 0
    (1, True)
    """

    def __init__(self, simulation: Simulation, row: Mapping[str, Any]) -> None:
        self._simulation = simulation
        self.figures = Values(row)
        self.number = int(row["round"])

    @property
    def time_s(self) -> float:
        """Simulated seconds since the start."""
        return float(self._simulation.clock.now)

    @property
    def accuracy(self) -> float | None:
        """Mean accuracy after aggregation of the evaluated members; None if the round was not evaluated."""
        value = self.figures["accuracy_after_mean"]
        return None if value is None else float(value)

    @property
    def messages(self) -> pd.DataFrame:
        """All transmissions so far, those under way included."""
        from scenarios.run_folder import arrow_tables

        frame: pd.DataFrame = arrow_tables.to_arrow("messages", self._simulation.log.messages).to_pandas()
        return frame

    @property
    def graph(self) -> nx.DiGraph[int]:
        """The round's graph: an edge from sender to receiver, nodes by their true numbers."""
        import networkx as nx

        graphs = self._simulation.log.graphs
        mine = graphs["round"] == self.number
        graph: nx.DiGraph[int] = nx.DiGraph()
        graph.add_edges_from(zip(graphs["sender"][mine].tolist(), graphs["receiver"][mine].tolist(), strict=True))
        return graph

    def model(self, client: int) -> NDArray[np.float32]:
        """Returns a client's current model as one vector.

        Raises:
            UserError: nothing is learned, or there is no such client.
        """
        from p2p.config.errors import UserError

        learning, clients = self._simulation.deferred_learning, self._simulation.scenario.clients
        if learning is None:
            raise UserError("learning = none: there are no models; set `learning` to torch")
        if not 0 <= client < clients:
            raise UserError(f"client = {client}: must be from 0 to {clients - 1}")
        vector: NDArray[np.float32] = learning.model(client).array().copy()
        return vector

    def __repr__(self) -> str:
        learned = "" if self.accuracy is None else f", accuracy {self.accuracy:.3f}"
        return f"round {self.number} of {self._simulation.scenario.name}: {self.time_s:.1f} s simulated{learned}"


def simulate(
    scenario: str | Path | Mapping[str, Any] | Scenario,
    *,
    data_dir: str | Path | None = None,
    threads: int | None = None,
    allow_plugins: bool = False,
    **changes: Any,
) -> Iterator[RoundState]:
    """Runs a scenario in memory and yields its state after every round; `break` stops it early.

    Nothing is written. The events are those of `peerveil.run`. Arguments are as there; problems of the scenario are
    raised by this call, before the first round.

    >>> import peerveil as pv
    >>> for state in pv.simulate("tiny", rounds=5, learning="none"):
    ...     if len(state.messages) > 10:
    ...         break
    >>> state.number < 5
    True
    """
    checked = read_source(scenario, changes, allow_plugins)
    return _rounds(checked, None if data_dir is None else Path(data_dir), threads)


def _rounds(scenario: Scenario, data_dir: Path | None, threads: int | None) -> Iterator[RoundState]:
    from scenarios.build import build
    from scenarios.loading.plugins import blaming_plugins

    with blaming_plugins(scenario.plugins):
        simulation = build(scenario, data_dir=data_dir, threads=threads)
        for row in simulation.rounds():
            yield RoundState(simulation, row)
