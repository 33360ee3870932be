"""The stages that a scenario may list under `update`."""

from __future__ import annotations

from privacy.stages.binomial import Binomial
from privacy.stages.clipping import Clip, ClipCohortMedian, ClipCoordinates, ClipLayers, ClipOwnMedian
from privacy.stages.gaussian import Gaussian
from privacy.stages.laplace import Laplace
from privacy.stages.selective import Asgp, Snlc
from privacy.stages.sparse import Mask, TopK
from privacy.stages.sparse_vector import AsgpSound

AnyStage = (
    Clip
    | ClipLayers
    | ClipCoordinates
    | ClipOwnMedian
    | ClipCohortMedian
    | TopK
    | Mask
    | Gaussian
    | Laplace
    | Binomial
    | Asgp
    | AsgpSound
    | Snlc
)
STAGES: dict[str, type] = {
    "clip": Clip,
    "clip_layers": ClipLayers,
    "clip_coordinates": ClipCoordinates,
    "clip_own_median": ClipOwnMedian,
    "clip_cohort_median": ClipCohortMedian,
    "top_k": TopK,
    "mask": Mask,
    "gaussian": Gaussian,
    "laplace": Laplace,
    "binomial": Binomial,
    "asgp": Asgp,
    "asgp_sound": AsgpSound,
    "snlc": Snlc,
}
STAGE_NEEDS = ("takes", "gives", "problems", "bounds", "declare", "remembers", "apply")
"""What a plug-in stage must have; its declarations count, and it counts as undeclared beside them."""
