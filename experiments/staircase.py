"""The staircase of the energy on the circle: clusters merge pair by pair, after times that grow like e^{c beta}."""

import numpy as np
from scipy.integrate import quad

import meanfield as mf
from meanfield.gradient_flow.energies import SphereEnergy
from meanfield.gradient_flow.staircase import PUBLISHED_ANGLES

CLAIM = (
    "At low temperature the energy of tokens on a circle climbs in steps: it rests at the levels sum of m_k^2 / n^2 of "
    "clusters of m_k tokens, and the pair that is nearest merges next, at the time that it would take alone."
)

#: The published inverse temperatures [GKPR24]; the published start is made for 2000 and the same for all.
BETAS = (500, 1000, 1500, 2000, 3000, 4000)
START = PUBLISHED_ANGLES

#: The power of the normaliser that the velocity of either attention is divided by.
POWERS = {"unnormalised": 0, "softmax": 1}

#: Two clusters this near are made one, with their masses added: what the others feel changes by its square.
GLUE = 1e-6

#: Ticks of the clock between outputs, and how many are enough for any phase.
TICK, LONGEST = 0.05, 30.0


def cases(quick):
    """Every published temperature for both attentions of [GLPR25], or a few."""
    betas = {"unnormalised": (500, 2000, 4000), "softmax": (2000,)} if quick else dict.fromkeys(POWERS, BETAS)
    return [{"beta": beta, "attention": name} for name in POWERS for beta in betas[name]]


def run(case, rng):
    """Merge after merge, each by an accurate integration on a clock of its own.

    Returns
    -------
    dict of arrays
        log_time (k,) = log10 t (-inf at the start), where t is the time of softmax attention, or of unnormalised
        attention times e^beta; length (k,) the arc length sum of |dtheta|_2; level (k,) the energy divided by its
        largest value; angles (k, 5); merge_log_times (4,) and predicted_log_times (4,), log10 of the times when
        clusters meet and of those that the merge law says; merge_lengths (4,); plateaus (5,) = sum of (m_k / n)^2 and
        masses (5, 5) of the clusters, zero-padded, before the first merge and after each.
    """
    beta, power = case["beta"], POWERS[case["attention"]]
    angles, tokens = START, [[k] for k in range(len(START))]
    parts, merges, masses = [], [np.zeros(3)], []
    while len(tokens) > 1:
        weights = np.array([len(one) for one in tokens]) / len(START)
        masses.append(padded(weights))
        phase, unit = until_contact(angles, weights, beta, power)
        rows = np.array([state.points for state in [*phase, phase.last.state]])
        rows = merges[-1] + rows * (1, unit, 1)
        parts.append(record(rows, tokens, beta))
        merges.append(rows[-1, 0] * (0, 1, 1))
        angles, tokens = merged(rows[-1, :, 0], weights, tokens)
    masses.append(padded(np.ones(1)))
    result = {key: np.concatenate([part[key] for part in parts]) for key in parts[0]}
    return result | {
        "merge_log_times": np.log10(np.array(merges)[1:, 1]),
        "merge_lengths": np.array(merges)[1:, 2],
        "predicted_log_times": merge_law(START, beta, power),
        "plateaus": np.sum(np.square(masses), axis=1),
        "masses": np.array(masses),
    }


def velocity(angles, weights, beta, power):
    """Angular velocities sum_j w_j e^{beta (cos - 1)} sin(theta_j - theta_i), over Z_i^power.

    Written in differences of angles, where what a token does to itself is exactly zero: in coordinates of the plane
    the pull of a cluster far away, e^{-300}, is lost to the round-off of the projection.
    """
    apart = angles[None, :] - angles[:, None]
    pull = weights * np.exp(-2 * beta * np.sin(apart / 2) ** 2)
    return np.sum(pull * np.sin(apart), axis=1) / pull.sum(axis=1) ** power


