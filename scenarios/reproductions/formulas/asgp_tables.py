"""DP-FedASGP: what its printed values say by themselves."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from scenarios.reproductions.formulas.refutation import refuted
from scenarios.reproductions.published_results import find_result
from scenarios.reproductions.verdict import Part, Verdict, judge


def attack_ceilings() -> Verdict:
    """S4-TIII. Refuted if a printed attack accuracy exceeds what the stated epsilon allows any attack.

    An attack on balanced members and non-members of epsilon-DP training is right at most e^eps / (1 + e^eps) times.
    """
    cells = [row for row in find_result("S4-TIII").rows if row["metric"] == "attack_accuracy"]
    above = [row for row in cells if row["value"] > math.exp(row["epsilon"]) / (1 + math.exp(row["epsilon"]))]
    most = max(above, key=lambda row: row["value"])
    part = Part("no printed accuracy exceeds the ceiling of its epsilon", not above, f"{len(above)} of {len(cells)} do")
    example = f"{most['system']}, {most['dataset']}, {most['attack']}, epsilon {most['epsilon']}: {most['value']}"
    return refuted([part], f"the training cannot have had the stated epsilon, such as {example}")


def gap_shrinks() -> Verdict:
    """S4-TVI. Refuted if the printed lead of DP-FedASGP over DP-FedAvg grows somewhere with epsilon, or is none."""
    series: dict[tuple[str, str], dict[float, dict[str, float]]] = defaultdict(lambda: defaultdict(dict))
    for row in find_result("S4-TVI").rows:
        series[str(row["dataset"]), str(row.get("model", ""))][float(row["epsilon"])][str(row["system"])] = float(
            row["value"]
        )
    parts = []
    for (dataset, model), by_epsilon in series.items():
        gaps = [by_epsilon[epsilon]["DP-FedASGP"] - by_epsilon[epsilon]["DP-FedAvg"] for epsilon in sorted(by_epsilon)]
        points = " ".join(f"{100 * gap:.2f}" for gap in gaps)
        name = f"{dataset} {model}".strip()
        parts.append(Part(f"{name}: ahead at every epsilon", min(gaps) > 0, f"points {points}"))
        parts.append(Part(f"{name}: the gap shrinks", all(b < a for a, b in pairwise(gaps)), f"points {points}"))
    failed = [part for part in parts if not part.holds]
    return refuted(parts, f"by the printed values themselves: {failed[0].statement} fails") if failed else judge(parts)


def most_accurate_by_printed_values() -> Verdict:
    """S4-TIV. Refuted if another method has a larger printed accuracy than DP-FedASGP in some column."""
    columns: dict[tuple[str, str, float], dict[str, float]] = defaultdict(dict)
    for row in find_result("S4-TIV").rows:
        columns[row["dataset"], row["model"], row["epsilon"]][row["system"]] = row["value"]
    beaten = {key: max(by, key=lambda system: by[system]) for key, by in columns.items()}
    beaten = {key: best for key, best in beaten.items() if best != "DP-FedASGP"}
    detail = "; ".join(
        f"{dataset} {model}, epsilon {epsilon:g}: {best}" for (dataset, model, epsilon), best in beaten.items()
    )
    part = Part("DP-FedASGP has the largest printed accuracy in every column", not beaten, detail or "it has")
    return refuted([part], "by the printed values themselves another method is ahead in some columns")


def means_of_table_five() -> Verdict:
    """S4-TV. Refuted if a mean or lead that is printed differs from that of Table IV by more than rounding (0.006)."""
    exact: dict[tuple[str, str], list[float]] = defaultdict(list)
    for row in find_result("S4-TIV").rows:
        exact[f"{row['dataset']} {row['model']}", row["system"]].append(100 * row["value"])
    parts = []
    for row in find_result("S4-TV").rows:
        column = f"{row['dataset']} {row['model']}"
        if row["metric"] != "mean_accuracy" or (column, row["system"]) not in exact:
            continue
        mean, printed = float(np.mean(exact[column, row["system"]])), 100 * row["value"]
        near = abs(mean - printed) <= 0.006
        parts.append(Part(f"{column}, {row['system']}", near, f"printed {printed:.2f}, recomputed {mean:.2f}"))
    means = {
        system: float(np.mean([np.mean(v) for (_, name), v in exact.items() if name == system])) for system in _OTHERS
    }
    own = float(np.mean([np.mean(values) for (_, name), values in exact.items() if name == "DP-FedASGP"]))
    for system, printed in _OTHERS.items():
        lead = own - means[system]
        parts.append(
            Part(f"lead over {system}", abs(lead - printed) <= 0.006, f"printed {printed}, recomputed {lead:.2f}")
        )
    wrong = [part for part in parts if not part.holds]
    because = f"{len(wrong)} printed numbers do not follow from Table IV" if wrong else ""
    shown = wrong or parts
    agree = Part(f"{len(parts) - len(wrong)} other numbers", True, "agree within rounding")
    return refuted([*shown, agree], because) if wrong else judge(parts)


_OTHERS = {"DP-FedAvg": 2.62, "cpSGD": 4.71, "DP-FedSNLC": 0.45, "FedSMP": 0.19}
"""Printed leads of DP-FedASGP in points."""


def attack_order_by_printed_values() -> Verdict:
    """S4-F4. Refuted if, in a mean of Table III, DP-FedASGP is not above DP-FedAvg and cpSGD and below the others."""
    return _order_of("S4-F4", above=("DP-FedAvg", "cpSGD"), below=("FedSMP", "DP-FedSNLC"))


def accuracy_order_by_printed_values() -> Verdict:
    """S4-F5. Refuted if, in a mean of Table IV over both models, another method is ahead of DP-FedASGP."""
    return _order_of("S4-F5", above=("DP-FedAvg", "cpSGD", "FedSMP", "DP-FedSNLC"), below=())


def _order_of(name: str, above: Sequence[str], below: Sequence[str]) -> Verdict:
    groups: dict[tuple[str, float], dict[str, float]] = defaultdict(dict)
    for row in find_result(name).rows:
        groups[row["dataset"], row["epsilon"]][row["system"]] = row["value"]
    parts = []
    for sign, others in ((1.0, above), (-1.0, below)):
        for other in others:
            wrong = [key for key, by in groups.items() if sign * (by["DP-FedASGP"] - by[other]) <= 0]
            detail = f"{len(wrong)} of {len(groups)} say otherwise"
            if wrong:
                detail += f", such as {wrong[0][0]} at epsilon {wrong[0][1]:g}"
            parts.append(Part(f"DP-FedASGP is {'above' if sign > 0 else 'below'} {other}", not wrong, detail))
    failed = [part.statement for part in parts if not part.holds]
    return (
        refuted(parts, f"by the printed values themselves: not always {failed[0]}")
        if failed
        else judge(parts, ("arithmetic with printed values; nothing was run",))
    )


def harder_data_larger_gain() -> Verdict:
    """S4-C4. Refuted if the printed lead over DP-FedAvg is smaller on harder data, or grows with epsilon somewhere.

    Harder: a smaller printed accuracy of DP-FedAvg at the same epsilon.
    """
    columns: dict[tuple[float, str], dict[str, float]] = defaultdict(dict)
    for row in find_result("S4-TIV").rows:
        columns[row["epsilon"], f"{row['dataset']} {row['model']}"][row["system"]] = 100 * row["value"]
    parts = []
    for epsilon in sorted({key[0] for key in columns}):
        found = {key[1]: by for key, by in columns.items() if key[0] == epsilon}
        ordered = sorted(found.values(), key=lambda by: -by["DP-FedAvg"])
        leads = [by["DP-FedASGP"] - by["DP-FedAvg"] for by in ordered]
        detail = "leads from easy to hard: " + " ".join(f"{lead:.2f}" for lead in leads)
        parts.append(Part(f"epsilon {epsilon:g}: the harder, the larger the lead", leads == sorted(leads), detail))
    return refuted(parts, "by the printed values themselves the lead does not grow with the difficulty of the data")
