"""Merge trees: one start on the sphere, every attention, and which tokens each brings together when."""

import numpy as np
from scipy.cluster.hierarchy import cophenet
from scipy.stats import spearmanr

import meanfield as mf
from meanfield.analysis.merging import MergingDetector
from meanfield.analysis.observables import diameter

from . import full_size

CLAIM = (
    "From one start on the sphere six attentions merge the tokens in similar orders, each by its own clock, and most "
    "rest for long at two clusters."
)

SPACE = mf.Sphere()

#: Tokens this far apart, in radians, belong together.
GAP = 0.1


def cases(quick):
    """One start a replica, for all variants."""
    replicas = 1 if quick else 24 if full_size() else 3
    common = {"n": 20, "d": 3, "beta": 3.0, "horizon": 100.0, "outputs": 61 if quick else 121}
    return [common | {"replica": k} for k in range(replicas)]


def run(case, rng):
    """One uniform start on the sphere, moved by each variant with Q = K = V = I.

    Returns
    -------
    dict of arrays
        For each name of ATTENTION: NAME_linkage (n - 1, 4), NAME_instants (k,) and NAME_counts (k,), NAME_times of the
        merges, NAME_consensus (infinite without), NAME_splits (how many), NAME_agreement (rank correlation of the
        merge times of pairs with softmax's, NaN where all are equal). Besides, horizon and gap.
    """
    start = mf.Measure(SPACE.retract(rng.normal(size=(case["n"], case["d"]))))
    trees = {name: merge_tree(name, case, start) for name in mf.ATTENTION}
    heights = {name: cophenet(tree.linkage(roof=2 * case["horizon"])) for name, tree in trees.items()}
    result = {"horizon": case["horizon"], "gap": GAP}
    for name, tree in trees.items():
        kept = tree.arrays()
        result |= {f"{name}_{key}": kept[key] for key in ("linkage", "instants", "counts", "times")}
        result[f"{name}_consensus"] = kept["consensus_time"]
        result[f"{name}_splits"] = len(tree.splits)
        result[f"{name}_agreement"] = agreement(heights[name], heights["softmax"])
    return result


def merge_tree(name, case, start):
    """The tree of one variant; the run stops once all tokens are within half a gap, or at the horizon."""
    options = {"tolerance": 1e-7} if name == "sinkhorn" else {}
    trajectory = mf.simulate(
        mf.make_attention(name, mf.Head.identity(case["d"], case["beta"]), **options),
        start,
        np.concatenate([[0.0], np.geomspace(1e-2, case["horizon"], case["outputs"] - 1)]),
        space=SPACE,
        scheme=mf.Adaptive(rtol=1e-6, atol=1e-8),
        events=mf.Event(gathered, terminal=True),
        progress=False,
    )
    return MergingDetector(GAP, space=SPACE)(trajectory)


def agreement(heights, others):
    """Rank correlation of two lists of merge times, between -1 and 1; NaN if all times of a list are equal."""
    return np.nan if min(np.ptp(heights), np.ptp(others)) == 0 else spearmanr(heights, others).statistic


def gathered(t, measure):
    """Falls through zero when the largest distance of two tokens is half a gap."""
    return diameter(measure, space=SPACE) - GAP / 2
