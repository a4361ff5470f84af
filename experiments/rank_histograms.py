"""The published histograms of limit ranks for K = -Q, beside what the exact flow does from the same draws.

Counts are of eigenvalues above 0.1, as published. The scheme is published.projected_euler: 500 steps one by one, and
then, since a step is now less than 1/500 of the time elapsed and differs little from the flow, the exact flow from
there under the same stopping rules. ``--full`` takes every step instead.
"""

from functools import partial

import numpy as np

import meanfield as mf
from meanfield.gaussian.closed_forms import tied_limit

from . import full_size
from .published import CONVERGED, DIVERGED, EXHAUSTED, projected_euler, rate_of
from .published_draws import DRAWS, histogram_heads, histogram_starts
from .stopped_flow import field_of, stopped_flow

CLAIM = (
    "The exact flow with K = -Q always tends to rank d - floor(d/2); published counts below it come from an absolute "
    "threshold and from Euler steps that overshoot."
)

#: Published step sizes for d = 3, 4, 5, tolerance on |dS/dt|_F, and most iterations.
SETTINGS = {
    ("softmax", "identity"): ((0.09, 0.05, 0.02), 1e-4, 60_000),
    ("softmax", "random"): ((0.09, 0.06, 0.02), 5e-5, 90_000),
    ("l2", "identity"): ((0.09, 0.06, 0.02), 1e-4, 60_000),
    ("l2", "random"): ((0.15, 0.15, 0.15), 5e-5, 50_000),
}

#: A run whose trace exceeds this has diverged, and an eigenvalue above this is counted.
HIGH, THRESHOLD = 1e3, 0.1

#: Steps after which a run that is to diverge usually has, and steps taken one by one unless --full.
PROBE, ONE_BY_ONE = 24, 500

#: Draws (Q, V) that are taken to their ends together after one has failed late, which moves the starts of all later
#: ones (twice as many each time that none does); and starts that are tried at once for a draw that has failed.
TOGETHER, INSIST = 12, 6


def cases(quick):
    """Two variants, V = I and random V, d = 3, 4, 5; all 100 draws, or the first 12."""
    return [
        {
            "variant": variant,
            "value": value,
            "d": d,
            "step": steps[k],
            "low": low,
            "iterations": iterations,
            "one_by_one": iterations if full_size() else ONE_BY_ONE,
            "draws": 12 if quick else DRAWS,
        }
        for (variant, value), (steps, low, iterations) in SETTINGS.items()
        for k, d in enumerate((3, 4, 5))
    ]


