"""What does balancing a kernel to marginals within 1e-9 cost, beside POT's Sinkhorn iterations?"""

import warnings
from functools import partial

import numpy as np

from meanfield.attention.sinkhorn import SinkhornAttention
from meanfield.measures import Measure
from meanfield.parameters import Head
from meanfield.summation.exact import softmax_mean

from .harness import Contest, Method

QUESTION = "What do Sinkhorn potentials cost, marginals within 1e-9 of the weights?"
MISS = 1e-9
#: Iterations allowed to POT.
MOST = 100_000
#: Sizes for everybody, and for ours alone: POT holds several n x n matrices.
QUICK_SIZES, QUICK_ALONE = (200, 600), (4000,)
FULL_SIZES, FULL_ALONE = (200, 600, 1000, 4000), (16_000, 100_000)
#: Largest n whose marginals are checked in full; above it on some rows.
CHECKED_IN_FULL = 4000


def heads():
    """A symmetric kernel and one that is not, in the plane."""
    turn = np.array([[np.cos(1.0), -np.sin(1.0)], [np.sin(1.0), np.cos(1.0)]])
    yield "symmetric", Head.identity(2)
    yield "turned", Head(turn, np.eye(2), np.eye(2))


def contests(full):
    """Standard normal tokens in the plane, each POT variant at sizes it can hold."""
    shared, alone = (FULL_SIZES, FULL_ALONE) if full else (QUICK_SIZES, QUICK_ALONE)
    for name, head in heads():
        for n in (*shared, *alone):
            x = np.random.default_rng(n).standard_normal((n, 2))
            methods = [Method("ours", partial(ours, x, head))]
            if n in shared:
                methods += [
                    Method("POT sinkhorn", partial(with_pot, x, head, "sinkhorn"), needs="ot"),
                    Method("POT sinkhorn_log", partial(with_pot, x, head, "sinkhorn_log"), needs="ot"),
                ]
            yield Contest(f"d = 2, {name} kernel", n, methods, partial(miss, x, head))


def ours(x, head):
    """The potential of the field, from a cold start."""
    field, mu = SinkhornAttention(head, tolerance=MISS), Measure(x)
    # The field balances <Q (x - x_0), K (y - x_0)>; what <Q x, K y> needs besides is linear in y.
    anchored = x @ head.key.T @ (head.scale * head.query @ x[0])
    return lambda: field.potential(0.0, mu) - anchored


def with_pot(x, head, method):
    """POT on the cost matrix -<Q x, K y>; the key potential, from its log."""
    import ot

    n = len(x)
    weights = np.full(n, 1 / n)

    def balance():
        costs = -head.scale * (x @ head.query.T) @ (x @ head.key.T).T
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the error beside the time says it
            # Its threshold is the 2-norm of all misses of one marginal.
            stop = {"numItermax": MOST, "stopThr": MISS / n}
            _, log = ot.sinkhorn(weights, weights, costs, 1.0, method=method, log=True, **stop)
        return log["log_v"] if "log_v" in log else np.log(log["v"])

    return balance


def miss(x, head, potential):
    """max |column marginal / weight - 1| of the plan whose rows are balanced exactly by this key potential."""
    n = len(x)
    q, k = head.scale * x @ head.query.T, x @ head.key.T
    rows_log = softmax_mean(q, k, None, potential)[1] if n <= CHECKED_IN_FULL else _near(q, k, potential)
    columns = slice(None) if n <= CHECKED_IN_FULL else slice(None, None, n // 50)
    back = softmax_mean(k[columns], q, None, -rows_log)[1] + potential[columns]
    return np.abs(np.expm1(back)).max()


def _near(q, k, potential):
    from meanfield.summation.select import softmax_mean as near

    return near(q, k, None, potential, accuracy=1e-12)[1]


def remarks(rows):
    """Answers that miss their marginals."""
    return [
        f"{row.method} misses its marginals by {row.error:.1e} at {row.case}, n = {row.size:,}"
        for row in rows
        if row.error is not None and row.error > MISS
    ]
