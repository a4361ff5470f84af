"""The published pictures of covariances in the plane: the authors' scheme and the exact flow from the same starts.

Both are stopped by the same rules: |dS/dt|_F below ``low``, trace above ``high``, or the time of the published number
of steps. Where the exact flow was stopped by its trace it is followed on to tell a blow-up, with its t*, from growth.
"""

from functools import partial

import numpy as np

import meanfield as mf
from meanfield.gaussian.closed_forms import softmax_solution, tied_limit
from meanfield.gaussian.ensemble import simulate_ensemble

from . import full_size
from .published import DIVERGED, Tracks, projected_euler, rate_of
from .published_draws import contracting, expanding, grid, one_row, opposite_signs
from .stopped_flow import covariance_rate, field_of, hurried, norm, stopped_flow

CLAIM = (
    "From the published random draws the exact flow and the authors' Euler scheme end alike, to zero, on a line, on "
    "two lines or in blow-up, except where the step is too large or the code does not run what its title says."
)

#: The matrices of each picture.
DRAWS = {
    "zero": contracting,
    "line": one_row,
    "plane": one_row,
    "two_lines": partial(opposite_signs, seed=32),
    "blow_up": expanding,
    "both": partial(opposite_signs, seed=35, skipped=56),
}

#: Points along a side of the grid of starts, half its width, |dS/dt|_F, and what is drawn: cone or disc.
PICTURES = {
    "zero": (10, 0.5, 1e-5, "cone"),
    "line": (10, 0.5, 1e-4, "cone"),
    "plane": (10, 0.5, 1e-4, "cone"),
    "two_lines": (20, 1.0, 1e-7, "cone"),
    "blow_up": (40, 1.0, 1e-4, "disc"),
    "both": (30, 1.0, 1e-4, "disc"),
}

#: Picture, variant, heads, step h, and what differs from the picture's own settings. The last row is what the title of
#: "both" for multi-head attention says; the published code runs one head there.
RUNS = (
    ("zero", "softmax", 1, 0.3, {}),
    ("zero", "l2", 1, 0.3, {"moved_starts": True}),
    ("zero", "multihead", 2, 0.3, {}),
    ("zero", "sinkhorn", 1, 0.5, {}),
    ("line", "softmax", 1, 0.5, {}),
    ("line", "l2", 1, 0.5, {}),
    ("plane", "multihead", 2, 0.5, {}),
    ("two_lines", "softmax", 1, 0.01, {}),
    ("two_lines", "l2", 1, 0.01, {}),
    ("blow_up", "softmax", 1, 0.01, {"iterations": 100_000}),
    ("blow_up", "l2", 1, 0.001, {"low": 1e-5, "high": 1e4}),
    ("blow_up", "multihead", 2, 0.002, {"iterations": 100_000}),
    ("blow_up", "sinkhorn", 1, 0.01, {"low": 1e-5, "high": 1e4}),
    ("both", "softmax", 1, 0.003, {}),
    ("both", "l2", 1, 0.002, {}),
    ("both", "multihead", 1, 0.002, {}),
    ("both", "multihead", 2, 0.002, {}),
)


def cases(quick):
    """All published runs; fewer starts and steps when quick, at most 16 x 16 starts unless --full."""
    result = []
    for picture, variant, heads, step, other in RUNS:
        points, half, low, view = PICTURES[picture]
        points = min(points, 5 if quick else points if full_size() else 16)
        case = {"picture": picture, "variant": variant, "heads": heads, "step": step, "points": points, "half": half}
        case |= {"low": low, "high": 1e3, "iterations": 50_000, "view": view, "moved_starts": False}
        case |= other
        result.append(case | {"iterations": min(case["iterations"], 3000 if quick else case["iterations"])})
    return result


