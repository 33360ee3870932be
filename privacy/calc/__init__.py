"""The privacy calculator: `CALC` maps each kind of computation to its function of named inputs."""

from __future__ import annotations

from collections.abc import Callable

from privacy.calc import adpdfl_kinds, baseline_kinds, gaussian_kinds, noise_share_kinds, vector_kinds
from privacy.calc.inputs import Result

CALC: dict[str, Callable[..., Result]] = {
    "gaussian_sigma": gaussian_kinds.gaussian_sigma,
    "gaussian_composition_eps": gaussian_kinds.gaussian_composition_eps,
    "max_releases_gaussian": gaussian_kinds.max_releases_gaussian,
    "rdp_to_dp": gaussian_kinds.rdp_to_dp,
    "advanced_composition": gaussian_kinds.advanced_composition,
    "poisson_sampled_gaussian_eps": gaussian_kinds.poisson_sampled_gaussian_eps,
    "max_rounds_poisson": gaussian_kinds.max_rounds_poisson,
    "wor_sampled_gaussian_eps": gaussian_kinds.wor_sampled_gaussian_eps,
    "dp_fedavg_noise_multiplier": gaussian_kinds.dp_fedavg_noise_multiplier,
    "clipping": vector_kinds.clipping_scales,
    "mia_accuracy_ceiling": baseline_kinds.mia_accuracy_ceiling,
    "t8_sigma": adpdfl_kinds.t8_sigma,
    "t8_max_rounds": adpdfl_kinds.t8_max_rounds,
    "t8_shortcut_conditions": adpdfl_kinds.t8_shortcut_conditions,
    "t9_bound": adpdfl_kinds.t9_bound,
    "adpdfl_views": adpdfl_kinds.adpdfl_views,
    "gossip_linear_view": adpdfl_kinds.gossip_linear_view,
    "gossip_taint_count": adpdfl_kinds.gossip_taint_count,
    "shuffle_amplification": adpdfl_kinds.shuffle_amplification,
    "niss_basic": noise_share_kinds.niss_basic,
    "niss_dropout_variance": noise_share_kinds.niss_dropout_variance,
    "niss_dropout_variance_random": noise_share_kinds.niss_dropout_variance_random,
    "niss_joint_view": noise_share_kinds.niss_joint_view,
    "niss_collusion_tail": noise_share_kinds.niss_collusion_tail,
    "niss_seed_vector": noise_share_kinds.niss_seed_vector,
    "thesis_moments_accountant": baseline_kinds.thesis_moments_accountant,
    "fednore1_penalty": baseline_kinds.fednore1_penalty,
    "fednore2_loss": baseline_kinds.fednore2_loss,
    "cdp_sigma": baseline_kinds.cdp_sigma,
    "crd_sequence": baseline_kinds.crd_sequence,
    "asgp_threshold": baseline_kinds.asgp_threshold,
    "asgp_weights": baseline_kinds.asgp_weights,
    "asgp_svt_scales": baseline_kinds.asgp_svt_scales,
    "asgp_sigma_eq2": baseline_kinds.asgp_sigma_eq2,
    "cpsgd_binomial": baseline_kinds.cpsgd_binomial,
    "lemma7_k1": vector_kinds.lemma7_k1,
    "image_metrics": vector_kinds.image_pair_metrics,
    "privacy_leakage_probability": vector_kinds.privacy_leakage_probability,
}
