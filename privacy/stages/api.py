"""The shape of a stage, and what stages declare.

A stage is a frozen dataclass with one verb, `apply`, which works on the rows of a matrix in place, one row per client.
Everything else about a run's releases (ledger, accountant, bytes, plan, report) follows from `bounds` and `declare`;
no other code knows a stage by name.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from privacy.stages.wire import DENSE, WireFormat

if TYPE_CHECKING:
    from privacy.accounting.curves.loss_events import LossEvent
    from privacy.calibration.noise_plan import PlanContext
    from privacy.calibration.published_rules import PublishedRule

Matrix = NDArray[np.float32]
Floats = NDArray[np.float64]
Problem = tuple[str, object, str]


Indices = NDArray[np.int64]


@dataclass(slots=True)
class Update:
    """Updates before noise, one row per client; nothing of them has left yet.

    Attributes:
        support: the coordinates of each row that will be sent; None where all will.
        scale: the bound that clipping used for each row and layer, where it is private; [k, layers].
    """

    rows: Matrix
    support: Sequence[Indices | None] | None = None
    scale: Floats | None = None

    def sent(self, index: int) -> int:
        """Returns how many coordinates of a row will be sent."""
        places = None if self.support is None else self.support[index]
        return self.rows.shape[1] if places is None else len(places)

    def by_coordinate(self, index: int, of_layers: Floats, layers: Sequence[int]) -> Matrix | np.float32:
        """Returns a number per layer as one per coordinate that will be sent; one number alone stays one."""
        if len(of_layers) == 1:
            return np.float32(of_layers[0])
        spread = np.repeat(of_layers.astype(np.float32), layers)
        places = None if self.support is None else self.support[index]
        return spread if places is None else spread[places]

    def trim(self) -> None:
        """Sets coordinates that will not be sent to zero again, after a stage that may have moved them."""
        for row, places in zip(self.rows, self.support or (), strict=False):
            if places is not None:
                values = row[places]
                row[:] = 0.0
                row[places] = values

    def add(self, index: int, noise: Matrix) -> None:
        """Adds noise to the coordinates of a row that will be sent, in place."""
        places = None if self.support is None else self.support[index]
        if places is None:
            self.rows[index] += noise
        else:
            # The noise has one number per place: coordinates that are not sent need none and stay zero.
            self.rows[index, places] += noise


@dataclass(slots=True)
class Released:
    """Updates after noise, one row per client, as receivers get them; what follows is post-processing."""

    rows: Matrix


class Norms(NamedTuple):
    """Three bounds as numbers, of one client or of all."""

    l1: float
    l2: float
    linf: float


_UNBOUNDED = np.full(1, math.inf)
_UNBOUNDED.flags.writeable = False  # one array is the default of all bounds


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Bounds:
    """How far each client's content can be from a public point, by three norms; infinite where nothing bounds it.

    Two contents are at most twice as far from each other, which is all that proofs about noise need.

    Attributes:
        l1, l2, linf: one number for each client, or one for all of them.
        centred: whether the public point is zero, so that the norms bound the content itself.
        private: whether clipping used a bound that depends on private data, so that no public one is known.
    """

    l1: Floats = field(default_factory=lambda: _UNBOUNDED)
    l2: Floats = field(default_factory=lambda: _UNBOUNDED)
    linf: Floats = field(default_factory=lambda: _UNBOUNDED)
    centred: bool = True
    private: bool = False

    @property
    def largest(self) -> Norms:
        """The bounds that hold for all clients."""
        # Each norm by itself: the client with the largest L1 norm need not be that with the largest L2 norm.
        return Norms(*(float(norm.max()) for norm in (self.l1, self.l2, self.linf)))

    @property
    def equal(self) -> bool:
        """Whether all clients have the same bounds."""
        return all(float(norm.min()) == float(norm.max()) for norm in (self.l1, self.l2, self.linf))

    def of(self, node: int) -> Norms:
        """Returns the bounds of one client."""
        # One number stands for all clients; no other length but their number occurs.
        return Norms(*(float(norm[min(node, len(norm) - 1)]) for norm in (self.l1, self.l2, self.linf)))

    def within(self, dimension: int) -> Bounds:
        """Returns the bounds with each norm at most what the other two imply for this many coordinates."""
        # |x|_inf <= |x|_2 <= |x|_1 <= sqrt(d) |x|_2 <= d |x|_inf; l2 first gains from linf, then l1 and linf from l2.
        least, root = np.minimum, math.sqrt(dimension)
        linf = least(least(self.linf, self.l2), self.l1)
        l2 = least(least(self.l2, root * linf), self.l1)
        return replace(self, l1=least(self.l1, root * l2), l2=l2, linf=least(linf, l2))


@dataclass(frozen=True, slots=True)
class UpdateShape:
    """The form of an update: its coordinates, and the lengths of its layers in order."""

    dimension: int
    layers: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Declared:
    """What is known of a release after some stages.

    Attributes:
        bounds: how far the content can be from a public point; a replaced client moves it by at most twice that.
        noised: whether noise has been added.
        std: standard deviation of Gaussian noise on each coordinate sent, of each client; zero without.
        losses: for noise that is not Gaussian, the privacy loss of one release of each client.
        coordinate_std: standard deviation of any noise on a coordinate sent, of each client, where it is known.
        linear: whether a sum of releases is a sum of contents and of their noises, so that it hides each in the others.
        kept: coordinates that are sent.
        layers: lengths of the layers, where a stage needs them.
        reads: what parameters of the stages depend on, beyond the public; one sentence per parameter.
        unaccounted: what else leaves with the vector and is not charged, one sentence each.
        wire: encoding of a release.
        published: the paper's accounting rule, if one applies.
        unpublished: why none does; empty where the general reason holds.
        view_share: fraction of a release's mu^2 that the budgeted view sees.
        notes: conditions of formulas that this run does not meet.
    """

    bounds: Bounds = field(default_factory=Bounds)
    noised: bool = False
    std: Floats
    losses: tuple[LossEvent, ...] = ()
    coordinate_std: Floats | None = None
    linear: bool = True
    kept: int
    layers: tuple[int, ...] = ()
    reads: tuple[str, ...] = ()
    unaccounted: tuple[str, ...] = ()
    wire: WireFormat = DENSE
    published: PublishedRule | None = None
    unpublished: str = ""
    view_share: float = 1.0
    notes: tuple[str, ...] = ()

    def reading(self, parameter: str) -> Declared:
        """Returns this with one more parameter that depends on private data, as a sentence."""
        return replace(self, reads=(*self.reads, parameter))

    def leaking(self, item: str) -> Declared:
        """Returns this with one more item that leaves with the vector and is not charged."""
        return replace(self, unaccounted=(*self.unaccounted, item))


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseBatch:
    """The releases that are made together: row i is that of client `nodes[i]`.

    Attributes:
        nodes: the client of each row.
        generators: each row's own random stream; no draw serves two rows.
        round_number: the round.
        rounds: planned rounds of the run.
        records: records of each row's client.
        seed: of the run, for draws that are public and common to all clients.
        rate: learning rate of the round.
        models: every client's model from which its training started, by client.
        masks: 1 at the coordinates that the last aggregate behind every client's model moved most, by client; all zero
            before the first aggregate. It is public, and none unless a stage has `masks_last`.
        memory: what stages remember from release to release, by name, one row per client; part of a checkpoint.
        losses: loss of each row's client on its own records before training; none unless a stage needs it.
        noise_factor: the schedule's factor on the noise of this round; a stage that heeds it has `scales` set.
    """

    nodes: NDArray[np.int64]
    generators: Sequence[np.random.Generator]
    round_number: int
    rounds: int
    records: NDArray[np.int64]
    seed: int
    rate: float
    models: Matrix
    masks: Matrix | None = None
    memory: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    losses: Floats | None = None
    noise_factor: float = 1.0

    def part(self, rows: slice) -> ReleaseBatch:
        """Returns the same of some of the rows."""
        return replace(
            self,
            nodes=self.nodes[rows],
            generators=self.generators[rows],
            records=self.records[rows],
            losses=None if self.losses is None else self.losses[rows],
        )

    def needed_losses(self) -> Floats:
        """Returns the losses, for a stage that declares `needs_loss`."""
        if self.losses is None:
            # Found here and not before: a plug-in may read what it did not declare.
            raise ValueError("a stage reads losses without declaring `needs_loss`")
        return self.losses


class Stage(Protocol):
    """One step from an update to what leaves the client.

    `takes` names what it accepts and `gives` what it returns (None: what it was given), so that a list in the wrong
    order is refused before the run.
    """

    takes: ClassVar[tuple[type, ...]]
    gives: ClassVar[type | None]

    def problems(self, before: Bounds) -> Iterator[Problem]:
        """Yields (key, value, rule and cure) of what cannot work after such bounds; cheap, for `peerveil check`."""

    def bounds(self, before: Bounds, shape: UpdateShape) -> Bounds:
        """Returns the bounds of the content after this stage."""

    def declare(self, before: Declared, context: PlanContext) -> Declared:
        """Returns what is known after this stage; called once, before the run."""

    def remembers(self, clients: int, rounds: int, shape: UpdateShape) -> dict[str, NDArray[Any]]:
        """Returns the initial values of what this stage remembers from release to release, one row per client."""

    def apply(self, rows: Any, plan: Declared, batch: ReleaseBatch) -> Update | Released:
        """Transforms the rows in place; `plan` is what this stage declared. Rows do not influence each other."""


class PlainStage:
    """Defaults of most stages: they take an update, give one back, and accept any bounds.

    Attributes:
        with_shares: whether noise shares can be added to what comes out.
        one_aggregator: why one place must see all updates of a round; empty if none must.
    """

    __slots__ = ()
    takes: ClassVar[tuple[type, ...]] = (Update,)
    gives: ClassVar[type | None] = None
    with_shares: ClassVar[bool] = False

    @property
    def one_aggregator(self) -> str:
        """Nothing."""
        return ""

    def problems(self, before: Bounds) -> Iterator[Problem]:
        """Yields nothing."""
        return iter(())

    def remembers(self, clients: int, rounds: int, shape: UpdateShape) -> dict[str, NDArray[Any]]:
        """Returns nothing."""
        return {}
