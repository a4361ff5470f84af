"""Exact kernel sums over all pairs, in row blocks that fit the cache: no n x n array is ever made.

Every sum here runs over keys j for each query i with logit <q_i, k_j>. Blocks are filled by one matrix product,
worked on in place, and reduced by a second product with the values and a column of ones, so that numerator and
normaliser cost one pass (measured against the alternatives in the project's performance notes).
"""

import numpy as np

#: Entries of a block: 2 MB of float64.
BLOCK_ENTRIES = 262_144
#: Pairs up to which a sum without a mask is done in one go.
SMALL_SUM = 16_384
#: Keys of one tile; beyond it a row block walks over several tiles with a running maximum.
TILE_KEYS = 16_384
#: Rows of the first tile of `project`.
PROJECTED_ROWS = 64
#: While every |logit + bias| is below this, exp needs no maximum subtracted to stay in range.
SAFE_EXPONENT = 300.0


def softmax_mean(queries, keys, values, key_bias, *, causal=None, visible=None):
    """Softmax averages of the values and the logarithms of their normalisers.

    ``means[i] = sum_j p_ij v_j`` with ``p_ij = exp(<q_i, k_j> + b_j - log_normaliser[i])`` summing to one over the
    keys that query i sees. Softmax, L2 and Sinkhorn attention are this call with different biases, a Sinkhorn sweep
    is this call without values [CACP25].

    Parameters
    ----------
    queries : ndarray, shape (m, k)
    keys : ndarray, shape (n, k)
    values : ndarray, shape (n, p), or None
        None asks for the normalisers alone; ``means`` then has shape (m, 0).
    key_bias : ndarray, shape (n,)
        Bias of each key, for instance log weights; -inf removes the key.
    causal : ndarray of int, shape (m,), optional
        Query i sees the first ``causal[i]`` keys. The result of a row does not depend, to the last bit, on keys and
        queries that come after it, if the first keys and queries stay the same.
    visible : callable, optional
        ``visible(rows) -> bool (len(rows), n)`` for a slice of queries: a mask of any shape, made block by block.

    Returns
    -------
    means : ndarray, shape (m, p)
        Zero for a query that sees nothing.
    log_normaliser : ndarray, shape (m,)
        -inf for a query that sees nothing.
    """
    if key_bias.min(initial=0.0) == -np.inf:
        kept = key_bias > -np.inf
        causal = None if causal is None else np.concatenate([[0], np.cumsum(kept)])[causal]
        visible = None if visible is None else narrowed(visible, kept)
        keys, key_bias = keys[kept], key_bias[kept]
        values = None if values is None else values[kept]
    if len(keys) == 0:
        return np.zeros((len(queries), 0 if values is None else values.shape[1])), np.full(len(queries), -np.inf)
    # A shift of all keys changes each row's logits by a constant, which cancels in the mean; likewise for the values.
    # The first key is the anchor, not the mean key, so that later keys change no bit of an earlier causal row.
    anchor, offset = keys[0].copy(), key_bias[0]
    keys, bias = keys - anchor, key_bias - offset
    base = None if values is None else values[0].copy()
    if causal is None and visible is None and len(queries) * len(keys) <= SMALL_SUM and values is not None:
        means, log_mass = _small_sums(queries, keys, values, bias)
        return means, log_mass + (project(queries, anchor[None])[:, 0] + offset)
    columns = np.ones((len(keys), 1 if values is None else values.shape[1] + 1))
    if values is not None:
        np.subtract(values, base, out=columns[:, :-1])
    if causal is not None:
        sums, shifts = _causal_sums(queries, keys, columns, bias, causal)
    elif visible is not None:
        sums, shifts = _masked_sums(_product_logits(queries, keys, bias), len(queries), columns, visible)
    else:
        sums, shifts = _full_sums(queries, keys, columns, bias)
    means, log_mass = _averaged(sums, shifts, base)
    return means, log_mass + (project(queries, anchor[None])[:, 0] + offset)