def run(case, rng):
    """All draws of one panel; the random numbers are the published ones, so ``rng`` is not used.

    Returns
    -------
    dict of arrays
        published, dropped, accurate, limit (where V = I): int counts (d + 1,) of draws by rank 0, 1, 2, ...;
        attempts (m, 4) int: draw (Q, V), start, how it ended, its rank (-1 unless converged), in published order;
        followed (p,) int: the attempts that converged and the first failure of each draw, which the exact flow follows;
        exact_times (p,), exact_status (p,), lyapunov (p,): when and how it stopped, and tr(V^{-1} S) there over
        tr(V^{-1} S0); exact_rank; limit_ranks: int counts of the numerical ranks of the closed-form limits.
    """
    d, draws = case["d"], case["draws"]
    query, value = (array[:draws] for array in histogram_heads(case["variant"], case["value"], d))
    starts = histogram_starts(d)
    attempts, finals = follow_published(partial(published_runs, case, query, value, starts), draws)
    converged = attempts[:, 2] == CONVERGED
    ranks = np.where(converged, rank(finals), -1)
    kept = converged & (ranks <= (d + 1) // 2)
    first_failures = np.flatnonzero(~converged)[np.unique(attempts[~converged, 0], return_index=True)[1]]
    followed = np.sort(np.concatenate([np.flatnonzero(converged), first_failures]))
    which, start = attempts[followed, 0], starts[attempts[followed, 1]]
    field = field_of(case["variant"], query[which], -query[which], value[which])
    exact = stopped_flow(field, start, low=case["low"], high=np.inf, end=1e8, tolerance=1e-6)
    result = {
        "published": counts(ranks[kept], d),
        "dropped": counts(ranks[converged & ~kept], d),
        "accurate": counts(rank(exact.final)[converged[followed]], d),
        "attempts": np.column_stack([attempts, ranks]),
        "followed": followed,
        "exact_times": exact.times,
        "exact_status": exact.status,
        "lyapunov": lyapunov(value[which], exact.final) / lyapunov(value[which], start),
        "exact_rank": d - d // 2,
    }
    if case["value"] == "identity":
        result |= limits(query[attempts[converged, 0]], starts[attempts[converged, 1]])
    return result


def published_runs(case, query, value, starts, draws, first, last):
    """Run the published scheme from (Q, V) number draws[i] and start first[i]: finals (n, d, d) and status (n,).

    ``last`` is the number of steps: PROBE to look for divergence only, None for all.
    """
    last = case["iterations"] if last is None else last
    heads = [np.moveaxis(m[draws], 0, -1) for m in (query, -query, value)]
    stepped = min(last, case["one_by_one"])
    rules = {"low": case["low"], "high": HIGH}
    start = np.moveaxis(starts[first], 0, -1)
    euler = projected_euler(
        rate_of(case["variant"], *heads), start, step=case["step"], max_iterations=stepped, **rules
    )
    finals, status = np.moveaxis(euler.final, -1, 0).copy(), euler.status
    going = np.flatnonzero(status == EXHAUSTED)
    if stepped < last and len(going):
        own = draws[going]
        field = field_of(case["variant"], query[own], -query[own], value[own])
        times = {"start": stepped * case["step"], "end": last * case["step"]}
        rest = stopped_flow(field, finals[going], tolerance=1e-5, **rules, **times)
        finals[going], status[going] = rest.final, rest.status
    return finals, status


def follow_published(scheme, draws):
    """Who meets whom in the published loop: after a run that does not converge its (Q, V) takes the next start.

    Parameters
    ----------
    scheme : callable
        ``scheme(draws (n,), starts (n,), last) -> (finals (n, d, d), status (n,))``.
    draws : int

    Returns
    -------
    attempts : ndarray of int, shape (m, 3)
        Draw, start and how it ended, in published order.
    finals : ndarray, shape (m, d, d)
    """
    log, draw, start, together = [], 0, 0, draws
    while draw < draws:
        pairs, early = look_ahead(scheme, draw, start, min(draw + together, draws))
        ends, status = scheme(*pairs.T, None)
        # A failure that shows late: what was planned after it never happened.
        late = np.flatnonzero((status != CONVERGED) & ~early)
        used = late[0] + 1 if len(late) else len(pairs)
        log.append((pairs[:used], status[:used], ends[:used]))
        draw, start = pairs[used - 1] + (int(not len(late)), 1)
        together = TOGETHER if len(late) else 2 * together
        while len(late) and log[-1][1][-1] != CONVERGED:
            # A draw that has failed late tends to do so again: several starts at once until one converges.
            pairs = np.column_stack([np.full(INSIST, draw), start + np.arange(INSIST)])
            ends, status = scheme(*pairs.T, None)
            used = first_true(status == CONVERGED, INSIST - 1) + 1
            log.append((pairs[:used], status[:used], ends[:used]))
            draw, start = draw + int(status[used - 1] == CONVERGED), start + used
    pairs, status, ends = (np.concatenate(parts) for parts in zip(*log, strict=True))
    return np.column_stack([pairs, status]), ends


def first_true(flags, otherwise):
    """The number of the first true entry."""
    return int(np.argmax(flags)) if flags.any() else otherwise


def look_ahead(scheme, draw, start, stop):
    """The next pairs (m, 2) of draws and starts as far as early divergence tells, and which of them diverge early."""
    pairs, early = [], []
    while draw < stop:
        rows = np.arange(draw, stop)
        plan = np.column_stack([rows, start + rows - draw])
        diverged = scheme(*plan.T, PROBE)[1] == DIVERGED
        used = first_true(diverged, len(rows) - 1) + 1
        pairs.append(plan[:used])
        early.append(diverged[:used])
        draw, start, tried = draw + used, start + used, INSIST
        while early[-1][-1]:
            # The same draw with the next starts, ever more at once until one does not diverge.
            plan = np.column_stack([np.full(tried, rows[used - 1]), start + np.arange(tried)])
            diverged = scheme(*plan.T, PROBE)[1] == DIVERGED
            count = first_true(~diverged, tried - 1) + 1
            pairs.append(plan[:count])
            early.append(diverged[:count])
            start, tried = start + count, min(2 * tried, 64)
    return np.concatenate(pairs), np.concatenate(early)


def rank(covariances):
    """Eigenvalues above the threshold, shape (n,)."""
    return (np.linalg.eigvalsh(covariances) > THRESHOLD).sum(axis=-1)


def counts(ranks, d):
    """How many runs have rank 0, 1, ..., d."""
    return np.bincount(ranks, minlength=d + 1)


def lyapunov(value, covariances):
    """tr(V^{-1} S), which no exact flow with V > 0 and A <= 0 lets increase."""
    return np.trace(np.linalg.solve(value, covariances), axis1=1, axis2=2)


def limits(queries, starts):
    """Counts over the closed-form limits: of eigenvalues above the threshold, and of numerical ranks."""
    d = starts.shape[-1]
    heads = [mf.Head(q, -q, np.eye(d)) for q in queries]
    final = np.stack([tied_limit(head, mf.Gaussian(np.zeros(d), S)) for head, S in zip(heads, starts, strict=True)])
    return {"limit": counts(rank(final), d), "limit_ranks": counts(np.linalg.matrix_rank(final, tol=1e-10), d)}
