"""Figures: each module draws the record of the experiment of its name, ``draw(study) -> Figure`` or a dict of them."""

#: Name of a figure (and of the record it reads) to its module; one line a figure, imported when it is drawn.
FIGURES = {
    "clustering": "figures.clustering",
    "compare_attention": "figures.compare_attention",
    "real_tokens": "figures.real_tokens",
    "merge_trees": "figures.merge_trees",
    "leaders": "figures.leaders",
    "low_rank_attention": "figures.low_rank_attention",
}