def softmax_mean_of(logits, m, values, *, visible=None):
    """Softmax averages for logits that are no inner products, made block by block.

    Parameters
    ----------
    logits : callable
        ``logits(rows) -> (len(rows), n)`` for a slice of queries, a fresh array; -inf removes a key.
    m : int
        Number of queries.
    values : ndarray, shape (n, p)
    visible : callable, optional
        As for `softmax_mean`.

    Returns
    -------
    means : ndarray, shape (m, p)
    log_normaliser : ndarray, shape (m,)
    """
    columns = np.column_stack([values - values[0], np.ones(len(values))])

    def block(rows, out):
        out[:] = logits(rows)

    return _averaged(*_masked_sums(block, m, columns, visible), values[0])


def kernel_sum(queries, keys, values, kernel, *, visible=None):
    """Sums ``sum_j kernel(<q_i, k_j>) v_j`` over the keys that query i sees; masses belong into the values.

    Parameters
    ----------
    queries, keys, values : ndarrays, shapes (m, k), (n, k), (n, p)
    kernel : callable
        ``kernel(logits) -> weights`` elementwise on a block; it may work in place.
    visible : callable, optional
        As for `softmax_mean`.

    Returns
    -------
    ndarray, shape (m, p)
    """
    m, n = len(queries), len(keys)
    result = np.empty((m, values.shape[1]))
    rows = _rows_of_block(n, m)
    block = np.empty((rows, n))
    for start in range(0, m, rows):
        here = slice(start, min(start + rows, m))
        logits = np.matmul(queries[here], keys.T, out=block[: here.stop - start])
        weights = kernel(logits)
        if visible is not None:
            weights = np.where(visible(here), weights, 0.0)
        np.matmul(weights, values, out=result[here])
    return result


def project(points, matrix):
    """``points @ matrix.T`` such that no row's bits depend on how many rows follow it.

    BLAS picks its kernels by the size of a product, so one more row could change the last bit of all others. Here
    the rows are padded to tiles whose borders do not depend on their number.

    Parameters
    ----------
    points : ndarray, shape (n, d)
    matrix : ndarray, shape (k, d)

    Returns
    -------
    ndarray, shape (n, k)
    """
    n = len(points)
    if n <= PROJECTED_ROWS:
        return (_padded(points, PROJECTED_ROWS) @ matrix.T)[:n]
    result = np.empty((n, len(matrix)))
    for start, stop in _tiles(n, PROJECTED_ROWS):
        if stop <= n:
            np.matmul(points[start:stop], matrix.T, out=result[start:stop])
        else:
            result[start:] = (_padded(points[start:], stop - start) @ matrix.T)[: n - start]
    return result


def narrowed(visible, kept):
    """A block mask restricted to some of its keys."""
    return lambda rows: visible(rows)[:, kept]


