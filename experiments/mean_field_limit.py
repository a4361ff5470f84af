"""n tokens against their law: the rate of sampling at the start and later, by variant, by start, by dimension."""

import numpy as np
from scipy.special import ndtri

import meanfield as mf
from meanfield.analysis.mean_field_limit import AtPositions, UniformBall, mean_field_limit

from . import full_size

CLAIM = (
    "Under every attention n tokens stay as near to their law as sampling put them, n^(-1/2) on a line and n^(-1/d) in "
    "d >= 3 dimensions, while near the blow-up of a softmax Gaussian the rate is lost."
)

#: Q, K, V of the runs on the line, and the second head.
HEAD, SECOND = (0.7, 1.0, 0.4), (1.0, -0.8, 0.4)

#: Normal starts: mean and variance. At the pole the variance, with Q = K = V = 1, makes t* = 1.
MEAN, VARIANCE, POLE_VARIANCE = 0.2, 0.3, 0.5

#: The variants that are compared from normal starts: exactly, or (sigmoid) with a fine grid of quantiles.
NORMAL = ("softmax", "l2", "sinkhorn", "linear", "sigmoid")


def cases(quick):
    """Every variant on a line, both kinds of starts; softmax in more dimensions; softmax up to the pole of its law."""
    variants = [*mf.ATTENTION, "masked", "multihead"]
    sizes = [8, 32, 96] if quick else [8, 16, 32, 64, 128, 256] + ([512, 1024] if full_size() else [])
    line = {"d": 1, "sizes": sizes, "seeds": 3 if quick else 12, "reference": 256 if quick else 1024}
    few = [8, 16, 48] if quick else [8, 16, 32, 64, 128]
    space = {"sizes": few, "seeds": 3 if quick else 6, "reference": 512 if quick else 2048}
    return [
        *(line | {"kind": "compact", "variant": variant} for variant in variants),
        *(line | {"kind": "normal", "variant": variant} for variant in NORMAL),
        *(space | {"kind": "dimension", "variant": "softmax", "d": d} for d in (2, 3, 5)),
        *(line | {"kind": kind, "variant": "softmax", "seeds": 2 * line["seeds"]} for kind in ("pole", "bounded")),
    ]


def run(case, rng):
    """One study with the seeds 0, 1, ..., so that variants share their draws.

    Returns
    -------
    dict of arrays
        times (T,), sizes (S,), mean, low, high (S, T), slope (T,), slope_half (T,) at 95 %, rate, exact (whether the
        distance is exact and not sliced).
    """
    kind, d = case["kind"], case["d"]
    law, reference = start_of(case)
    pole = kind in ("pole", "bounded")
    found = mean_field_limit(
        mf.SoftmaxAttention(mf.Head.identity(1)) if pole else field_of(case["variant"], d),
        law,
        case["sizes"],
        np.linspace(0.0, 0.95, 11) if pole else np.array([0.0, 1.0]),
        seeds=case["seeds"],
        reference=reference,
        scheme=mf.Adaptive(rtol=1e-6) if kind == "pole" else mf.RK4,
        dt=None if kind == "pole" else 0.25,
    )
    low, high = found.band()
    slope, half = found.slope()
    result = {"times": found.times, "sizes": found.sizes, "mean": found.mean, "low": low, "high": high}
    exact = found.distance != "sliced"
    return result | {"slope": slope, "slope_half": half, "rate": found.rate, "exact": exact}


def start_of(case):
    """The law and what it is compared with: on a line a grid of quantiles, unless the Gaussian is known."""
    masked = case["variant"] == "masked"
    count = case["reference"] // 2 if masked else case["reference"]  # two positions
    middles = (np.arange(count) + 0.5) / count
    flat = 2 * middles[:, None] - 1
    if case["kind"] == "dimension":
        return UniformBall(case["d"]), case["reference"]
    if case["kind"] == "pole":
        return mf.Gaussian([0.0], [[POLE_VARIANCE]]), None
    if case["kind"] == "normal":
        law = mf.Gaussian([MEAN], [[VARIANCE]])
        grid = mf.Measure(MEAN + VARIANCE**0.5 * ndtri(middles)[:, None])
        return law, grid if case["variant"] == "sigmoid" else None
    if not masked:
        return UniformBall(1), mf.Measure(flat)
    places = np.array([0.0, 1.0])
    return AtPositions(UniformBall(1), places), mf.Measure.positioned(
        np.repeat(places, len(flat)), np.tile(flat, (len(places), 1))
    )


def field_of(variant, d):
    """Multiples of the identity for Q, K and V."""
    one, two = (mf.Head(q * np.eye(d), k * np.eye(d), v * np.eye(d)) for q, k, v in (HEAD, SECOND))
    if variant == "masked":
        return mf.MaskedAttention(mf.SoftmaxAttention(one))
    if variant == "multihead":
        return mf.MultiHeadAttention((mf.SoftmaxAttention(one), mf.SoftmaxAttention(two)))
    return mf.make_attention(variant, one)
