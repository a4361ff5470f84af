"""Where energies are not convex along geodesics: a Dirac exactly, two Gaussians, and a search over random laws."""

import numpy as np

import meanfield as mf
from meanfield.gradient_flow.energies import (
    BuresEnergy,
    InteractionEnergy,
    LogInteractionEnergy,
    LogNormaliserEnergy,
    QuadraticEnergy,
    SigmoidEnergy,
    SinkhornEnergy,
)
from meanfield.gradient_flow.geodesics import (
    dirac_curvature,
    displacement_geodesic,
    energy_along,
    lowest_curvature,
    search_non_convexity,
)
from meanfield.gradient_flow.metric import SoftmaxMobility, TwistedMetric

CLAIM = (
    "For V = I, A = -I the softmax energy is not convex along geodesics: on a Dirac at x its second derivative is "
    "x^2 - 1 in the twisted metric, and random laws of tokens and Gaussians bend down in all metrics."
)

#: The matrix of the logits; V = I is H A with H = -I.
A = -np.eye(2)

#: Energies of A = -I by name.
ENERGIES = {
    "interaction": InteractionEnergy(A),
    "log interaction": LogInteractionEnergy(A),
    "log normaliser": LogNormaliserEnergy(A),
    "sinkhorn": SinkhornEnergy(A),
    "sigmoid": SigmoidEnergy(A),
    "quadratic": QuadraticEnergy(A),
    "distance": BuresEnergy(mf.Gaussian(np.zeros(2), np.eye(2))),
}

#: Ends of the geodesic of Gaussians: each long where the other is short, on either side of the origin.
FROM = mf.Gaussian([1.0, 0.3], np.diag([0.5, 0.05]))
TO = mf.Gaussian([-1.0, -0.3], np.diag([0.05, 0.5]))

#: How far the certificates step to either side: errors h^2 of the difference and round-off / h^2 are both 1e-7.
NUDGE = 3e-4


def cases(quick):
    """The Dirac, the geodesics, and the searches, with few draws or many."""
    draws = 12 if quick else 60
    along = [name for name in ENERGIES if name != "sigmoid"]  # it has no formula on Gaussians
    result = [{"kind": "dirac", "places": 21 if quick else 41}]
    result += [{"kind": "geodesic", "energy": name, "points": 41} for name in along]
    searched = [name for name in ENERGIES if name != "distance"]  # it has no formula on tokens
    result += [{"kind": "search", "energy": name, "metric": "W2", "draws": draws} for name in searched]
    return [*result, {"kind": "search", "energy": "interaction", "metric": "twisted", "draws": draws}]


def run(case, rng):
    """One of the three kinds.

    Returns
    -------
    dict of arrays
        Of the Dirac: x (k,), arc (k,) = ∫ e^{-x^2/2} from 0, values (k,), formula (k,) by `dirac_curvature`, general
        (k,) by `lowest_curvature` in the twisted metric, differences (k,) of the values in the arc.
        Of a geodesic: s (k,), values, second (k,), lowest d^2E/ds^2 per unit of arc, chord_gap.
        Of a search: tokens (k,) and gaussians (k',), the lowest second derivative at each law, negative when it bends
        down; certificate_tokens and certificate_gaussians, second differences of the values at the lowest (NaN where
        there is none); outside, how many Gaussians have no finite energy.
    """
    return {"dirac": dirac, "geodesic": geodesic, "search": search}[case["kind"]](case, rng)


def dirac(case, rng):
    """E = e^{-x^2} / 2 on a Dirac at x on the line, in the arc length of the twisted metric, four ways."""
    from scipy.special import erf

    line = -np.eye(1)
    metric, energy = TwistedMetric(line, SoftmaxMobility(line)), InteractionEnergy(line)
    x = np.linspace(-2.0, 2.0, case["places"])

    def arc(place):
        return np.sqrt(np.pi / 2) * erf(place / np.sqrt(2))

    def value(place):
        return energy.value(mf.Measure([[place]]))

    return {
        "x": x,
        "arc": arc(x),
        "values": np.array([value(place) for place in x]),
        "formula": np.array([dirac_curvature(line, line, [place]) for place in x]),
        "general": np.array([lowest_curvature(energy, mf.Measure([[place]]), metric=metric).value for place in x]),
        "differences": np.array([second_difference(arc, value, place, 1e-3) for place in x]),
    }


def second_difference(arc, value, place, h):
    """The second derivative of the values in the arc by the difference of three places h apart."""
    left, middle, right = (np.array([arc(at), value(at)]) for at in (place - h, place, place + h))
    slopes = [(after[1] - before[1]) / (after[0] - before[0]) for before, after in ((left, middle), (middle, right))]
    return 2 * (slopes[1] - slopes[0]) / (right[0] - left[0])


def geodesic(case, rng):
    """An energy along the Bures geodesic between two Gaussians."""
    path = displacement_geodesic(FROM, TO)
    found = energy_along(ENERGIES[case["energy"]], path, np.linspace(0, 1, case["points"]))
    return {
        "s": found.s,
        "values": found.values,
        "second": found.second / found.length**2,
        "lowest": found.lowest,
        "chord_gap": found.chord_gap,
    }


def search(case, rng):
    """The lowest second derivatives over random laws of three tokens and random Gaussians."""
    energy = ENERGIES[case["energy"]]
    metric = TwistedMetric(A, SoftmaxMobility(A)) if case["metric"] == "twisted" else None
    on_gaussians = metric is None and case["energy"] != "sigmoid"
    found = search_non_convexity(
        energy,
        rng,
        dimension=2,
        draws=case["draws"],
        gaussian_draws=case["draws"] if on_gaussians else 0,
        metric=metric,
    )
    return {
        "tokens": found.measure_values,
        "gaussians": found.gaussian_values,
        "certificate_tokens": np.nan if metric is not None else certificate(energy, found.measure),
        "certificate_gaussians": certificate(energy, found.gaussian),
        "outside": found.outside,
    }


def certificate(energy, lowest):
    """(E(-h) - 2 E(0) + E(h)) / h^2 along the geodesic of the lowest second derivative, of values alone."""
    if lowest is None:
        return np.nan
    law, u = lowest.law, lowest.displacement
    if isinstance(law, mf.Gaussian):
        y = np.column_stack([law.mean, law.root])
        laws = [mf.Gaussian.from_root((y + h * u)[:, 0], (y + h * u)[:, 1:]) for h in (-NUDGE, 0.0, NUDGE)]
    else:
        laws = [mf.Measure(law.points + h * u, law.weights) for h in (-NUDGE, 0.0, NUDGE)]
    return np.diff([energy.value(one) for one in laws], 2)[0] / NUDGE**2