def until_contact(angles, weights, beta, power):
    """A run of rows [angle | time | arc length] until two neighbours are `GLUE` apart, and its unit of time.

    Its clock is the logarithm of the gaps, d sigma = |(gap_k' / gap_k)_k| dt: one tick takes the nearest pair nearer
    by a factor e, be it in time 1 or in time e^300, and nothing is stiff or has a corner on the way to contact.
    """

    def pace(x, angular):
        return np.linalg.norm(np.diff(angular) / np.diff(x))

    unit = 1 / pace(angles, velocity(angles, weights, beta, power))

    def field(sigma, x, mu):
        angular = velocity(x[:, 0], mu.weights, beta, power)
        column = np.ones(len(x))
        rates = np.column_stack([angular, column / unit, np.linalg.norm(angular) * column])
        return rates / pace(x[:, 0], angular)

    start = mf.Measure(np.column_stack([angles, np.zeros((len(angles), 2))]), weights)
    contact = mf.Event(lambda sigma, mu: np.log(np.diff(mu.points[:, 0]).min() / GLUE), terminal=True)
    outputs = np.arange(0.0, LONGEST, TICK)
    found = mf.simulate(field, start, outputs, events=contact, progress=False)
    if found.outcome is not mf.Outcome.STOPPED:
        raise ArithmeticError(f"no two clusters met at beta = {beta}: {found.outcome.name}, {found.message}")
    return found, unit


def record(rows, tokens, beta):
    """Arrays of one phase from its rows [angle | time | arc length]; clusters spread to their tokens."""
    energy = SphereEnergy(beta)
    angles = np.empty((len(rows), len(START)))
    for k, members in enumerate(tokens):
        angles[:, members] = rows[:, k, :1]
    with np.errstate(divide="ignore"):
        log_time = np.log10(rows[:, 0, 1])
    on_circle = np.stack([np.cos(angles), np.sin(angles)], axis=-1)
    return {
        "log_time": log_time,
        "length": rows[:, 0, 2],
        "level": np.array([energy.level(mf.Measure(points)) for points in on_circle]),
        "angles": angles,
    }


def merged(angles, weights, tokens):
    """Angles and tokens with the nearest two neighbours made one, at their centre of mass."""
    k = int(np.argmin(np.diff(angles)))
    pair = slice(k, k + 2)
    centre = np.average(angles[pair], weights=weights[pair])
    return (
        np.concatenate([angles[:k], [centre], angles[k + 2 :]]),
        [*tokens[:k], tokens[k] + tokens[k + 1], *tokens[k + 2 :]],
    )


def padded(weights):
    """Masses in falling order, with zeros behind."""
    return np.pad(np.sort(weights)[::-1], (0, len(START) - len(weights)))


def merge_law(angles, beta, power):
    """log10 of the merge times if only the nearest pair ever moves: dt = e^{beta (1 - <x_i, x_j>)} ds [2509.25040].

    With u = beta (1 - cos gap) the pair at masses a, b needs the time ∫ e^u / (c u (2 - u / beta)) du, where
    c = b / Z_a + a / Z_b (Z = 1 without normalisation), and the first one goes the share b / (Z_a c) of every step.
    """
    masses, clock, logs = np.ones(len(angles)) / len(angles), -np.inf, []
    while len(angles) > 1:
        k = int(np.argmin(np.diff(angles)))
        gap, (a, b) = angles[k + 1] - angles[k], masses[k : k + 2]
        clock = np.logaddexp(clock, _log_duration(gap, a, b, beta, power))
        logs.append(clock / np.log(10))
        moved = quad(_first_share, 0, gap, args=(a, b, beta, power))[0]
        angles = np.concatenate([angles[:k], [angles[k] + moved], angles[k + 2 :]])
        masses = np.concatenate([masses[:k], [a + b], masses[k + 2 :]])
    return np.array(logs)


def _height(gap, beta):
    return 2 * beta * np.sin(gap / 2) ** 2


def _rates(u, a, b, power):
    """How fast either of a pair comes nearer, over e^{-u} sin(gap)."""
    near = np.exp(-u)
    return b / (a + b * near) ** power, a / (b + a * near) ** power


def _first_share(gap, a, b, beta, power):
    first, second = _rates(_height(gap, beta), a, b, power)
    return first / (first + second)


def _log_duration(gap, a, b, beta, power):
    top, bottom = _height(gap, beta), _height(GLUE, beta)

    def integrand(p):
        u = np.exp(p)
        return np.exp(u - top) / (sum(_rates(u, a, b, power)) * (2 - u / beta))

    middle = np.log(max(bottom, top - 40))  # what lies below weighs e^{-40}
    return top + np.log(quad(integrand, np.log(bottom), middle)[0] + quad(integrand, middle, np.log(top), epsabs=0)[0])
