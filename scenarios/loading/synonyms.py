"""Words of the field that users write for the names of this program."""

from __future__ import annotations

from collections.abc import Collection

_MEANT = {
    # splits of data
    "non_iid": ("shards", "dirichlet"),
    "noniid": ("shards", "dirichlet"),
    "niid": ("shards", "dirichlet"),
    "heterogeneous": ("shards", "dirichlet"),
    "skewed": ("shards", "dirichlet"),
    "label_skew": ("shards", "dirichlet"),
    "lda": ("dirichlet",),
    "random": ("iid", "random_regular", "erdos_renyi"),
    "natural": ("by_client",),
    # protocols
    "leader": ("rotating_leader",),
    "pseudo_central": ("rotating_leader",),
    "rotating": ("rotating_leader",),
    "server": ("central", "server"),
    "fedavg": ("central",),
    "federated": ("central",),
    "centralised": ("central",),
    "centralized": ("central",),
    "star": ("central", "star"),
    "p2p": ("gossip",),
    "peer_to_peer": ("gossip",),
    "decentralised": ("gossip",),
    "decentralized": ("gossip",),
    "dsgd": ("gossip",),
    "d_sgd": ("gossip",),
    "epidemic": ("gossip",),
    # models
    "logistic": ("linear",),
    "logistic_regression": ("linear",),
    "softmax": ("linear",),
    "dense": ("mlp",),
    "neural_network": ("mlp",),
    "lenet": ("sigmoid_lenet", "cnn"),
    "dummy": ("bytes",),
    # calibration
    "proved": ("rigorous",),
    "proven": ("rigorous",),
    "exact": ("rigorous",),
    "analytic": ("rigorous",),
    # keys
    "classes": ("devices",),
    "device_classes": ("devices",),
    "peers": ("clients", "exchange_with"),
    "nodes": ("clients",),
    "users": ("clients",),
    "bandwidth": ("uplink", "downlink"),
    "upload": ("uplink",),
    "download": ("downlink",),
    "delay": ("latency",),
    "rtt": ("latency",),
    "packet_loss": ("loss",),
    "lr": ("learning_rate",),
    "batch": ("batch_size",),
    "dropout": ("availability", "faults"),
    "churn": ("churn", "availability"),
    "attackers": ("adversaries",),
    "topology": ("graph",),
    # distributions and availability
    "normal": ("lognormal",),
    "gauss": ("gaussian", "lognormal"),
    "always_on": ("always",),
    "offline": ("churn", "trace"),
    "max_min": ("fair",),
    "maxmin": ("fair",),
    "tcp": ("fair",),
}


def meant_by(word: str, known: Collection[str]) -> list[str]:
    """Returns the known names that a word of the field stands for; none if it is no such word."""
    key = word.strip().lower().replace("-", "_").replace(" ", "_")
    return [name for name in _MEANT.get(key, ()) if name in known]
