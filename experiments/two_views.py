"""One layer seen twice: as named discrete steps on real tokens, and as the flow that attention alone would be."""

import importlib.metadata

import numpy as np

import meanfield as mf
from meanfield.encoder.operators import layer_norm, rms_norm
from meanfield.encoder.qwen3 import Qwen3Layer
from meanfield.pretrained.minilm import PACKAGE, gelu, load_minilm

from .data import load_real_tokens

CLAIM = (
    "Seen as 22 steps, a causal layer keeps every earlier token to the last bit when the last one is edited; seen as a "
    "flow, its ten tokens outlive the Gaussian with their moments, which blows up under softmax."
)

#: Which sentence of the data, and which words (sentence, token) its last word is replaced by.
SENTENCE = 5
EDITS = ((9, "concert"), (10, "sofa"), (1, "money"))

#: Size and rms entry of a token in the small layer; what is added to all its entries where the norms are compared.
SIZE, RMS = 16, 2.0
SHIFTS = np.linspace(-3.0, 3.0, 25)
EPS = {"layer_norm": 1e-5, "rms_norm": 1e-6}

VARIANTS = ("softmax", "l2", "sinkhorn", "linear", "masked")
HORIZON = 1.2


def cases(quick):
    """The small layer, MiniLM's depths and, where its weights are installed, its first layer; then the flows."""
    parts = ["toy", "depths", *(["minilm"] if weights_installed() else [])]
    betas, signs = ((1.0,), (1.0,)) if quick else ((0.25, 1.0, 4.0), (1.0, -1.0))
    flows = [
        {"part": "flow", "variant": variant, "beta": beta, "sign": sign, "outputs": 31}
        for sign in signs
        for beta in betas
        for variant in VARIANTS
    ]
    return [{"part": part} for part in parts] + flows


def run(case, rng):
    """One part.

    Returns
    -------
    dict of arrays
        For a layer, as `layer_view` says, and the eps of its norms; "toy" adds the base of its rotation, `edits` and
        `norms`; for a flow, as `flow` says.
    """
    return {"toy": toy, "depths": depths, "minilm": minilm, "flow": flow}[case["part"]](case, rng)


def weights_installed():
    """Whether the package with MiniLM's weights, and what reads it, are there."""
    try:
        return all(importlib.metadata.version(name) for name in (PACKAGE, "safetensors", "tokenizers"))
    except importlib.metadata.PackageNotFoundError:
        return False


def sentence_words():
    """The words of the sentence without its end, its tokens (n, 16), and the replacements of the last one (e, 16).

    The 384 coordinates of MiniLM's embeddings are replaced by 16 that keep every length and angle between all these
    vectors; then all are scaled alike, to rms entry `RMS`: a residual stream is larger than what one layer adds.
    """
    data = load_real_tokens()
    _, words, states = data[SENTENCE]
    others = [data[k][2][0][data[k][1].index(word)] for k, word in EDITS]
    rows = np.vstack([states[0][1:-2], others])
    left, singular, _ = np.linalg.svd(rows, full_matrices=False)
    spread, _ = np.linalg.qr(np.cos(np.outer(np.arange(SIZE), np.arange(SIZE)) + 1.0))
    rows = (left * singular) @ spread[: len(rows)]  # all 16 coordinates alive, whatever the number of words
    rows *= RMS / np.sqrt(np.mean(rows**2))
    n = len(words) - 3
    return words[1:-2], rows[:n], rows[n:]


def toy(case, rng):
    """The small layer with weights from the seed of the case, the same with another last word, and both norms."""
    words, x, others = sentence_words()
    layer = Qwen3Layer.random(rng, d=SIZE)
    steps = layer.steps(x)
    view = layer_view(
        words,
        x,
        [(step.name, step.formula, step.value) for step in steps],
        stops=(0, 19, 22),
        roles={"attention_step": 15, "value_step": 11, "output_step": 16},
    )
    return view | {"eps": layer.eps, "base": layer.base} | edits(layer, x, others) | norms(x)


