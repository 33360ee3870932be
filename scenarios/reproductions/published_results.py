"""The printed results of the papers: facts and figures with their source, as data of the package."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from p2p.config.errors import UserError
from scenarios.loading.problems import suggestion

PAPERS = ("S0", "S1", "S2", "S3", "S4")


@dataclass(frozen=True, slots=True)
class PublishedResult:
    """One table, figure or claim of a paper.

    Attributes:
        id: paper and number, such as S0-T5.4 (T table, F figure, C claim)
        source: the paper
        where: section of the paper
        rows: printed values; a figure that is only drawn has none
        settings: what the paper states, and what it does not
        diagram: a drawing without measurements
    """

    id: str
    source: str
    kind: str
    title: str
    system: str
    dataset: str
    where: str
    settings: Mapping[str, Any]
    rows: Sequence[Mapping[str, Any]]
    claim: str
    notes: str
    diagram: bool


@cache
def published_results() -> dict[str, PublishedResult]:
    """Returns all results by id, in the order of the papers."""
    found = {}
    for paper in PAPERS:
        text = (files("scenarios.reproductions") / "published" / f"{paper}.json").read_text(encoding="utf-8")
        content = json.loads(text)
        for one in content["results"]:
            found[one["id"]] = _read(one, content["source"]["cite"])
    return found


def find_result(name: str) -> PublishedResult:
    """Returns the result called so; raises a `UserError` that suggests another name."""
    known = published_results()
    if name not in known:
        raise UserError(f"{name}: no result is called so; {_hint(name, known)}")
    return known[name]


def folder_of(name: str) -> str:
    """Returns the folder for files about a result: its paper, and the chapter of a thesis."""
    paper, _, number = name.partition("-")
    chapter, dot, _ = number[1:].partition(".")
    return f"{paper}-chapter-{chapter}" if dot else paper


def _hint(name: str, known: Mapping[str, Any]) -> str:
    by_case = next((each for each in known if each.lower() == name.lower()), None)
    if by_case is not None:
        return f"did you mean `{by_case}`?"
    hint = suggestion(name, known)
    return hint if hint.startswith("did you") else "`peerveil reproduce --list` shows all"


def _read(one: Mapping[str, Any], source: str) -> PublishedResult:
    plain = {name: one[name] for name in ("id", "kind", "title", "system", "dataset", "where", "claim", "notes")}
    return PublishedResult(
        **plain, source=source, settings=one["settings"], rows=one["rows"], diagram=bool(one.get("diagram"))
    )
