"""The section on anonymity reads as design.md writes it, and costs nothing to import."""

from __future__ import annotations

import subprocess
import sys

import pytest
from pydantic import TypeAdapter, ValidationError

from privacy.anonymity.settings import Anonymity


@pytest.mark.parametrize("sealed", [True, "sizes", False])
def test_sealed_takes_three_values(sealed: object) -> None:
    """`true`, `sizes` and `false` survive validation unchanged."""
    assert TypeAdapter(Anonymity).validate_python({"sealed": sealed}).sealed is sealed


def test_defaults_protect() -> None:
    """By default there is rehashing, neighbours only and real sealing."""
    expected = Anonymity(rehash="every_round", hand_out="neighbours", sealed=True, routing="assumed")
    assert TypeAdapter(Anonymity).validate_python({}) == expected


@pytest.mark.parametrize("wrong", [{"sealed": "size"}, {"sealed": 2}, {"rehash": "daily"}, {"routing": "onion"}])
def test_other_values_are_refused(wrong: dict[str, object]) -> None:
    """A typo does not turn into a default."""
    with pytest.raises(ValidationError):
        TypeAdapter(Anonymity).validate_python(wrong)


@pytest.mark.slow
def test_modules_of_the_layer_import_no_cipher() -> None:
    """Checking a scenario must not pay for `cryptography`."""
    code = (
        "import sys, privacy.anonymity.settings, privacy.sealing.sealers, privacy.anonymity.pseudonyms;"
        "print('cryptography' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
