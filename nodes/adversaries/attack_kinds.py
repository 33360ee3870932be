"""The table of attacks: those without torch are in privacy/attacks, the others beside this file.

An attack's module imports torch inside its functions, so that scenarios are read without it.
"""

from __future__ import annotations

from nodes.adversaries.membership.attack import MembershipAttack
from nodes.adversaries.reconstruction.attack import ReconstructionAttack
from privacy.attacks.linkage_attack import LinkageAttack
from privacy.attacks.non_neighbours import NonNeighboursAttack

ATTACKS: dict[str, type] = {
    "linkage": LinkageAttack,
    "reconstruction": ReconstructionAttack,
    "membership": MembershipAttack,
    "non_neighbours": NonNeighboursAttack,
}
AnyAttack = LinkageAttack | ReconstructionAttack | MembershipAttack | NonNeighboursAttack
