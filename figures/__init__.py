"""Figures: each module draws the record of the experiment of its name, ``draw(study) -> Figure`` or a dict of them."""

#: Name of a figure (and of the record it reads) to its module; one line a figure, imported when it is drawn.
FIGURES = {
    "clustering": "figures.clustering",
    "compare_attention": "figures.compare_attention",
    "affine_equilibria": "figures.affine_equilibria",
    "blow_up_map": "figures.blow_up_map",
    "gaussian_covariances": "figures.gaussian_covariances",
    "rank_histograms": "figures.rank_histograms",
    "gaussian_limit": "figures.gaussian_limit",
    "finite_n_blow_up": "figures.finite_n_blow_up",
    "l2_blow_up": "figures.l2_blow_up",
    "real_tokens": "figures.real_tokens",
    "stability": "figures.stability",
    "mean_field_limit": "figures.mean_field_limit",
    "masked_stability": "figures.masked_stability",
    "merge_trees": "figures.merge_trees",
    "leaders": "figures.leaders",
    "low_rank_attention": "figures.low_rank_attention",
    "two_views": "figures.two_views",
    "staircase": "figures.staircase",
    "energy_dissipation": "figures.energy_dissipation",
    "heads_over_time": "figures.heads_over_time",
    "non_convexity": "figures.non_convexity",
}
