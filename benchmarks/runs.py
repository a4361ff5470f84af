"""What does one step of a whole run cost at n = 20, over its bare velocity and beside loops as published scripts have?

The script patterns are written anew from their description: plain Python loops over tokens, the weights frozen within a
step of four stages that, in the coordinates z = e^{-tV} x, add up to one forward Euler step.
"""

import math

import numpy as np

from meanfield.attention.softmax import SoftmaxAttention
from meanfield.integration.adaptive import Adaptive
from meanfield.integration.schemes import EULER, RK4
from meanfield.integration.simulate import simulate
from meanfield.measures import Measure
from meanfield.parameters import Head
from meanfield.spaces import Sphere

from .harness import Contest, Method, rows_of

QUESTION = "What does one step of a whole run cost at n = 20?"
N, DIMENSION = 20, 2
#: Steps of the runs whose overhead is measured, and of the scripts.
STEPS, SCRIPT_STEPS = 200, 5
SCRIPT_STEP = 0.1
#: The phase diagram: tokens of a run, runs of a step of the whole diagram, and those that ours does one by one.
TOKENS, RUNS, DONE = 32, 2048, 16
#: Beta, step and pairs that count as one cluster of the phase diagram.
BETA, SPHERE_STEP, SAME = 4.0, 0.1, 0.999
DIAGRAM_STEPS = 5
#: Microseconds a step may cost besides its velocities.
OVERHEAD = 60.0


def contests(full):
    """Overhead of fixed and adaptive steps, clustering and leader scripts, one step of a phase diagram."""
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, (N, DIMENSION))
    yield overhead("Euler", x, EULER, 1)
    yield overhead("RK4", x, RK4, 4)
    yield adaptive(x)
    wide = rng.uniform(-5, 5, (N, DIMENSION))
    yield scripts("clustering script", wide, summed_for_every_pair)
    yield scripts("leaders script", wide, summed_for_every_token)
    yield phase_diagram(rng)


def bare(x, scale=1.0):
    """The softmax velocity of identity matrices, as short as it can be written."""
    logits = scale * x @ x.T
    logits -= logits.max(axis=1, keepdims=True)
    np.exp(logits, out=logits)
    velocity = logits @ x
    velocity /= logits.sum(axis=1, keepdims=True)
    return velocity


def positions(field, x, times, scheme, dt=None, **options):
    """Tokens at the last time."""
    return simulate(field, Measure(x), times, scheme=scheme, dt=dt, progress=False, **options)[-1].points


def error_at(x, end, *, rescaled=False):
    """Largest error of tokens at the end time, relative to the largest coordinate, from a tight adaptive run."""
    field = SoftmaxAttention(Head.identity(DIMENSION))
    wanted = positions(field, x, [0.0, end], Adaptive(rtol=1e-12, atol=1e-13)) * (math.exp(-end) if rescaled else 1.0)
    return lambda answer: np.abs(answer - wanted).max() / np.abs(wanted).max()


def overhead(name, x, scheme, stages):
    """A fixed-step run through the front door, the velocities it needs, and a loop without a package."""
    field, mu, dt = SoftmaxAttention(Head.identity(DIMENSION)), Measure(x), 1.0 / STEPS

    def velocities():
        for _ in range(stages * STEPS):
            field(0.0, x, mu)
        return np.full_like(x, np.nan)  # goes nowhere, so there is no error to speak of

    def loop():
        y = x.copy()
        for _ in range(STEPS):
            rates = [bare(y)]
            for row in scheme.stages:
                rates.append(bare(y + dt * sum(a * k for a, k in zip(row, rates, strict=True) if a)))
            y = y + dt * sum(b * k for b, k in zip(scheme.weights, rates, strict=True))
        return y

    methods = [
        Method("ours", lambda: lambda: positions(field, x, [0.0, 1.0], scheme, dt), units=STEPS),
        Method("ours, velocities alone", lambda: velocities, units=STEPS),
        Method("NumPy loop", lambda: loop, units=STEPS),
    ]
    return Contest(f"a step of {name}", N, methods, error_at(x, 1.0))


def adaptive(x):
    """An adaptive run beside scipy's, per evaluation of the velocity."""
    from scipy.integrate import solve_ivp

    field, end, rtol, atol = SoftmaxAttention(Head.identity(DIMENSION)), 3.0, 1e-8, 1e-10
    times = np.linspace(0, end, 31)

    def rate(_, y):
        return bare(y.reshape(x.shape)).ravel()

    def with_scipy():
        run = solve_ivp(rate, (0, end), x.ravel(), method="DOP853", rtol=rtol, atol=atol, t_eval=times)
        return run.y[:, -1].reshape(x.shape)

    ours_needed = simulate(field, Measure(x), times, scheme=Adaptive(rtol=rtol, atol=atol), progress=False)
    scipy_needed = solve_ivp(rate, (0, end), x.ravel(), method="DOP853", rtol=rtol, atol=atol, t_eval=times).nfev
    scheme = Adaptive(rtol=rtol, atol=atol)
    methods = [
        Method("ours", lambda: lambda: positions(field, x, times, scheme), units=ours_needed.statistics.evaluations),
        Method("scipy solve_ivp", lambda: with_scipy, units=scipy_needed),
    ]
    return Contest("an evaluation of DOP853", N, methods, error_at(x, end))


