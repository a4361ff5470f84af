"""Is ``summation="auto"`` the faster of exact and near-linear, over n, dimension and spread?"""

import numpy as np

from meanfield.summation import exact
from meanfield.summation.select import softmax_mean

from .harness import Contest, Method, rows_of

QUESTION = "Does the cost model take the faster sum, over n, dimension and spread?"
#: (dimension, spread R^2 = max |q| |k|).
CLOUDS = ((1, 25.0), (2, 4.0), (2, 25.0), (2, 100.0), (3, 4.0), (3, 16.0))
QUICK_SIZES, FULL_SIZES = (600, 1500, 4000), (400, 600, 1000, 1500, 2500, 4000, 8000, 16_000)
#: Sizes of the near-linear sum alone.
LARGE_SIZES = (100_000, 1_000_000)
#: What "auto" may lose to the better one.
ACCEPTED = 0.2
ACCURACY = 1e-10
#: Rows of the answer that are compared.
CHECKED = 8


def contests(full):
    """Normal clouds scaled to their spread, queries, keys and values the same points."""
    for d, spread in CLOUDS:
        rng = np.random.default_rng(d)
        for n in FULL_SIZES if full else QUICK_SIZES:
            yield contest(cloud(rng, n, d, spread), spread, ("auto", "exact", "separable"))
        for n in LARGE_SIZES if full and d < 3 else ():
            yield contest(cloud(rng, n, d, spread), spread, ("auto",))


def cloud(rng, n, d, spread):
    """n normal points with max |x|^2 = spread, shape (n, d)."""
    x = rng.standard_normal((n, d))
    return x * np.sqrt(spread / np.einsum("ij,ij->i", x, x).max())


def contest(x, spread, summations):
    """The same sum by each name of the choice."""
    n, d = x.shape
    bias = np.zeros(n)

    def method(summation):
        def call():
            return softmax_mean(x, x, x, bias, summation=summation, accuracy=ACCURACY)

        return Method(summation, lambda: call)

    return Contest(f"d = {d}, spread {spread:g}", n, [method(name) for name in summations], error_of(x))


def error_of(x):
    """Largest relative error of the means on some rows (in units of the cloud's size) and of their normalisers."""
    rows = np.linspace(0, len(x) - 1, CHECKED).astype(int)
    means, logs = exact.softmax_mean(x[rows], x, x, np.zeros(len(x)))
    size = np.abs(x).max()

    def error(answer):
        return max(np.abs(answer[0][rows] - means).max() / size, np.abs(np.expm1(answer[1][rows] - logs)).max())

    return error


def losses(rows):
    """{(case, size): share of the better time that "auto" lost}, where there was a choice."""
    auto, pairwise, near = (rows_of(rows, name) for name in ("auto", "exact", "separable"))
    return {at: auto[at].seconds / min(pairwise[at].seconds, near[at].seconds) - 1 for at in auto if at in near}


def remarks(rows):
    """Where the choice loses more than it may, and where an answer is less accurate than asked for."""
    lost = losses(rows)
    said = [f"auto loses {loss:.0%} at {case}, n = {size:,}" for (case, size), loss in lost.items() if loss > ACCEPTED]
    if lost and not said:
        said.append(f"auto loses at most {max(lost.values()):.0%} to the better one")
    wrong = [row for row in rows if row.error is None or row.error > ACCURACY]
    return said + [f"{row.method} misses {ACCURACY:g} at {row.case}, n = {row.size:,}" for row in wrong]