def run(case, rng):
    """All starts of one picture; the random numbers are the published ones, so ``rng`` is not used.

    Returns
    -------
    dict of arrays
        starts (p, 2, 2); published (p, k, 2, 2), published_status (p,), published_times (p,), clipped: the scheme;
        exact (p, l, 2, 2), exact_status (p,), exact_times (p,), blow_up_times (p,), inf where there is none: the flow;
        twice (2, 2): A + A^T with the published scale; closed_form: largest relative error of the flow against it,
        centre_blow_up_time: its value from I / 2, to_limit: largest distance to the closed-form limit where the flow
        was stopped; each nan where there is none.
    """
    query, key, value = DRAWS[case["picture"]]()
    starts = grid(case["points"], case["half"])
    model = case["variant"], query, key, value, case["heads"]
    rules = {"low": case["low"], "high": case["high"]}
    rate, field = rate_of(*model), field_of(*model)
    seen = [watcher(case["view"], len(starts)) for _ in range(2)]
    first = starts.transpose(1, 2, 0)
    if case["moved_starts"]:
        first = first + case["step"] * rate_of("softmax", query, key, value)(first)
    scheme = projected_euler(
        rate, first, step=case["step"], max_iterations=case["iterations"], watch=seen[0], **rules
    )
    flow = stopped_flow(field, starts, end=case["step"] * case["iterations"], watch=seen[1], **rules)
    A = key.T @ query / (1.0 if case["variant"] == "sinkhorn" else np.sqrt(2))
    return {
        "starts": starts,
        "published": seen[0].ending_at(scheme.final.transpose(2, 0, 1)).astype(np.float32),
        "published_status": scheme.status,
        "published_times": scheme.iterations * case["step"],
        "clipped": scheme.clipped,
        "indefinite_starts": (np.linalg.eigvalsh(first.transpose(2, 0, 1))[:, 0] < 0).sum(),
        "exact": seen[1].ending_at(flow.final).astype(np.float32),
        "exact_status": flow.status,
        "exact_times": flow.times,
        "blow_up_times": poles(field, flow),
        "twice": A + A.T,
        **known(case, field, starts, flow),
    }


def watcher(view, n):
    """Tracks that are smooth to the eye in the cone or in the disc."""
    coordinates = {"cone": cone_entries, "disc": disc_entries}[view]
    return Tracks(n, 2, coordinates=coordinates, spacing=0.02, capacity=150)


def cone_entries(S):
    """The entries of covariances (..., 2, 2), flat."""
    return S.reshape(*S.shape[:-2], 4)


def disc_entries(S):
    """The entries of S / tr S, flat."""
    return cone_entries(S) / np.trace(S, axis1=-2, axis2=-1)[..., None]


def poles(field, flow):
    """Blow-up times of the runs that were stopped by their trace, inf for growth without a pole and for the others.

    Each goes on for 4 times its own time scale tr S / tr S': a pole of order p lies 1 / p such times ahead.
    """
    result = np.full(len(flow.times), np.inf)
    rows = np.flatnonzero(flow.status == DIVERGED)
    if len(rows):
        S = flow.final[rows]
        scale = np.trace(S, axis1=1, axis2=2) / np.trace(covariance_rate(field, S), axis1=1, axis2=2)
        run = simulate_ensemble(hurried(field, scale), np.zeros((len(rows), 2)), S, [0.0, 4.0])
        result[rows] = flow.times[rows] + scale * run.blow_up_times
    return result


def known(case, field, starts, flow):
    """What closed forms say: errors of the flow for softmax with V = I, and how far from its limit a line is."""
    result = {"closed_form": np.nan, "centre_blow_up_time": np.nan, "to_limit": np.nan}
    laws = [mf.Gaussian(np.zeros(2), S) for S in starts]
    if case["variant"] == "softmax" and case["picture"] in ("line", "blow_up"):
        solutions = [softmax_solution(field.head, law) for law in laws]
        if case["picture"] == "line":
            exact = np.stack([one.covariance(t) for one, t in zip(solutions, flow.times, strict=True)])
            result["closed_form"] = (norm(flow.final - exact) / norm(exact)).max()
        else:
            exact = np.array([one.blow_up_time for one in solutions])
            result["closed_form"] = np.abs(poles(field, flow) / exact - 1).max()
            centre = softmax_solution(field.head, mf.Gaussian(np.zeros(2), np.eye(2) / 2))
            result["centre_blow_up_time"] = centre.blow_up_time
    if case["picture"] == "line":
        limit = np.stack([tied_limit(field.head, law) for law in laws])
        result["to_limit"] = norm(flow.final - limit).max()
    return result
