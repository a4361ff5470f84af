"""Particles drawn from a Gaussian against the Gaussian reduction: the error of mean and covariance as n grows.

The time is well before the blow-up of the Gaussian, and the logits are moderate: a softmax average over a Gaussian
sample has relative variance exp(|beta x|^2 s^2) / n for a token at x, so beta s |x| up to about 2 keeps it near 1/n.
Tokens of one replica are nested (the first n of one sample) and shared by the variants: common random numbers.
"""

import numpy as np

import meanfield as mf
from meanfield.gaussian.closed_forms import softmax_solution

CLAIM = (
    "Mean and covariance of n tokens drawn from a Gaussian differ from its Gaussian reduction by about a constant over "
    "sqrt(n), for softmax, L2 and Sinkhorn attention alike."
)

#: Most tokens of each variant: exact sums cost O(n^2), and Sinkhorn some ten of them a velocity.
LARGEST = {"softmax": 16_384, "l2": 4096, "sinkhorn": 2048}

#: Query and key: logits beta <x, y> turned by 30 degrees, so that mean and covariance both turn.
BETA, ANGLE = 0.5, np.pi / 6

MEAN, COVARIANCE = (0.3, -0.2), ((1.0, 0.3), (0.3, 0.6))


def cases(quick):
    """Eight replicas, each with all sizes and variants; up to 512 tokens when quick."""
    return [
        {
            "replica": k,
            "smallest": 64,
            "largest": {name: min(most, 512 if quick else most) for name, most in LARGEST.items()},
            "time": 0.4,
            "steps": 2,
        }
        for k in range(8)
    ]


def run(case, rng):
    """One sample, cut to each size and moved under each variant.

    Returns
    -------
    dict of arrays
        For each variant: n_VARIANT (k,), mean_VARIANT (k,), covariance_VARIANT (k,): errors at the end, as `distance`
        says; stepping_VARIANT: the same of the time steps alone (against rtol 1e-9 at the smallest size), which must
        be far below; time; blow_up_time of the softmax Gaussian; spread: the largest beta |x| s of a token.
    """
    law = mf.Gaussian(MEAN, COVARIANCE)
    sample = law.sample(max(case["largest"].values()), rng).points
    result = {"blow_up_time": softmax_solution(head(), law).blow_up_time, "time": case["time"]}
    result["spread"] = BETA * np.linalg.norm(sample, axis=1).max() * np.sqrt(np.linalg.eigvalsh(law.covariance)[-1])
    for name, most in case["largest"].items():
        field = mf.make_attention(name, head())
        limit = end(field, law, case, mf.Adaptive(rtol=1e-10, atol=1e-12))
        sizes = case["smallest"] * 2 ** np.arange(int(np.log2(most // case["smallest"])) + 1)
        clouds = [mf.Measure(sample[:n]) for n in sizes]
        errors = np.array([distance(end(field, cloud, case, mf.RK4), limit) for cloud in clouds])
        accurate = end(field, clouds[0], case, mf.Adaptive(rtol=1e-9, atol=1e-11))
        result[f"n_{name}"] = sizes
        result[f"mean_{name}"], result[f"covariance_{name}"] = errors.T
        result[f"stepping_{name}"] = max(distance(end(field, clouds[0], case, mf.RK4), accurate))
    return result


def head():
    """Q a rotation, K = V = I, scale beta."""
    c, s = np.cos(ANGLE), np.sin(ANGLE)
    return mf.Head([[c, -s], [s, c]], np.eye(2), np.eye(2), scale=BETA)


def end(field, start, case, scheme):
    """The law at the end of the run, for tokens or a Gaussian."""
    dt = None if isinstance(scheme, mf.Adaptive) else case["time"] / case["steps"]
    return mf.simulate(field, start, [0.0, case["time"]], scheme=scheme, dt=dt, progress=False).last.state


def distance(law, limit):
    """Errors of the mean, in root mean square deviations, and of the covariance, relative to its norm."""
    mean = np.linalg.norm(law.mean - limit.mean) / np.sqrt(np.trace(limit.covariance))
    return mean, np.linalg.norm(law.covariance - limit.covariance) / np.linalg.norm(limit.covariance)
