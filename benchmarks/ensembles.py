"""How many Gaussian laws a second does simulate_ensemble move, beside a loop over scipy's solve_ivp?"""

from functools import partial

import numpy as np

from meanfield.attention.softmax import SoftmaxAttention
from meanfield.gaussian.ensemble import simulate_ensemble
from meanfield.integration.adaptive import Adaptive
from meanfield.parameters import Head

from .harness import Contest, Method

QUESTION = "What does one Gaussian law of a large ensemble cost, heads random, blow-ups included?"
#: (dimension, laws when quick, laws when full); PERF asks for 10,000 at d = 2 and 2,000 at d = 8.
ENSEMBLES = ((2, 10_000, 10_000), (8, 2_000, 2_000))
#: Laws that the loop does, quick or full: few laws say little, since one in a hundred takes a third of the steps.
LOOPED = {False: 20, True: 300}
#: Laws that are compared, and the share of them that the error is the largest of.
CHECKED, COUNTED = 10, 0.9
RTOL, ATOL, END, DIVERGED = 1e-6, 1e-9, 1.0, 1e6


def contests(full):
    """S' = V S A S + (V S A S)^T with standard normal Q, K, V over sqrt(d) and a Wishart start, to T = 1."""
    for d, quick_laws, full_laws in ENSEMBLES:
        laws, looped = full_laws if full else quick_laws, LOOPED[full]
        rng = np.random.default_rng(d)
        head = Head(*(rng.standard_normal((laws, d, d)) / np.sqrt(d) for _ in range(3)))
        factors = rng.standard_normal((laws, d, d)) / np.sqrt(d)
        covariances = factors @ np.swapaxes(factors, 1, 2)
        methods = [
            Method("ours", partial(ours, head, covariances), units=laws),
            Method("scipy loop", partial(loop, head, covariances, looped), needs="scipy", units=looped),
        ]
        yield Contest(f"a law, d = {d}, T = {END:g}", laws, methods, error_of(head, covariances))


def ours(head, covariances):
    """All laws in one call; (end times, covariances there) of each."""
    field, means = SoftmaxAttention(head), np.zeros(covariances.shape[:2])

    def move():
        run = simulate_ensemble(
            field, means, covariances, [0.0, END], scheme=Adaptive(rtol=RTOL, atol=ATOL), stop_trace=DIVERGED
        )
        root = run.last_arrays[..., 1:]
        return run.last_times, root @ np.swapaxes(root, -1, -2)

    return move


def loop(head, covariances, laws, rtol=RTOL, atol=ATOL):
    """One solve_ivp after the other, with an event at the trace that counts as divergence."""

    def move():
        ends = [one_law(head.take(i), covariances[i], rtol, atol) for i in range(laws)]
        return np.array([end for end, _ in ends]), np.array([covariance for _, covariance in ends])

    return move


def one_law(head, covariance, rtol, atol):
    """(end time, covariance there) of one law by scipy."""
    from scipy.integrate import solve_ivp

    d, value, A = head.dimension, head.value, head.A

    def rate(_, y):
        S = y.reshape(d, d)
        moved = value @ S @ A @ S
        return (moved + moved.T).ravel()

    def diverged(_, y):
        return y[:: d + 1].sum() - DIVERGED

    diverged.terminal = True
    run = solve_ivp(rate, (0.0, END), covariance.ravel(), method="DOP853", rtol=rtol, atol=atol, events=diverged)
    return run.t[-1], run.y[:, -1].reshape(d, d)


def error_of(head, covariances):
    """The error that most of the checked laws stay below: of end times, and of covariances at T.

    Not the largest one, which belongs to a law that just misses its blow-up and amplifies everything.
    """
    ends, wanted = loop(head, covariances, CHECKED, rtol=1e-11, atol=1e-13)()
    finished = ends == END

    def error(answer):
        times, found = answer[0][:CHECKED], answer[1][:CHECKED]
        errors = np.abs(times - ends)
        miss = np.linalg.norm(found - wanted, axis=(1, 2)) / np.linalg.norm(wanted, axis=(1, 2))
        return np.quantile(np.where(finished, np.maximum(errors, miss), errors), COUNTED)

    return error


def remarks(rows):
    """Laws a second, ours first; the loop by a few of them."""
    return [f"{row.method}, {row.case}: {1 / row.seconds:,.0f} laws a second" for row in rows]
