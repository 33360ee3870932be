"""The stages that a scenario may list under `update`."""

from __future__ import annotations

from privacy.stages.clipping import Clip
from privacy.stages.gaussian import Gaussian

AnyStage = Clip | Gaussian
STAGES: dict[str, type] = {"clip": Clip, "gaussian": Gaussian}
STAGE_NEEDS = ("takes", "bounds", "declare", "apply")
"""What a plug-in stage must have; its declarations count, and it counts as undeclared beside them."""
