"""`Scenario`: what one run is made of. Its sections are the strategies themselves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Literal

from annotated_types import Ge, Le, Len

from nodes.availability import AVAILABILITIES, Always, Churn, UpTrace
from nodes.datasets import DATASETS, Digits, File, Synthetic
from nodes.evaluation import Evaluation
from nodes.failover import ProxySettings
from nodes.faults import FAULTS, Fault
from nodes.models import MODELS, Cnn, Linear, Mlp
from nodes.protocols import PROTOCOLS
from nodes.protocols.central import Central
from nodes.protocols.gossip import Gossip
from nodes.protocols.rotating_leader import RotatingLeader
from nodes.published import Adult, Cifar10, FashionMnist, Mnist
from nodes.training import Training
from p2p.choices import Choice
from p2p.distributions import Constant, SpeedPerNode
from p2p.links import NetworkSettings
from privacy.anonymity import Anonymity
from privacy.settings import Privacy
from privacy.share_settings import NoiseShares

Data = Annotated[Digits | Synthetic | File | Mnist | FashionMnist | Cifar10 | Adult, Choice(DATASETS, key="name")]
Model = Annotated[Linear | Mlp | Cnn, Choice(MODELS)]
Availability = Annotated[Always | Churn | UpTrace, Choice(AVAILABILITIES)]
Faults = tuple[Annotated[Fault, Choice(FAULTS)], ...]
Protocol = Annotated[Gossip | RotatingLeader | Central, Choice(PROTOCOLS)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """One experiment: who learns what from which data, by which protocol, over which network.

    Attributes:
        name: what the run and its folder are called, at most 80 characters
        question: what this scenario is to answer
        seed: the one source of all randomness
        rounds: how many rounds to run at most
        clients: how many peers there are
        data: what is learned from, and who holds which records
        model: what is learned
        training: how a client trains on its own records
        evaluation: when and for whom accuracy is measured
        protocol: how updates meet
        anonymity: what peers may know of each other
        privacy: how updates are protected; none leaves them as they are
        noise_shares: noise that peers split among themselves and that cancels in the sum; none exchanges nothing
        network: links, latencies and losses
        compute: how many samples a client trains on per second
        proxy: what happens when the trusted proxy is lost
        availability: when clients are up
        faults: what goes wrong, and when
        learning: torch trains for real, none moves byte counts only
    """

    name: Annotated[str, Len(1, 80)]
    question: Annotated[str, Len(0, 1000)] = ""
    seed: Annotated[int, Ge(0)] = 0
    rounds: Annotated[int, Ge(1), Le(1_000_000)]
    clients: Annotated[int, Ge(2), Le(10_000_000)]
    data: Data
    model: Model
    training: Training = field(default_factory=Training)
    evaluation: Evaluation = field(default_factory=Evaluation)
    protocol: Protocol
    anonymity: Anonymity = field(default_factory=Anonymity)
    privacy: Privacy | None = None
    noise_shares: NoiseShares | None = None
    network: NetworkSettings = field(default_factory=NetworkSettings)
    compute: SpeedPerNode = field(default_factory=lambda: Constant(value=200.0))
    proxy: ProxySettings = field(default_factory=ProxySettings)
    availability: Availability = field(default_factory=Always)
    faults: Faults = ()
    learning: Literal["torch", "none"] = "torch"
    plugins: Mapping[str, str] = field(default_factory=dict, compare=False, repr=False, metadata={"key": False})
