"""Why a result has no verdict: a drawing, numbers of others, missing data, or no rule yet."""

from __future__ import annotations

from scenarios.reproductions.formulas.table import FORMULAS
from scenarios.reproductions.published_results import PublishedResult
from scenarios.reproductions.rule_file import rules

DRAWING = "a drawing, nothing measured"
_REASONS = {
    "S0-F1.4": "no rule yet; FedAvg against classes per client runs today",
    "S0-F1.5": "needs ImageNet and a trained ResNet18, which are not at hand",
    "S0-F3.3": "no rule yet; needs ldp-fl with MNIST repeated ten times",
    "S0-F3.5": "no rule yet; needs lcdp-fl with MNIST repeated ten times",
    "S0-T3.2": "no rule yet; CIFAR-10 with a CNN takes hours",
    "S0-C3.3": "a reading of F3.8 and F3.9, which are not run",
    "S0-C3.5": "a timing; not measured as a result",
    "S0-T4.2": "settings only, nothing measured",
    "S0-T5.3": "no rule yet; CIFAR-10 with a CNN takes hours",
    "S0-F5.3": "no rule yet; the system runs today",
    "S0-F5.4": "no rule yet; the system runs today",
    "S0-F5.9": "no rule yet; CIFAR-10 with a CNN takes hours",
    "S0-F5.10": "no rule yet; CIFAR-10 with a CNN takes hours",
    "S0-F5.11": "no rule yet; CIFAR-10 with a CNN takes hours",
    "S0-F5.12": "no rule yet; CIFAR-10 with a CNN takes hours",
    "S0-F5.14": "no rule yet; CIFAR-10 with a CNN takes hours",
    "S1-F5": "needs the IPUMS-US census, which is not at hand",
    "S2-F4": "no rule yet; CNNs take hours",
    "S2-C5": "no rule yet; the catalog has niss-coalitions",
    "S2-C6": "numbers of another paper",
    "S3-C1": "numbers of other papers",
    "S4-F7": "no rule yet; the data and the model run today (shakespeare-lstm)",
    "S4-TII": "settings only, nothing measured",
    "S4-C5": "a timing; not measured as a result",
    "S0-F3.10": "no rule yet; a CNN of 52 rounds takes two hours a run",
    "S0-F3.11": "no rule yet; a CNN of 52 rounds takes two hours a run",
    "S0-F3.12": "no rule yet; a CNN of 52 rounds takes two hours a run",
    "S0-F3.13": "no rule yet; a CNN of 52 rounds takes two hours a run",
}
_FAMILIES = {
    # The first that an id begins with counts.
    "S0-F3": "no rule yet; the systems run today (see F3.6 and F3.7)",
    "S0-T4": "no rule yet; the attack runs today (attack-reconstruction)",
    "S0-F4": "no rule yet; the attack runs today (attack-reconstruction)",
    "S0-C4": "no rule yet; the attack runs today (attack-reconstruction)",
    "S0-F5": "no rule yet; the system runs today",
    "S1": "no rule yet; the system runs today (see F11)",
    "S3-C": "constants that cannot be computed",
    "S3": "no rule yet; the system and the attacks run today (dp-genfl)",
    "S4": "no rule yet; the catalog has dp-fedasgp and its baselines at reduced size",
}


def state_of(result: PublishedResult) -> str:
    """Returns `sweep`, `formula`, or why there is neither; a sweep's verdict contains that of its formula."""
    if result.id in rules():
        return "sweep"
    if result.id in FORMULAS:
        return "formula"
    if result.diagram:
        return DRAWING
    family = (reason for start, reason in _FAMILIES.items() if result.id.startswith(start))
    return _REASONS.get(result.id) or next(family)
