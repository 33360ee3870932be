"""User-defined strategies: `kind: module:Class`, imported only with the user's permission."""

from __future__ import annotations

import dataclasses
import importlib
import importlib.machinery
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

from p2p.config.errors import UserError

_NAME = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*", re.ASCII)


class Plugins:
    """Finds plug-in classes and records the SHA-256 of each one's file."""

    def __init__(self, allowed: bool) -> None:
        self.allowed = allowed
        self.found: dict[str, str] = {}

    def find(
        self, name: str, folder: Path, needs: Sequence[str] = (), adapt: Callable[[type], type] | None = None
    ) -> type:
        """Returns the class named `module:Class`; modules in the scenario's folder can be imported.

        Raises:
            ValueError: not allowed, not found, not a dataclass, or without one of `needs`; the text says which.
        """
        if not _NAME.fullmatch(name):
            raise ValueError("is not a plug-in; write `module:Class`")
        if not self.allowed:
            # Before the import: importing runs the module.
            raise ValueError("would run code of yours; add --allow-plugins if you trust it")
        module_name, _, class_name = name.partition(":")
        module = _import(module_name, folder)
        strategy = getattr(module, class_name, None)
        if strategy is None:
            raise ValueError(f"{module.__file__ or module_name} has no `{class_name}`; check the name")
        if adapt is not None and isinstance(strategy, type):
            strategy = adapt(strategy)
        if not isinstance(strategy, type) or not dataclasses.is_dataclass(strategy):
            raise ValueError("must be a dataclass; its fields are the keys of the scenario")
        # Fields without a default exist on instances only.
        known = {*dir(strategy), *(field.name for field in dataclasses.fields(strategy))}
        lacking = [f"`{each}`" for each in needs if each not in known]
        if lacking:
            raise ValueError(f"has no {', '.join(lacking)}, which a plug-in needs here; add what is missing")
        # Only of what was accepted, so the record names what the run really used.
        self.found[name] = _fingerprint(module)
        return strategy


@contextmanager
def blaming_plugins(plugins: Mapping[str, str]) -> Iterator[None]:
    """Turns any error of a run with plug-ins into a `UserError` that names them and the place."""
    try:
        yield
    except UserError:
        raise
    except Exception as error:
        if not plugins:
            raise
        place = _place(error, plugins)
        raise UserError(
            f"plug-in {', '.join(plugins)}: fails ({type(error).__name__}: {error}) in {place}; see how a plug-in "
            "of its kind must behave, and correct it"
        ) from error


def _place(error: Exception, plugins: Mapping[str, str]) -> str:
    """Returns file and line of the innermost frame in a plug-in, or the innermost of all."""
    import traceback

    frames = traceback.extract_tb(error.__traceback__)
    files = {getattr(sys.modules.get(name.partition(":")[0]), "__file__", None) for name in plugins}
    own = [frame for frame in frames if frame.filename in files]
    innermost = (own or list(frames))[-1]
    return f"{innermost.filename}, line {innermost.lineno}"


def _import(name: str, folder: Path) -> ModuleType:
    with _importable(folder):
        _forget_namesake(name, folder)
        # The file may have been written since the folder was last searched.
        importlib.invalidate_caches()
        try:
            return importlib.import_module(name)
        except ModuleNotFoundError as error:
            # Either the plug-in itself is missing, or a module that it imports.
            if error.name == name.partition(".")[0]:
                raise ValueError(f"there is no module `{name}`; put {name}.py into {folder}") from error
            raise ValueError(f"the module needs `{error.name}`, which is not installed") from error
        except (Exception, SystemExit) as error:
            raise ValueError(f"the module fails on import ({type(error).__name__}: {error})") from error


@contextmanager
def _importable(folder: Path) -> Iterator[None]:
    """Appends `folder` to the import path; last, so that a local module cannot shadow an installed one."""
    before = list(sys.path)
    sys.path.append(str(folder.absolute()))
    try:
        yield
    finally:
        sys.path[:] = before


def _forget_namesake(name: str, folder: Path) -> None:
    """Unloads a module of the same name that was imported from another scenario's folder."""
    top = name.partition(".")[0]
    known = sys.modules.get(top)
    spec = importlib.machinery.PathFinder.find_spec(top, sys.path)
    # Only modules from the scenario's own folder are unloaded, never an installed one.
    if known is None or spec is None or spec.origin is None or known.__file__ == spec.origin:
        return
    if Path(spec.origin).is_relative_to(folder.absolute()):
        for loaded in [key for key in sys.modules if key == top or key.startswith(f"{top}.")]:
            del sys.modules[loaded]


def _fingerprint(module: ModuleType) -> str:
    if not module.__file__:
        return "built in"
    # Imported here: it loads OpenSSL, and few scenarios have plug-ins.
    import hashlib

    # Of the file alone; what it imports is not followed.
    return hashlib.sha256(Path(module.__file__).read_bytes()).hexdigest()
