"""What does one softmax velocity of n tokens in d dimensions cost, exact and near-linear, beside everybody else's?"""

import numpy as np

from meanfield.attention.softmax import SoftmaxAttention
from meanfield.measures import Measure
from meanfield.parameters import Head

from .harness import Contest, Method, rows_of

QUESTION = "What does one softmax velocity of n tokens in d dimensions cost?"
DIMENSIONS = (2, 16, 64)
#: Rows of the answer that are compared.
CHECKED = 16
#: Largest dimension in which sums may be separable.
SEPARABLE = 3


def contests(full):
    """Standard normal tokens, orthogonal Q, K and V, the usual scale 1/sqrt(d), one velocity at every token."""
    for d in DIMENSIONS:
        rng = np.random.default_rng(d)
        query, key, value = (np.linalg.qr(rng.standard_normal((d, d)))[0] for _ in range(3))
        head = Head(query, key, value, scale=d**-0.5)
        for n in (200, 1000, 4000, *((16_000,) if full else ())):
            x = rng.standard_normal((n, d))
            yield Contest(f"velocity, d = {d}", n, methods(x, head), error_of(x, head))


def methods(x, head):
    """Ours first, then textbook and peers."""
    own = [Method("ours exact", lambda: ours(x, head, "exact"))]
    if x.shape[1] <= SEPARABLE:
        own.append(Method("ours auto", lambda: ours(x, head, "auto")))
    return [
        *own,
        Method("NumPy", lambda: textbook(x, head)),
        Method("SciPy", lambda: with_scipy(x, head), needs="scipy"),
        Method("numexpr", lambda: with_numexpr(x, head), needs="numexpr"),
        Method("torch", lambda: with_torch(x, head), needs="torch"),
        Method("KeOps", lambda: with_keops(x, head), needs="pykeops"),
        Method("JAX", lambda: with_jax(x, head), needs="jax"),
    ]


def ours(x, head, summation):
    """Through the field, as a flow calls it."""
    field, mu = SoftmaxAttention(head, summation=summation), Measure(x)
    return lambda: field(0.0, x, mu)


def sides(x, head):
    """Queries (scaled), keys and values, each (n, d)."""
    return head.scale * x @ head.query.T, x @ head.key.T, x @ head.value.T


def textbook(x, head):
    """Softmax as it is written down, every step an array."""

    def velocity():
        q, k, v = sides(x, head)
        logits = q @ k.T
        weights = np.exp(logits - logits.max(axis=1, keepdims=True))
        return (weights / weights.sum(axis=1, keepdims=True)) @ v

    return velocity


def with_scipy(x, head):
    """`scipy.special.softmax` between two products."""
    from scipy.special import softmax

    def velocity():
        q, k, v = sides(x, head)
        return softmax(q @ k.T, axis=1) @ v

    return velocity


def with_numexpr(x, head):
    """The exponentials in one compiled pass, division last."""
    import numexpr

    def velocity():
        q, k, v = sides(x, head)
        logits = q @ k.T
        names = {"logits": logits, "highest": logits.max(axis=1, keepdims=True)}
        weights = numexpr.evaluate("exp(logits - highest)", local_dict=names)
        return (weights @ v) / weights.sum(axis=1, keepdims=True)

    return velocity


def with_torch(x, head):
    """Its fused attention, in float64."""
    import torch

    tokens, *maps = (torch.from_numpy(np.array(a)) for a in (x, head.query, head.key, head.value))
    attention = torch.nn.functional.scaled_dot_product_attention

    def velocity():
        q, k, v = ((tokens @ a.T)[None, None] for a in maps)
        return attention(q, k, v, scale=head.scale)[0, 0].numpy()

    return velocity


def with_keops(x, head):
    """A symbolic reduction in C++."""
    from pykeops.numpy import Vi, Vj

    def velocity():
        q, k, v = sides(x, head)
        return (Vi(q) | Vj(k)).sumsoftmaxweight(Vj(v), axis=1, backend="CPU")

    velocity()  # compiles
    return velocity


def with_jax(x, head):
    """Compiled, in chunks of rows so that memory stays linear."""
    import jax

    jax.config.update("jax_enable_x64", True)

    @jax.jit
    def velocity(points, query, key, value):
        keys, values = points @ key.T, points @ value.T
        queries = head.scale * points @ query.T
        return jax.lax.map(lambda q: jax.nn.softmax(keys @ q) @ values, queries, batch_size=256)

    arrays = [jax.numpy.asarray(a) for a in (x, head.query, head.key, head.value)]
    velocity(*arrays).block_until_ready()  # compiles
    return lambda: np.asarray(velocity(*arrays))


def error_of(x, head):
    """Largest error over some rows, relative to the largest velocity there, from extended precision."""
    rows = np.linspace(0, len(x) - 1, CHECKED).astype(int)
    long, query, key, value = (a.astype(np.longdouble) for a in (x, head.query, head.key, head.value))
    logits = head.scale * (long[rows] @ query.T @ key) @ long.T
    weights = np.exp(logits - logits.max(axis=1, keepdims=True))
    exact = (weights @ long / weights.sum(axis=1, keepdims=True)) @ value.T
    return lambda answer: np.abs(answer[rows] - exact).max() / np.abs(exact).max()


def remarks(rows):
    """Nanoseconds a pair at the largest size, method by method, and the peers that are ahead of ours."""
    said = []
    for case in dict.fromkeys(row.case for row in rows):
        largest = max(row.size for row in rows if row.case == case)
        at_largest = [row for row in rows if row.case == case and row.size == largest]
        costs = ", ".join(f"{row.method} {row.seconds * 1e9 / largest**2:.2g}" for row in at_largest)
        said.append(f"{case}, n = {largest:,}, ns a pair: {costs}")
    best = rows_of(rows, "ours exact")
    for method in dict.fromkeys(row.method for row in rows if not row.method.startswith("ours")):
        ahead = [row for at, row in rows_of(rows, method).items() if row.seconds < best[at].seconds]
        if ahead:
            where = "; ".join(f"{row.case}, n = {row.size:,} ({row.ratio:.2f})" for row in ahead)
            said.append(f"{method} is ahead of ours exact at {where}")
    return said