def edits(layer, x, others):
    """All steps with each other last word, ``edited_01`` (e, ...) and so on, and the end without the causal mask.

    ``open`` (1 + e, n, d) is the output when every token sees all: the first for the sentence itself.
    """
    variants = []
    for row in others:
        edited = x.copy()
        edited[-1] = row
        variants.append(edited)
    runs = [layer.steps(edited) for edited in variants]
    result = {f"edited_{k + 1:02d}": np.stack([run[k].value for run in runs]) for k in range(len(runs[0]))}
    result["edited_00"] = np.stack(variants)
    result["edit_words"] = np.array([word for _, word in EDITS])
    result["open"] = np.stack([layer(one, visible=everything) for one in (x, *variants)])
    return result


def everything(s, r):
    """A mask that hides nothing."""
    return np.ones(np.broadcast_shapes(s.shape, r.shape), dtype=bool)


def norms(x):
    """LayerNorm and RMSNorm of every token plus each shift: (shifts, n, d), and (mean, std, rms) of all three."""
    vectors = x + SHIFTS[:, None, None]
    layer = layer_norm(vectors, eps=EPS["layer_norm"])
    rms = rms_norm(vectors, eps=EPS["rms_norm"])
    return {
        "shifts": SHIFTS,
        "norm_eps": np.array([EPS["layer_norm"], EPS["rms_norm"]]),
        "layer_norm": layer,
        "rms_norm": rms,
        "moments": np.stack([moments(part) for part in (vectors, layer, rms)]),
    }


def moments(rows):
    """Mean, standard deviation (divisor d) and root mean square along the last axis, stacked on a new last axis."""
    return np.stack([rows.mean(axis=-1), rows.std(axis=-1), np.sqrt(np.mean(rows**2, axis=-1))], axis=-1)


def depths(case, rng):
    """MiniLM's token states after the embedding and each of its six layers: real, but not what is inside a layer."""
    _, words, states = load_real_tokens()[SENTENCE]
    steps = [(f"after layer {k}", "x ← layer(x)", state) for k, state in enumerate(states[1:], start=1)]
    return layer_view(words, states[0], steps, stops=range(7))


def minilm(case, rng):
    """The steps of MiniLM's first layer on the same sentence, with its own weights."""
    _, words, states = load_real_tokens()[SENTENCE]
    x, layer = states[0], load_minilm().layers[0]

    def split(rows):
        return np.swapaxes(rows.reshape(len(x), layer.heads, -1), 0, 1)

    q, k, v = layer.query(x), layer.key(x), layer.value(x)
    values = split(v)
    scores = layer.scale * split(q) @ np.swapaxes(split(k), -1, -2)
    weights = layer.attention(x)
    means = weights @ values
    added = layer.output(np.swapaxes(means, 0, 1).reshape(len(x), -1))
    u = x + added
    normed = layer.attention_norm(u)
    inner = gelu(layer.expand(normed))
    out = layer.contract(inner)
    steps = [
        ("queries", "q = x W_Qᵀ + b_Q", q),
        ("keys", "k = x W_Kᵀ + b_K", k),
        ("split values into heads", "V_h = v rows of head h", values),
        ("scaled scores", "S_h = q_h k_hᵀ / √d_h", scores),
        ("softmax", "P_h = exp(S_h) / row sums", weights),
        ("weighted values", "o_h = P_h V_h", means),
        ("output projection", "a = o W_Oᵀ + b_O", added),
        ("residual", "u = x + a", u),
        ("LayerNorm of the stream", "m = LN(u)", normed),
        ("GELU", "g = gelu(m W_1ᵀ + b_1)", inner),
        ("MLP output", "f = g W_2ᵀ + b_2", out),
        ("residual of the MLP", "w = m + f", normed + out),
        ("LayerNorm of the output", "y = LN(w)", layer.output_norm(normed + out)),
    ]
    roles = {"attention_step": 5, "value_step": 3, "output_step": 6}
    return layer_view(words, x, steps, stops=(0, 9, 13), roles=roles) | {"eps": layer.output_norm.eps}


