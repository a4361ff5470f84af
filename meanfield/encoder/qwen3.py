"""A small decoder layer in the style of Qwen3, in 22 named steps, each with its formula and its value."""

from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from ..checks import finite_array, matrix_array, number, points_array
from .operators import rms_norm


@dataclass(frozen=True, eq=False)
class Step:
    """One step of a layer: its number from 1, what it is called, its formula and what comes out of it."""

    number: int
    name: str
    formula: str
    value: np.ndarray

    @property
    def shape(self):
        """Shape of the value."""
        return self.value.shape


def _half(first_half):
    pairs = np.arange(first_half)
    return pairs, pairs + first_half


def _interleaved(first_half):
    pairs = np.arange(first_half)
    return 2 * pairs, 2 * pairs + 1


#: Which two coordinates are rotated together, by layout: (i, i + d/2) in Qwen and Llama, (2i, 2i + 1) in the paper.
LAYOUTS = {"half": _half, "interleaved": _interleaved}


def rotary(x, positions, base=10000.0, layout=None):
    """Rotary position embedding: pair i of each row is turned by the angle s base^(-2i/d), s its position.

    Both layouts make <R_s q, R_r k> depend on s - r only, but they are different maps, so the caller names one.

    Parameters
    ----------
    x : array_like, shape (..., n, d)
        Rows of queries or keys of one head; d even.
    positions : array_like, shape (n,)
        s, one a row.
    base : float
        Above 0; 10,000 in the first models, 1,000,000 in Qwen3.
    layout : "half" or "interleaved"
        Which coordinates make a pair: (i, i + d/2) or (2i, 2i + 1).

    Returns
    -------
    ndarray, shape (..., n, d)

    Raises
    ------
    ValueError
        If d is odd, the positions do not fit or no layout is named.
    """
    x = finite_array("x", x)
    if x.ndim < 2 or x.shape[-1] % 2 or not x.shape[-1]:
        raise ValueError(
            f"x must have shape (..., n, d) with an even d: coordinates are rotated in pairs; got shape {x.shape}. "
            "For one row use x[None, :]."
        )
    positions = finite_array("positions", positions, ndim=1)
    if len(positions) != x.shape[-2]:
        raise ValueError(f"positions must hold one number a row, {x.shape[-2]} here; got {len(positions)}.")
    base = number("base", base, above=0)
    if not isinstance(layout, str) or layout not in LAYOUTS:
        raise ValueError(
            f"layout must be one of {', '.join(LAYOUTS)}; got {layout!r}. The transformers library keeps weights "
            "for 'half'; the RoPE paper is 'interleaved'. With the wrong one the scores are silently wrong."
        )
    half = x.shape[-1] // 2
    angles = positions[:, None] * base ** (-np.arange(half) / half)
    cos, sin = np.cos(angles), np.sin(angles)
    left, right = LAYOUTS[layout](half)
    rotated = np.empty_like(x)
    rotated[..., left] = x[..., left] * cos - x[..., right] * sin
    rotated[..., right] = x[..., right] * cos + x[..., left] * sin
    return rotated


def repeat_heads(x, groups):
    """Keys or values for grouped queries: query head h reads key-value head h // groups.

    Parameters
    ----------
    x : array_like, shape (..., h_kv, n, d)
    groups : int
        Query heads a key-value head.

    Returns
    -------
    ndarray, shape (..., h_kv groups, n, d)
        Each head ``groups`` times in a row: 0, 0, 1, 1, not 0, 1, 0, 1.
    """
    x, groups = finite_array("x", x), number("groups", groups, at_least=1, integer=True)
    if x.ndim < 3:
        raise ValueError(f"x must have shape (heads, n, d); got shape {x.shape}. For one head use x[None].")
    return np.repeat(x, groups, axis=-3)


def causal(s, r):
    """Whether a token at position s sees one at position r: itself and what comes before it."""
    return r <= s