def _rows_of_block(n, m):
    return min(max(BLOCK_ENTRIES // n, 1), m)


def _tiles(n, stop=16):
    """Borders 0, 16, 32, 64, ... 512, 1024, 1536, ... (or from another first one) up to the first that covers n."""
    start = 0
    while start < n:
        yield start, stop
        start, stop = stop, stop + min(stop, 512)


def _padded(array, size):
    padded = np.zeros((size, *array.shape[1:]), dtype=array.dtype)
    padded[: len(array)] = array
    return padded


def _full_sums(queries, keys, columns, bias):
    """Sums over all keys, with the bias as one more coordinate of the key."""
    m, n = len(queries), len(keys)
    tiles = -(-n // TILE_KEYS)
    width = -(-n // tiles)
    rows = _rows_of_block(width, m)
    left = np.concatenate([queries, np.ones((m, 1))], axis=1)
    right = np.ascontiguousarray(np.concatenate([keys, bias[:, None]], axis=1).T)
    reach = np.sqrt(np.einsum("ij,ij->i", queries, queries).max(initial=0) * np.einsum("ij,ij->i", keys, keys).max())
    # No negation: a NaN or an infinity must take the careful road.
    safe = reach + np.abs(bias).max() < SAFE_EXPONENT
    sums, shifts = np.zeros((m, columns.shape[1])), np.zeros(m) if safe else np.full(m, -np.inf)
    block = np.empty(rows * width)
    part = np.empty((rows, columns.shape[1]))
    for start in range(0, m, rows):
        here = slice(start, min(start + rows, m))
        count = here.stop - start
        for first in range(0, n, width):
            last = min(first + width, n)
            logits = block[: count * (last - first)].reshape(count, last - first)
            np.matmul(left[here], right[:, first:last], out=logits)
            if safe:
                np.exp(logits, out=logits)
                sums[here] += np.matmul(logits, columns[first:last], out=part[:count])
            else:
                _accumulate(logits, columns[first:last], sums[here], shifts[here])
    return sums, shifts


def _small_sums(queries, keys, values, bias):
    """Means and log masses where one block holds all pairs: fewest calls, since their overhead is the cost."""
    logits = queries @ keys.T
    logits += bias
    highest = logits.max(axis=1, keepdims=True)
    logits -= highest
    np.exp(logits, out=logits)
    mass = logits.sum(axis=1, keepdims=True)
    means = logits @ (values - values[0])
    means /= mass
    means += values[0]
    return means, (np.log(mass) + highest)[:, 0]


def _averaged(sums, shifts, base):
    """Means and log masses from sums over ``[value - base | 1]`` scaled by exp(-shift); zero for an empty row."""
    mass = sums[:, -1]
    seen = mass > 0
    means = sums[:, :-1] / np.where(seen, mass, 1.0)[:, None]
    if base is not None:
        means[seen] += base
    with np.errstate(divide="ignore"):
        return means, np.log(mass) + shifts


def _product_logits(queries, keys, bias):
    def block(rows, out):
        np.matmul(queries[rows], keys.T, out=out)
        out += bias

    return block


def _masked_sums(fill, m, columns, visible):
    """Sums over the keys that a mask shows; ``fill(rows, out)`` writes a block of logits."""
    n = len(columns)
    rows = _rows_of_block(n, m)
    sums, shifts = np.zeros((m, columns.shape[1])), np.full(m, -np.inf)
    block = np.empty((rows, n))
    for start in range(0, m, rows):
        here = slice(start, min(start + rows, m))
        logits = block[: here.stop - start]
        fill(here, logits)
        if visible is not None:
            logits[~visible(here)] = -np.inf
        _accumulate(logits, columns, sums[here], shifts[here])
    return sums, shifts


def _causal_sums(queries, keys, columns, bias, counts):
    """Sums over the first ``counts[i]`` keys: only tiles that some row of the block sees are touched.

    Tiles of queries and of keys have borders that do not depend on m and n, and the last ones are padded, so every
    product has the same shape whatever comes later: earlier rows keep their bits.
    """
    m, n = len(queries), len(keys)
    order = np.argsort(counts, kind="stable")
    sums, shifts = np.zeros((m, columns.shape[1])), np.full(m, -np.inf)
    for start, stop in _tiles(m):
        rows = order[start:stop]
        seen = _padded(counts[rows], stop - start)
        tile = _padded(queries[rows], stop - start)
        part, shift = np.zeros((stop - start, columns.shape[1])), np.full(stop - start, -np.inf)
        for first, last in _tiles(min(int(seen.max()), n)):
            logits = tile @ _padded(keys[first:last], last - first).T
            logits += _padded(bias[first:last], last - first)
            if last > seen.min():
                logits[np.arange(first, last) >= seen[:, None]] = -np.inf
            _accumulate(logits, _padded(columns[first:last], last - first), part, shift)
        sums[rows], shifts[rows] = part[: len(rows)], shift[: len(rows)]
    return sums, shifts


def _accumulate(logits, columns, sums, shifts):
    """Add one tile to running sums that are scaled by exp(-shift) row by row (streaming log-sum-exp), in place."""
    highest = np.maximum(logits.max(axis=1), shifts)
    finite = np.where(highest == -np.inf, 0.0, highest)
    logits -= finite[:, None]
    np.exp(logits, out=logits)
    sums *= np.exp(shifts - finite)[:, None]
    sums += logits @ columns
    shifts[:] = highest
