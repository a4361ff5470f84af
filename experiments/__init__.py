"""Experiments: each module has a CLAIM, ``cases(quick)`` and ``run(case, rng)``, and its record is drawn by figures/.

CLAIM : str
    One sentence, what the experiment shows.
cases(quick) : list of dict
    Plain parameters (numbers, strings, lists), all that a case depends on; few and small ones when quick, the most
    when `full_size()`.
run(case, rng) : dict of arrays
    One case, from its parameters and its own Generator.
"""

import os

#: Name to module; one line an experiment, imported when it is run.
EXPERIMENTS = {
    "clustering": "experiments.clustering",
    "compare_attention": "experiments.compare_attention",
    "affine_equilibria": "experiments.affine_equilibria",
    "blow_up_map": "experiments.blow_up_map",
    "gaussian_covariances": "experiments.gaussian_covariances",
    "rank_histograms": "experiments.rank_histograms",
    "gaussian_limit": "experiments.gaussian_limit",
    "finite_n_blow_up": "experiments.finite_n_blow_up",
    "l2_blow_up": "experiments.l2_blow_up",
    "real_tokens": "experiments.real_tokens",
    "stability": "experiments.stability",
    "mean_field_limit": "experiments.mean_field_limit",
    "masked_stability": "experiments.masked_stability",
    "merge_trees": "experiments.merge_trees",
    "leaders": "experiments.leaders",
    "low_rank_attention": "experiments.low_rank_attention",
    "two_views": "experiments.two_views",
    "staircase": "experiments.staircase",
    "energy_dissipation": "experiments.energy_dissipation",
    "heads_over_time": "experiments.heads_over_time",
    "non_convexity": "experiments.non_convexity",
}

#: The environment variable behind `full_size`; ``--full`` sets it.
FULL = "MEANFIELD_FULL"


def full_size():
    """Whether ``cases`` is asked for the largest sizes, which may take many minutes."""
    return os.environ.get(FULL, "0") not in ("", "0")
