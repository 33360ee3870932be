"""The table of attacks: those without torch are in privacy/attacks, the others beside this file.

An attack's module imports torch inside its functions, so that scenarios are read without it.
"""

from __future__ import annotations

from privacy.attacks.linkage_attack import LinkageAttack

ATTACKS: dict[str, type] = {"linkage": LinkageAttack}
AnyAttack = LinkageAttack