@dataclass(frozen=True, eq=False)
class Qwen3Layer:
    """Pre-norm grouped-query attention with normalised, rotated queries and keys, then a pre-norm SwiGLU.

    Parameters
    ----------
    attention_norm, mlp_norm : array_like, shape (d,)
        Gains of the two RMSNorms on the residual stream.
    query : array_like, shape (h d_h, d)
        W_Q; head h owns rows h d_h to (h + 1) d_h, and so for the others.
    key, value : array_like, shape (h_kv d_h, d)
        W_K and W_V.
    query_norm, key_norm : array_like, shape (d_h,)
        Gains of the RMSNorms inside each head; their length is d_h.
    output : array_like, shape (d, h d_h)
        W_O.
    gate, up, down : array_like, shapes (m, d), (m, d) and (d, m)
        The SwiGLU.
    base : float
        Of the rotary embedding, in the layout "half".
    eps : float
        Of every RMSNorm.

    Raises
    ------
    ValueError
        If the shapes do not fit one another, or the query heads are no multiple of the key-value heads.
    """

    attention_norm: np.ndarray
    query: np.ndarray
    key: np.ndarray
    value: np.ndarray
    query_norm: np.ndarray
    key_norm: np.ndarray
    output: np.ndarray
    mlp_norm: np.ndarray
    gate: np.ndarray
    up: np.ndarray
    down: np.ndarray
    base: float = 1_000_000.0
    eps: float = 1e-6

    def __post_init__(self):
        d, width, hidden = (len(finite_array(n, getattr(self, n), ndim=k)) for n, k in _SIZES)
        query = matrix_array("query", self.query, (None, d))
        key = matrix_array("key", self.key, (None, d))
        for name, array in (("query", query), ("key", key)):
            if len(array) % width or not len(array):
                raise ValueError(f"{name} must have a multiple of {width} rows, the size of a head; got {len(array)}.")
        if len(query) % len(key):
            raise ValueError(
                f"query heads must be a multiple of key-value heads; got {len(query) // width} and {len(key) // width}."
            )
        shapes = {"value": key.shape, "output": (d, len(query))}
        shapes |= {"gate": (hidden, d), "up": (hidden, d), "down": (d, hidden)}
        shapes |= {"query": query.shape, "key": key.shape}
        shapes |= {"attention_norm": (d,), "mlp_norm": (d,), "query_norm": (width,), "key_norm": (width,)}
        for name, shape in shapes.items():
            array = finite_array(name, getattr(self, name))
            if array.shape != shape:
                raise ValueError(f"{name} must have shape {shape} to fit the others; got {array.shape}.")
            array.setflags(write=False)
            object.__setattr__(self, name, array)
        object.__setattr__(self, "base", number("base", self.base, above=0))
        object.__setattr__(self, "eps", number("eps", self.eps, at_least=0))

    @classmethod
    def random(cls, rng, *, d=16, width=4, heads=4, kv_heads=2, hidden=32, base=1e6, eps=1e-6):
        """A layer with normal weights of variance 1/(number of inputs) and gains uniform in [1, 2].

        Parameters
        ----------
        rng : numpy.random.Generator
        d, width, heads, kv_heads, hidden : int
            Sizes: token, head, number of query heads and of key-value heads, SwiGLU.
        base, eps : float
            As in the constructor.
        """
        inner = heads * width
        shapes = ((d,), (inner, d), (kv_heads * width, d), (kv_heads * width, d), (width,), (width,), (d, inner))
        shapes += ((d,), (hidden, d), (hidden, d), (d, hidden))
        draws = (
            rng.uniform(1, 2, shape) if len(shape) == 1 else rng.normal(scale=shape[1] ** -0.5, size=shape)
            for shape in shapes
        )
        return cls(*draws, base=base, eps=eps)

    @property
    def width(self):
        """Size d_h of a head."""
        return len(self.query_norm)

    @property
    def heads(self):
        """Number h of query heads."""
        return len(self.query) // self.width

    @property
    def kv_heads(self):
        """Number h_kv of key-value heads."""
        return len(self.key) // self.width

    def __call__(self, x, *, positions=None, visible=causal):
        """The tokens after this layer, (n, d) -> (n, d): the value of the last step."""
        return self.steps(x, positions=positions, visible=visible)[-1].value

    def steps(self, x, *, positions=None, visible=causal):
        """All intermediates of one evaluation.

        Parameters
        ----------
        x : array_like, shape (n, d)
            Tokens, one a row.
        positions : array_like, shape (n,), optional
            0, 1, ..., n - 1 when left out.
        visible : callable
            ``visible(s, r)``: whether a token at position s sees one at position r; both broadcast.

        Returns
        -------
        tuple of Step
            22 of them. Step 5 has the heads of Q, K and V below one another; in step 14 hidden scores are -inf.

        Raises
        ------
        ValueError
            If x does not fit the layer, or some token sees nothing.
        """
        x = points_array("x", x)
        if x.shape[1] != self.output.shape[0]:
            raise ValueError(f"x must have {self.output.shape[0]} columns to fit this layer; got shape {x.shape}.")
        positions = np.arange(len(x)) if positions is None else finite_array("positions", positions, ndim=1)
        attention, u = self._attention(x, positions, visible)
        values = (*attention, *self._mlp(u))
        return tuple(
            Step(k, name, formula, value)
            for k, ((name, formula), value) in enumerate(zip(STEPS, values, strict=True), start=1)
        )

    def _attention(self, x, positions, visible):
        """Steps 1 to 19, and the stream after them."""
        normed = rms_norm(x, self.attention_norm, eps=self.eps)
        flat = tuple(normed @ weight.T for weight in (self.query, self.key, self.value))
        q, k, v = (np.swapaxes(part.reshape(len(x), -1, self.width), 0, 1) for part in flat)
        q_norm = rms_norm(q, self.query_norm, eps=self.eps)
        k_norm = rms_norm(k, self.key_norm, eps=self.eps)
        q_turned, k_turned = (rotary(part, positions, self.base, layout="half") for part in (q_norm, k_norm))
        keys, values = (repeat_heads(part, self.heads // self.kv_heads) for part in (k_turned, v))
        scores = q_turned @ np.swapaxes(keys, -1, -2)
        scaled = scores / np.sqrt(self.width)
        masked = np.where(_seen(positions, visible), scaled, -np.inf)
        weights = np.exp(masked - masked.max(axis=-1, keepdims=True))
        weights /= weights.sum(axis=-1, keepdims=True)
        means = weights @ values
        joined = np.swapaxes(means, 0, 1).reshape(len(x), -1)
        added = joined @ self.output.T
        u = x + added
        split = np.concatenate([q, k, v])
        done = (normed, *flat, split, q_norm, k_norm, q_turned, k_turned, keys, values)
        return (*done, scores, scaled, masked, weights, means, joined, added, u), u

    def _mlp(self, u):
        """Steps 20 to 22."""
        normed = rms_norm(u, self.mlp_norm, eps=self.eps)
        gate = normed @ self.gate.T
        added = (gate * expit(gate) * (normed @ self.up.T)) @ self.down.T
        return normed, added, u + added


#: The arrays that d, the size of a head and the size of the SwiGLU are read from, with their number of axes.
_SIZES = (("attention_norm", 1), ("query_norm", 1), ("gate", 2))

#: Name and formula of each step; x are the tokens, h a head, s a position.
STEPS = (
    ("RMSNorm of the tokens", "n = g · x / √(mean(x²) + ε)"),
    ("queries", "q = n W_Qᵀ"),
    ("keys", "k = n W_Kᵀ"),
    ("values", "v = n W_Vᵀ"),
    ("split into heads", "[q; k; v] → heads of size d_h"),
    ("RMSNorm of queries", "q̂_h = g_Q · q_h / √(mean(q_h²) + ε)"),
    ("RMSNorm of keys", "k̂_h = g_K · k_h / √(mean(k_h²) + ε)"),
    ("rotate queries", "q̃_h(s) = R(s) q̂_h(s)"),
    ("rotate keys", "k̃_h(s) = R(s) k̂_h(s)"),
    ("repeat keys", "K_h = k̃_{⌊h / groups⌋}"),
    ("repeat values", "V_h = v_{⌊h / groups⌋}"),
    ("scores", "S_h = q̃_h K_hᵀ"),
    ("scale", "S_h / √d_h"),
    ("causal mask", "−∞ where r > s"),
    ("softmax", "P_h = exp(S_h) / row sums"),
    ("weighted values", "o_h = P_h V_h"),
    ("join heads", "o = [o_1 | … | o_h]"),
    ("output projection", "a = o W_Oᵀ"),
    ("residual", "u = x + a"),
    ("RMSNorm of the stream", "m = g · u / √(mean(u²) + ε)"),
    ("SwiGLU", "f = (silu(m W_Gᵀ) · m W_Uᵀ) W_Dᵀ"),
    ("residual of the MLP", "y = u + f"),
)


def _seen(positions, visible):
    """The mask, shape (n, n)."""
    n = len(positions)
    seen = np.broadcast_to(np.asarray(visible(positions[:, None], positions[None, :]), dtype=bool), (n, n))
    blind = np.flatnonzero(~seen.any(axis=1))
    if len(blind):
        raise ValueError(
            f"every token must see at least one; token {blind[0]} sees none. Let visible(s, s) be True, as causal does."
        )
    return seen
