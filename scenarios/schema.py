"""`Scenario`: the complete description of one run. Its sections are the strategies themselves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Literal

from annotated_types import Ge, Le, Len

from nodes.adversaries.attack_kinds import ATTACKS, AnyAttack
from nodes.adversaries.observers import OBSERVERS, AnyObserver
from nodes.aggregation.settings import Aggregate
from nodes.datasets.plays import Shakespeare
from nodes.datasets.published import Adult, Cifar10, FashionMnist, Mnist
from nodes.datasets.registry import DATASETS, Digits, File, Synthetic
from nodes.datasets.reserved import Reserved
from nodes.faults.availability import AVAILABILITIES, Always, Churn, DayTrace, UpTrace
from nodes.faults.fault_kinds import FAULTS, Fault
from nodes.learning.evaluation import Evaluation
from nodes.learning.model_kinds.models import MODELS, SIZE_ONLY, ByteCount, Cnn, Linear, Mlp, adapt_module
from nodes.learning.model_kinds.published_models import (
    PUBLISHED_MODELS,
    AsgpCnn,
    Cnn6,
    FednoreCnn,
    NissCnn,
    SigmoidLenet,
)
from nodes.learning.objectives import OBJECTIVES, CrossEntropy, Fednore1, Fednore2, FednoreBoth, FedProx, Hinge
from nodes.learning.sequences.sequence_models import SEQUENCE_MODELS, Lstm
from nodes.learning.training import Training
from nodes.protocols import PROTOCOL_NEEDS, PROTOCOLS
from nodes.protocols.central import Central
from nodes.protocols.gossip import Gossip
from nodes.protocols.rotating_leader import RotatingLeader
from nodes.proxy.settings import ProxySettings
from nodes.schedules import SCHEDULES
from nodes.schedules.budgets import Budgets
from nodes.schedules.discounting import Discounting
from nodes.schedules.fixed import Fixed
from p2p.config.choices import Choice
from p2p.config.distributions import Constant, SpeedPerNode
from p2p.links.settings import NetworkSettings
from privacy.anonymity.settings import Anonymity
from privacy.audits.settings import Audit
from privacy.noise_shares.settings import NoiseShares
from privacy.settings import Privacy
from privacy.stages.table import STAGE_NEEDS, STAGES, AnyStage

Data = Annotated[
    Digits | Synthetic | File | Mnist | FashionMnist | Cifar10 | Adult | Shakespeare,
    Choice(DATASETS, key="name", needs=("load", "split")),
]
Model = Annotated[
    Linear | Mlp | Cnn | Lstm | ByteCount | Cnn6 | SigmoidLenet | FednoreCnn | NissCnn | AsgpCnn,
    Choice(MODELS | SEQUENCE_MODELS | PUBLISHED_MODELS | SIZE_ONLY, needs=("build",), adapt=adapt_module),
]
Objective = Annotated[
    CrossEntropy | Hinge | FedProx | Fednore1 | Fednore2 | FednoreBoth, Choice(OBJECTIVES, needs=("terms",))
]
Availability = Annotated[Always | Churn | UpTrace | DayTrace, Choice(AVAILABILITIES)]
Faults = tuple[Annotated[Fault, Choice(FAULTS, needs=("install",))], ...]
Adversaries = tuple[Annotated[AnyObserver, Choice(OBSERVERS)], ...]
Attacks = tuple[Annotated[AnyAttack, Choice(ATTACKS, needs=("unfit", "guess", "score"))], ...]
Update = tuple[Annotated[AnyStage, Choice(STAGES, needs=STAGE_NEEDS)], ...]
Protocol = Annotated[Gossip | RotatingLeader | Central, Choice(PROTOCOLS, needs=PROTOCOL_NEEDS)]

Schedule = Annotated[Fixed | Discounting | Budgets, Choice(SCHEDULES)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """One experiment: who learns what from which data, by which protocol, over which network.

    Attributes:
        name: name of the run and its folder, at most 80 characters
        question: the question this scenario answers
        seed: the one source of all randomness
        rounds: how many rounds to run at most
        clients: number of clients
        data: training data and its split among the clients
        model: the model to train
        training: local training of a client
        objective: what a client minimises when it trains
        evaluation: when and for which clients accuracy is measured
        protocol: how updates are exchanged and aggregated
        anonymity: what peers may know of each other
        update: stages between training and release, in order; `privacy.clip` and `privacy.noise` are their short form
        privacy: clipping and noise of updates; none leaves them unprotected
        aggregate: what an aggregator does with the updates of a round
        schedule: how many rounds the run has, and how much noise each of them gets
        noise_shares: noise shares exchanged by peers, which cancel in the sum; none exchanges nothing
        network: links, latencies and losses
        compute: samples per second a client trains on
        proxy: what happens when the trusted proxy is lost
        availability: when clients are online
        faults: faults to inject, and when
        reserved: records kept out of training, so that attacks can be scored
        adversaries: who watches the run, and what of it is kept
        attacks: attacks on what the adversaries saw, scored at the end of the run
        audit: runs with canaries that measure epsilon from below, after the run; none leaves them out
        learning: torch trains models, none simulates messages only
    """

    name: Annotated[str, Len(1, 80)]
    question: Annotated[str, Len(0, 1000)] = ""
    seed: Annotated[int, Ge(0)] = 0
    rounds: Annotated[int, Ge(1), Le(1_000_000)]
    clients: Annotated[int, Ge(2), Le(10_000_000)]
    data: Data
    model: Model
    training: Training = field(default_factory=Training)
    objective: Objective = field(default_factory=CrossEntropy)
    evaluation: Evaluation = field(default_factory=Evaluation)
    protocol: Protocol
    anonymity: Anonymity = field(default_factory=Anonymity)
    update: Update = ()
    privacy: Privacy | None = None
    aggregate: Aggregate = field(default_factory=Aggregate)
    schedule: Schedule = field(default_factory=Fixed)
    noise_shares: NoiseShares | None = None
    network: NetworkSettings = field(default_factory=NetworkSettings)
    compute: SpeedPerNode = field(default_factory=lambda: Constant(value=200.0))
    proxy: ProxySettings = field(default_factory=ProxySettings)
    availability: Availability = field(default_factory=Always)
    faults: Faults = ()
    reserved: Reserved = field(default_factory=Reserved)
    adversaries: Adversaries = ()
    attacks: Attacks = ()
    audit: Audit | None = None
    learning: Literal["torch", "none"] = "torch"
    # Recorded for reproduction; not a key, and no part of a scenario's identity.
    plugins: Mapping[str, str] = field(default_factory=dict, compare=False, repr=False, metadata={"key": False})
