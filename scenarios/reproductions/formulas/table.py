"""The results that have a verdict by formula.

A rule is the function itself: what is computed, and what counts as reproduced, stands in its docstring. Each takes at
most seconds.
"""

from __future__ import annotations

from collections.abc import Callable

from scenarios.reproductions.formulas import (
    asgp_tables,
    asgp_theorems,
    genfl_theorems,
    niss_shares,
    wei_rounds,
    weng_anonymity,
    weng_attacks,
    weng_training,
)
from scenarios.reproductions.verdict import Verdict

FORMULAS: dict[str, Callable[[], Verdict]] = {
    "S0-T3.1": weng_training.budgets_of_table_3_1,
    "S0-C3.1": weng_training.sparsity_saves_nine_tenths,
    "S0-C3.2": weng_training.central_accountant_stops_first,
    "S0-C3.4": weng_training.noise_floor_of_fednore,
    "S0-C3.6": weng_training.drop_outs_by_budget,
    "S0-T4.5": weng_attacks.objectives_by_printed_values,
    "S0-C4.1": weng_attacks.base_noise_one_is_epsilon_eight,
    "S0-C4.3": weng_attacks.attack_theory,
    "S0-C5.1": weng_anonymity.anonymous_noise_scale,
    "S0-C5.2": weng_anonymity.optimum_of_theorem_nine,
    "S1-F3": wei_rounds.moment_bound,
    "S1-C1": wei_rounds.noise_for_a_budget,
    "S1-C2": wei_rounds.optimal_rounds_of_the_bound,
    "S1-C3": wei_rounds.unchanged_rounds_keep_sigma,
    "S1-C4": wei_rounds.order_of_divergences,
    "S2-C1": niss_shares.average_gain,
    "S2-C2": niss_shares.residual_noise,
    "S2-C3": niss_shares.colluding_partners,
    "S2-C4": niss_shares.doubled_noise,
    "S3-C2": genfl_theorems.mixed_training,
    "S4-TIII": asgp_tables.attack_ceilings,
    "S4-TIV": asgp_tables.most_accurate_by_printed_values,
    "S4-TV": asgp_tables.means_of_table_five,
    "S4-TVI": asgp_tables.gap_shrinks,
    "S4-F4": asgp_tables.attack_order_by_printed_values,
    "S4-F5": asgp_tables.accuracy_order_by_printed_values,
    "S4-C1": asgp_theorems.partial_noise,
    "S4-C2": asgp_theorems.shares_of_the_budget,
    "S4-C3": asgp_theorems.parameters_form_a_cauchy_sequence,
    "S4-C4": asgp_tables.harder_data_larger_gain,
}
