"""Nested results as attributes: `summary.accuracy.mean` is `summary["accuracy"]["mean"]`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any


class Values(Mapping[str, Any]):
    """A read-only mapping whose keys are attributes too, at every depth.

    >>> figures = Values({"accuracy": {"mean": 0.75}, "keys": 3})
    >>> figures.accuracy.mean, figures["keys"]
    (0.75, 3)
    """

    __slots__ = ("_content",)

    def __init__(self, content: Mapping[str, Any]) -> None:
        self._content = content

    def __getitem__(self, key: str) -> Any:
        value = self._content[key]
        return Values(value) if isinstance(value, Mapping) else value

    def __getattr__(self, name: str) -> Any:
        # Only called for names that are no methods of a mapping; those stay reachable by index.
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"no key `{name}`; there are: {', '.join(self)}") from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._content)

    def __len__(self) -> int:
        return len(self._content)

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *(key for key in self if key.isidentifier())]

    def __repr__(self) -> str:
        return json.dumps(self._content, indent=2, default=str)

    def plain(self) -> dict[str, Any]:
        """Returns the content as an ordinary dict, inner ones included."""
        return {key: value.plain() if isinstance(value, Values) else value for key, value in self.items()}
