"""The error of bad user input: a list of problems, each with the path, the value, the rule and the cure."""

from __future__ import annotations

from collections.abc import Sequence


class UserError(Exception):
    """Bad input. The command line prints it without a traceback and exits with code 2."""

    def __init__(self, problems: Sequence[str] | str, source: str = "") -> None:
        self.problems = [problems] if isinstance(problems, str) else list(problems)
        self.source = source
        super().__init__(str(self))

    def __str__(self) -> str:
        if not self.source:
            return "\n".join(self.problems)
        count = len(self.problems)
        head = f"{self.source}: {count} problem{'' if count == 1 else 's'}"
        return "\n".join([head, *(f"  {line}" for line in self.problems)])
