"""Two solutions of every attention, in the plane, on a circle and under a mask, against the proved constant."""

import numpy as np

import meanfield as mf
from meanfield.analysis.stability import stability

CLAIM = (
    "Under every attention, in the plane, on a circle and under a causal mask, two solutions drift apart by less than "
    "the proved constant C(t, R0), often by far; Gronwall with the measured Lipschitz quotient comes near."
)

#: Radius of the ball (or the circle) that holds all tokens, and how far near laws are from each other.
RADIUS, NEAR = 0.5, 0.02

#: The run that is shown over time also has the Lipschitz constant in the worst direction.
SHOWN = ("softmax", "masked")


def cases(quick):
    """Every variant in both spaces, from pairs of near and of unrelated laws in turn."""
    common = {"n": 6, "horizon": 0.4, "outputs": 5 if quick else 9}
    variants, replicas = [*mf.ATTENTION, "masked", "multihead"], 2 if quick else 8
    return [
        common | {"variant": variant, "space": space, "replica": k, "near": k % 2 == 0}
        for space in ("plane", "circle")
        for variant in variants
        for k in range(replicas)
    ]


def run(case, rng):
    """One pair of laws under one random head with |V| = |A| = 1.

    Returns
    -------
    dict of arrays
        times (k,), ratios (k,), gronwall (k,), log_bound (k,), finished, and local_estimate (k,) for the first run of
        the variants that are shown over time.
    """
    n, circle = case["n"], case["space"] == "circle"
    space = mf.Sphere(RADIUS) if circle else mf.Euclidean()
    x, y = disc(n, rng), disc(n, rng)
    if case["near"]:
        y = x + NEAR * y
        y *= min(1.0, RADIUS / np.linalg.norm(y, axis=1).max())
    weights = rng.dirichlet(np.full(n, 2.0))
    shown = case["replica"] == 0 and case["variant"] in SHOWN
    found = stability(
        field_of(case["variant"], rng),
        *(law_of(case["variant"], space.retract(z), weights) for z in (x, y)),
        np.linspace(0.0, case["horizon"], case["outputs"]),
        space=space,
        scheme=mf.Adaptive(rtol=1e-7),
        max_columns=2 * n if shown else 0,
    )
    result = {
        "times": found.times,
        "ratios": found.ratios,
        "gronwall": found.gronwall,
        "log_bound": found.log_bound,
        "finished": found.finished,
    }
    return result | ({"local_estimate": found.local_estimate} if shown else {})


def disc(n, rng):
    """n tokens drawn uniformly from the disc."""
    angle, length = rng.uniform(0, 2 * np.pi, n), RADIUS * np.sqrt(rng.uniform(size=n))
    return length[:, None] * np.column_stack([np.cos(angle), np.sin(angle)])


def law_of(variant, tokens, weights):
    """The tokens as a measure, one a position under a mask."""
    if variant == "masked":
        return mf.Measure.positioned(np.arange(len(tokens)) / len(tokens), tokens, weights)
    return mf.Measure(tokens, weights)


def head(rng):
    """A random head whose value matrix and whose A have norm one."""
    query, key, value = rng.standard_normal((3, 2, 2))
    query, key = (matrix / np.linalg.norm(key.T @ query, 2) ** 0.5 for matrix in (query, key))
    return mf.Head(query, key, value / np.linalg.norm(value, 2))


def field_of(variant, rng):
    """A variant with a random head; two heads share V equally."""
    if variant == "masked":
        return mf.MaskedAttention(mf.SoftmaxAttention(head(rng)))
    if variant == "multihead":
        heads = [head(rng), head(rng)]
        halves = [mf.Head(one.query, one.key, one.value / 2) for one in heads]
        return mf.MultiHeadAttention(tuple(mf.SoftmaxAttention(one) for one in halves))
    return mf.make_attention(variant, head(rng))