def layer_view(words, x, steps, stops, roles=()):
    """What is kept of a layer.

    Returns
    -------
    dict of arrays
        tokens, names, formulas (strings); step_00 = x and step_01 ... the values, (n, p) or (heads, n, p), in single
        precision when they are wide; stops (m,), steps after which the tokens are looked at; plane_mean (d,),
        plane_axes (2, d) and plane_share (2,), the principal plane of the tokens at all stops and the share of their
        variance on its axes; places (m, n, 2), the tokens in it; attention_step, value_step, output_step, 0 where the
        model keeps none.
    """
    values = [np.asarray(x), *(value for _, _, value in steps)]
    if x.shape[1] > SIZE:
        values = [value.astype(np.float32) for value in values]
    states = np.stack([values[stop] for stop in stops]).astype(np.float64)
    pooled = states.reshape(-1, x.shape[1])
    mean = pooled.mean(axis=0)
    _, singular, axes = np.linalg.svd(pooled - mean, full_matrices=False)
    axes = axes[:2] * np.sign(axes[:2, np.abs(axes[:2]).argmax(axis=1)].diagonal())[:, None]
    return {
        "tokens": np.array(words),
        "names": np.array([name for name, _, _ in steps]),
        "formulas": np.array([formula for _, formula, _ in steps]),
        **{f"step_{k:02d}": value for k, value in enumerate(values)},
        "stops": np.array(stops),
        "plane_mean": mean,
        "plane_axes": axes,
        "plane_share": singular[:2] ** 2 / np.sum(singular**2),
        "places": (states - mean) @ axes.T,
        **dict.fromkeys(("attention_step", "value_step", "output_step"), 0),
        **dict(roles),
    }


def flow(case, rng):
    """Tokens and, where there is one, the Gaussian of their moments, with Q = K = I and V = sign I.

    The tokens are the words in their own principal plane, centred and divided by their rms spread there.

    Returns
    -------
    dict of arrays
        times (k,) reached by the tokens, points (k, n, 2), blow_up (t*, or NaN); for the Gaussian gaussian_times,
        gaussian_means, gaussian_covariances and gaussian_blow_up, none of them for a masked field; tokens (strings).
    """
    words, x, _ = sentence_words()
    left, singular, _ = np.linalg.svd(x - x.mean(axis=0), full_matrices=False)
    plane = left[:, :2] * singular[:2]
    plane /= np.sqrt(np.mean(np.sum(plane**2, axis=1)))
    head = mf.Head(np.eye(2), np.eye(2), case["sign"] * np.eye(2), scale=case["beta"])
    masked = case["variant"] == "masked"
    field = mf.MaskedAttention(mf.SoftmaxAttention(head)) if masked else mf.make_attention(case["variant"], head)
    start = mf.Measure.positioned(np.arange(len(plane)) / len(plane), plane) if masked else mf.Measure(plane)
    times = np.linspace(0.0, HORIZON, case["outputs"])
    moving = mf.simulate(field, start, times, progress=False)
    result = {
        "tokens": np.array(words),
        "times": moving.times,
        "points": np.stack([state.tokens for state in moving]),
        "blow_up": found_time(moving),
    }
    if masked:
        return result
    law = mf.simulate(field, mf.Gaussian(start.mean, start.covariance), times, progress=False)
    return result | {
        "gaussian_times": law.times,
        "gaussian_means": law.observe(lambda state: state.mean),
        "gaussian_covariances": law.observe(lambda state: state.covariance),
        "gaussian_blow_up": found_time(law),
    }


def found_time(trajectory):
    """t* of a confirmed pole, else NaN."""
    return np.nan if trajectory.blow_up_time is None else trajectory.blow_up_time
