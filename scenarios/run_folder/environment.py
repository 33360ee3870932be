"""The environment of a run: versions, machine, plug-ins. It does not enter any digest."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping
from importlib import metadata
from typing import Any

from scenarios.run_folder.arrow_tables import FORMAT

PACKAGES = (
    "peerveil",
    "cryptography",
    "dp-accounting",
    "networkx",
    "numpy",
    "pyarrow",
    "pydantic",
    "safetensors",
    "scikit-learn",
    "scipy",
    "simpy",
    "torch",
)


def describe_environment(torch_threads: int | None, plugins: Mapping[str, str]) -> dict[str, Any]:
    """Returns the content of `environment.json`; `plugins` maps `module:Class` to the SHA-256 of its file."""
    return {
        "format": FORMAT,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "machine": platform.machine(),
        "cpus": os.cpu_count(),
        "torch_threads": torch_threads,
        "versions": {name: _version(name) for name in PACKAGES},
        "plugins": dict(plugins),
    }


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None
