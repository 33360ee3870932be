"""What leaves clients or joins their records and is charged to no ledger; nothing rigorous is claimed then."""

from __future__ import annotations

from nodes.datasets.preparation import generator_of, mixed_records, pooled_releases
from nodes.faults.fault_kinds import FAULTS
from nodes.faults.timed_faults import Corrupt
from nodes.protocols.api import Disclosure, disclosure_of
from nodes.schedules.discounting import Discounting
from privacy.calibration.noise_plan import NoisePlan
from scenarios.schema import Scenario

_DEPENDS = "who sends what and when depends on what was learned"
_ALTERED_SHARES = "noise shares that were altered on their way unnoticed; set `anonymity.sealed: true`"


def unaccounted_releases(scenario: Scenario, noise: NoisePlan | None) -> list[str]:
    """Returns what leaves clients and is not charged, one sentence each; any of it makes every figure infinite.

    Models and graphs release nothing, and data sets only what they pool over clients. A protocol, a stage of the
    update, or a part of the privacy section that is a plug-in may.
    """
    declared = () if noise is None else noise.unaccounted
    found = [*_undeclared(scenario), *declared, *pooled_releases(scenario.data), *disclosed(scenario).unaccounted]
    if disclosed(scenario).events_depend_on_learning:
        found.append(_DEPENDS)
    found += scenario.aggregate.unaccounted()
    found += scenario.schedule.unaccounted() if isinstance(scenario.schedule, Discounting) else ()
    settings = scenario.noise_shares
    if settings is not None and settings.weights == "records" and not settings.records_public:
        found.append("record counts, which the weights of updates tell; declare `noise_shares.records_public`")
    sizes = None if settings is None else settings.sigma_k or settings.epsilon
    if settings is not None and settings.unequal == "list" and isinstance(sizes, tuple) and len(set(sizes)) > 1:
        found.append("sigma_k, which the number of partners tells; use `noise_shares.unequal: pad`")
    if settings is not None and may_be_altered(scenario):
        found.append(_ALTERED_SHARES)
    return found


def why_no_record_level(scenario: Scenario, noise: NoisePlan | None) -> str:
    """Returns why nothing is proved about single records although their gradients are clipped and noised; else empty.

    What a record's own gradient is computed from must be that record, the model and public numbers alone.
    """
    found = [*unaccounted_releases(scenario, noise), *mixed_records(scenario.data)]
    settings = generator_of(scenario.data)
    found += () if settings is None else settings.unaccounted()
    if scenario.schedule.reads == "noisy_losses":
        found.append("members' losses leave as well; their noise is charged to the client, not to its records")
    objective = f"{type(scenario.objective).__module__}:{type(scenario.objective).__qualname__}"
    if objective in scenario.plugins:
        found.append(f"plug-in {objective} may use other records of a batch in a record's gradient")
    return found[0] if found else ""


def may_be_altered(scenario: Scenario) -> bool:
    """Returns whether a message may be altered on its way and be used nevertheless: only seals tell."""
    # What a plug-in does to messages is not known.
    harmless = tuple(kind for kind in FAULTS.values() if kind is not Corrupt)
    return scenario.anonymity.sealed is False and any(type(fault) not in harmless for fault in scenario.faults)


def sums_hide(scenario: Scenario, noise: NoisePlan) -> bool:
    """Returns whether an aggregate hides each release in the noise of the others.

    A flipped bit may multiply a coordinate of a release by any power of two, noise and content alike, so that the noise
    of others is nothing beside it.
    """
    return noise.linear and not may_be_altered(scenario)


def events_depend_on_learning(scenario: Scenario) -> bool:
    """Returns whether who sends what and when depends on what was learned, by the protocol or by the schedule."""
    return disclosed(scenario).events_depend_on_learning or bool(scenario.schedule.reads)


def disclosed(scenario: Scenario) -> Disclosure:
    """Returns what the protocol declares; a protocol that declares nothing is followed by all paths."""
    return disclosure_of(scenario.protocol) or Disclosure()


def _undeclared(scenario: Scenario) -> list[str]:
    """Returns the plug-ins through which updates pass and that do not say what they release."""
    privacy = scenario.privacy
    parts: list[object] = [] if disclosure_of(scenario.protocol) else [scenario.protocol]
    if privacy is not None:
        parts += [privacy.clip, privacy.noise, privacy.calibration, *privacy.stages]
    names = [f"{type(part).__module__}:{type(part).__qualname__}" for part in parts]
    return [f"plug-in {name} does not declare what it releases" for name in scenario.plugins if name in names]
