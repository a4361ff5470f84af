"""Benchmarks: one file a question, ours against the peers that are installed, error beside time.

``make bench`` installs numexpr; torch, jax and pykeops run where somebody has installed them. Each module has

QUESTION : str
    One sentence that its table answers.
contests(full) : iterator of Contest
    What is computed, at which sizes, by which methods; more and larger ones when full.
remarks(rows) : list of str
    What the rows say beyond their numbers, for instance where a goal is missed.
"""

#: Name to module; one line a question, imported when it is asked.
BENCHMARKS = {
    "kernel_sum": "benchmarks.kernel_sum",
    "separable": "benchmarks.separable",
    "sinkhorn": "benchmarks.sinkhorn",
    "ensembles": "benchmarks.ensembles",
    "runs": "benchmarks.runs",
    "transport": "benchmarks.transport",
}