def scripts(name, x, weights):
    """A script in rescaled coordinates, RK4 with steps of the same size, and the script's scheme vectorised."""
    field, end = SoftmaxAttention(Head.identity(DIMENSION)), SCRIPT_STEPS * SCRIPT_STEP
    times = np.linspace(0, end, SCRIPT_STEPS + 1)

    def script():
        z = [list(row) for row in x]
        for t in times[:-1]:
            z = script_step(z, t, weights)
        return np.array(z)

    def vectorised():
        z = x.copy()
        for t in times[:-1]:
            z = z + SCRIPT_STEP * (bare(z, math.exp(2 * t)) - z)
        return z

    def ours():
        return math.exp(-end) * positions(field, x, times, RK4, SCRIPT_STEP)

    methods = [
        Method("ours, RK4", lambda: ours, units=SCRIPT_STEPS),
        Method("script pattern", lambda: script, units=SCRIPT_STEPS),
        Method("script's scheme, NumPy", lambda: vectorised, units=SCRIPT_STEPS),
    ]
    return Contest(f"a step of the {name}", N, methods, error_at(x, end, rescaled=True))


def summed_for_every_pair(x, query, key):
    """Weights whose normaliser is summed afresh for every pair: n^3 exponentials."""
    n = len(x)

    def normaliser(i, j):
        return sum(np.exp(np.dot(np.dot(query, x[i]), np.dot(key, x[k] - x[j]))) for k in range(n))

    return [[1.0 / normaliser(i, j) for j in range(n)] for i in range(n)]


def summed_for_every_token(x, query, key):
    """Weights whose normaliser is summed once for every token: n^2 exponentials."""
    rows = []
    for i in range(len(x)):
        logits = [np.dot(np.dot(query, x[i]), np.dot(key, other)) for other in x]
        row = [np.exp(logit - max(logits)) for logit in logits]
        rows.append([weight / sum(row) for weight in row])
    return rows


def script_step(z, t, weights):
    """One step over all tokens by plain loops."""
    grown = [math.exp(t) * np.array(row) for row in z]
    n, matrix = len(z), weights(grown, np.eye(DIMENSION), np.eye(DIMENSION))
    moved = []
    for i in range(n):
        slopes = []
        for _ in range(4):
            # All tokens are shifted by what token i has gone, so differences, and slopes, stay what they were.
            slope = np.zeros(len(z[i]))
            for j in range(n):
                slope = slope + matrix[i][j] * (np.array(z[j]) - np.array(z[i]))
            slopes.append(slope)
        moved.append(list(z[i] + SCRIPT_STEP / 6 * (slopes[0] + 2 * slopes[1] + 2 * slopes[2] + slopes[3])))
    return moved


def phase_diagram(rng):
    """One Euler step of 2,048 runs of 32 tokens on the circle, and the share of pairs that coincide."""
    starts = rng.standard_normal((RUNS, TOKENS, DIMENSION))
    starts /= np.linalg.norm(starts, axis=2, keepdims=True)
    field, times = SoftmaxAttention(Head.identity(DIMENSION, BETA)), np.linspace(0, 0.5, DIAGRAM_STEPS + 1)
    others = ~np.eye(TOKENS, dtype=bool)

    def share(state):
        return (state.points @ state.points.T >= SAME)[others].mean()

    def ours():
        runs = (
            simulate(field, Measure(start), times, space=Sphere(), scheme=EULER, dt=SPHERE_STEP, progress=False)
            for start in starts[:DONE]
        )
        return np.array([[share(state) for state in run] for run in runs])

    def batched():
        x, shares = starts.copy(), []
        for _ in range(DIAGRAM_STEPS):
            cosines = x @ np.swapaxes(x, 1, 2)
            shares.append((cosines >= SAME)[:, others].mean(axis=1))
            weights = np.exp(BETA * (cosines - 1))
            velocity = weights @ x / weights.sum(axis=2, keepdims=True)
            velocity -= (velocity * x).sum(axis=2, keepdims=True) * x
            x = x + SPHERE_STEP * velocity
            x /= np.linalg.norm(x, axis=2, keepdims=True)
        shares.append((x @ np.swapaxes(x, 1, 2) >= SAME)[:, others].mean(axis=1))
        return np.array(shares).T[:DONE]

    wanted = batched()
    methods = [
        Method("ours, run by run", lambda: ours, units=DIAGRAM_STEPS * DONE / RUNS),
        Method("NumPy, batched", lambda: batched, units=DIAGRAM_STEPS),
    ]
    case = f"a step of a phase diagram, {RUNS:,} runs"
    return Contest(case, TOKENS, methods, lambda answer: np.abs(answer - wanted).max())


def remarks(rows):
    """Microseconds of a step outside its velocities."""
    ours, velocities = rows_of(rows, "ours"), rows_of(rows, "ours, velocities alone")
    said = []
    for (case, size), row in velocities.items():
        cost = (ours[case, size].seconds - row.seconds) * 1e6
        said.append(f"{case}: {cost:.0f} microseconds besides its velocities (goal: {OVERHEAD:g})")
    return said
