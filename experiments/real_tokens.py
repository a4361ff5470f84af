"""Tokens of real sentences set free: the simulator starts from MiniLM's embeddings and is held against its layers."""

import numpy as np

import meanfield as mf
from meanfield.analysis.clustering import cluster_count
from meanfield.analysis.observables import attention_entropy, diameter, effective_rank

from .data import load_attention_entropies, load_real_tokens

CLAIM = (
    "Started from real embeddings, attention in R^d does not turn tokens towards each other as MiniLM's layers do; "
    "on the sphere, at the right temperature, it follows four observables of five."
)

#: What is measured, in this order, on every state.
OBSERVABLES = ("mean cosine", "effective rank / n", "diameter / rms", "clusters / n", "entropy / log n")

#: Tokens nearer than this times the rms spread are one cluster; independent directions lie sqrt(2) spreads apart.
GAP = 0.75

#: A curve follows the layers when it misses them by at most this share of their range.
FOLLOWS = 0.25

SPACES = {"euclidean": mf.Euclidean(), "sphere": mf.Sphere()}


def cases(quick):
    """Variant, temperature and space; in a quick run softmax on four sentences."""
    variants = ("softmax",) if quick else ("softmax", "l2", "sinkhorn")
    return [
        {"variant": variant, "beta": beta, "space": space, "sentences": 4 if quick else 12, "horizon": 6.0}
        for space in SPACES
        for variant in variants
        for beta in (1.0, 4.0, 16.0)
    ]


def run(case, rng):
    """Every sentence of a case, and the one number that ties simulated time to depth.

    Returns
    -------
    dict of arrays
        times (k,), simulated (sentences, k, 5), layers (sentences, 7, 5) in the order of OBSERVABLES, with a last row
        of entropy that does not exist as NaN; time_per_layer; matched (7, 5), the simulated means at those times;
        misfit (5,), followed, score and score_at_rest, as in `fit_time`; names (5,) and finished, how many runs came to
        their end.
    """
    data = list(zip(load_real_tokens(), load_attention_entropies(), strict=True))[: case["sentences"]]
    simulated, layers, finished = [], [], 0
    for (_, _, states), entropies in data:
        trajectory, field = simulated_run(case, placed(states, case["space"])[0])
        simulated.append(observed(trajectory, lambda t, mu, field=field: attention_entropy(field, t, mu)))
        real = mf.Trajectory.from_hidden_states(placed(states, case["space"]))
        by_layer = entropies.mean(axis=(1, 2))
        layers.append(observed(real, lambda t, mu, by_layer=by_layer: by_layer[int(t)] if t < 6 else np.nan))
        finished += trajectory.outcome is mf.Outcome.FINISHED
    reached = min(map(len, simulated))
    simulated = np.stack([run[:reached] for run in simulated])
    times = output_times(case)[:reached]
    result = {"times": times, "simulated": simulated, "layers": np.stack(layers)}
    result |= fit_time(times, simulated.mean(axis=0), result["layers"].mean(axis=0))
    return result | {"names": np.array(OBSERVABLES), "finished": finished}


def output_times(case):
    """Five output times a unit."""
    return np.linspace(0.0, case["horizon"], int(5 * case["horizon"]) + 1)


def placed(states, space):
    """The token states of all depths where the simulator has them.

    In R^d: minus the mean of the embeddings, divided by their rms spread. On the unit sphere: each token divided by its
    norm, which post-norm layers leave nearly constant. Both maps are the same for all depths, so that layers compare.
    """
    if space == "sphere":
        return [state / np.linalg.norm(state, axis=1, keepdims=True) for state in states]
    centre = states[0].mean(axis=0)
    spread = np.sqrt(np.trace(mf.Measure(states[0]).covariance))
    return [(state - centre) / spread for state in states]


def simulated_run(case, tokens):
    """A run with Q = K = V = I, in orthonormal coordinates of the span of the tokens, which it never leaves.

    With Q = K = V = I every field commutes with rotations, so n coordinates give the run that 384 would give.
    """
    left, singular, _ = np.linalg.svd(tokens, full_matrices=False)
    coordinates = left * singular
    options = {"tolerance": 1e-7} if case["variant"] == "sinkhorn" else {}
    field = mf.make_attention(case["variant"], mf.Head.identity(coordinates.shape[1], case["beta"]), **options)
    trajectory = mf.simulate(
        field,
        mf.Measure(coordinates),
        output_times(case),
        space=SPACES[case["space"]],
        scheme=mf.Adaptive(rtol=1e-6, atol=1e-8),
        progress=False,
    )
    return trajectory, field


def observed(trajectory, entropy):
    """The five observables along a trajectory, shape (k, 5); all of them are blind to rotations and to scale."""
    rows = []
    for t, mu in trajectory.items():
        spread = np.sqrt(np.trace(mu.covariance))
        rows.append(
            (
                mean_cosine(mu),
                effective_rank(mu) / len(mu),
                diameter(mu) / spread,
                cluster_count(mu, GAP * spread) / len(mu),
                entropy(t, mu) / np.log(len(mu)),
            )
        )
    return np.array(rows)


def mean_cosine(mu):
    """Mean of <x, y> / |x||y| over pairs of different tokens."""
    units = mu.points / np.linalg.norm(mu.points, axis=1, keepdims=True)
    n = len(units)
    return (np.square(units.sum(axis=0)).sum() - n) / (n * (n - 1))


def fit_time(times, simulated, layers):
    """The time per layer that serves the simulation best, and how well it then does.

    A misfit is the rms difference over the depths, divided by the range of the real curve; the score is the rms of the
    five misfits, and the time per layer has the lowest score on a grid that begins with 0, a simulation at rest. It is
    the only number that is fitted, and to these same five curves. The entropy of layer k belongs to state k, so there
    is none for the last state.

    Parameters
    ----------
    times : ndarray, shape (k,)
    simulated, layers : ndarray, shape (k, 5) and (7, 5)
        Means over sentences.
    """
    depths = np.arange(len(layers))
    ranges = np.nanmax(layers, axis=0) - np.nanmin(layers, axis=0)
    candidates = np.linspace(0.0, times[-1] / depths[-1], 201)
    curves = np.stack(
        [[np.interp(step * depths, times, column) for column in simulated.T] for step in candidates]
    ).transpose(0, 2, 1)
    misfits = np.sqrt(np.nanmean((curves - layers) ** 2, axis=1)) / ranges
    scores = np.sqrt((misfits**2).mean(axis=1))
    best = int(np.argmin(scores))
    return {
        "time_per_layer": candidates[best],
        "matched": curves[best],
        "misfit": misfits[best],
        "misfit_at_rest": misfits[0],
        "followed": int((misfits[best] <= FOLLOWS).sum()),
        "follows_within": FOLLOWS,
        "score": scores[best],
        "score_at_rest": scores[0],
    }
