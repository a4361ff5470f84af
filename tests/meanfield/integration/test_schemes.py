"""Fixed-step schemes: the order each one states, over the registry, and the number of steps."""

import numpy as np
import pytest
from scipy.linalg import expm

from meanfield import (
    EULER,
    HEUN,
    RK4,
    SCHEMES,
    AffinePerceptron,
    Gaussian,
    GaussianFlow,
    Head,
    LieTrotter,
    LinearAttention,
    Measure,
    Outcome,
    ParticleFlow,
    SoftmaxAttention,
    Sphere,
    SplitFlow,
    Strang,
    integrate,
    simulate,
)
from meanfield.integration import RungeKutta
from tests.orders import scheme_order

#: A measured slope may miss the order by this much: the next term of the error is one power of dt smaller.
WINDOW = 0.3

FIRST, SECOND = np.array([[0.0, 2.0], [0.0, -0.3]]), np.array([[0.1, 0.0], [-1.5, 0.0]])


def symmetric_root(S):
    values, vectors = np.linalg.eigh(S)
    return (vectors * np.sqrt(values)) @ vectors.T


def flow_map(S0, A, t):
    """F(t) with Sigma(t) = F S0 F^T for V = I and symmetric A [1.3.4]."""
    root = symmetric_root(S0)
    values, vectors = np.linalg.eigh(np.eye(len(A)) - 2 * t * root @ A @ root)
    return root @ (vectors / np.sqrt(values)) @ vectors.T @ np.linalg.inv(root)


class Share:
    """A fixed share of a field, so that a splitting has two parts of one exactly solved problem."""

    def __init__(self, field, share):
        self.field, self.share = field, share

    def __call__(self, t, x, mu):
        return self.share * self.field(t, x, mu)

    def on_gaussian(self, t, law):
        affine = self.field.on_gaussian(t, law)
        return type(affine)(self.share * affine.matrix, self.share * affine.offset)


def prepared(scheme, make, field):
    """The flow that ``make(field)`` gives, cut into two parts for a splitting."""
    if isinstance(scheme, RungeKutta):
        return make(field)
    return SplitFlow((make(Share(field, 0.25)), make(Share(field, 0.75))))


@pytest.mark.parametrize("name", SCHEMES)
def test_the_stated_order_holds_for_particles_under_linear_attention(name):
    scheme, A = SCHEMES[name], np.array([[-0.6, 0.2], [0.2, 0.3]])
    start = Measure(1.5 * np.array([[1.0, 0.2], [-0.4, 0.9], [0.3, -0.7]]))
    moment = start.points.T @ start.points / 3
    flow = prepared(scheme, lambda f: ParticleFlow(f, start), LinearAttention(Head(A, np.eye(2), np.eye(2))))
    order = scheme_order(scheme, flow, start.points, start.points @ flow_map(moment, A, 1.0).T, count=4)
    assert order == pytest.approx(scheme.order, abs=WINDOW)


@pytest.mark.parametrize("name", SCHEMES)
def test_the_stated_order_holds_for_gaussians_under_softmax_attention(name):
    scheme, A = SCHEMES[name], np.array([[-0.6, 0.2], [0.2, 0.3]])
    law = Gaussian([0.5, -1.0], [[1.0, 0.3], [0.3, 0.5]])
    flow = prepared(scheme, lambda f: GaussianFlow(f, law), SoftmaxAttention(Head(A, np.eye(2), np.eye(2))))
    y, F = flow.pack(law), flow_map(law.covariance, A, 1.0)
    exact = F @ y
    exact[:, 0] *= np.e
    assert scheme_order(scheme, flow, y, exact, count=8) == pytest.approx(scheme.order, abs=WINDOW)


@pytest.mark.parametrize("name", SCHEMES)
def test_the_stated_order_holds_when_the_field_depends_on_time(name):
    # x' = x^2 cos t has 1/x = 1/x0 - sin t; the two parts of a splitting commute in x but not in t.
    scheme, start = SCHEMES[name], Measure([[0.5], [-2.0]])
    if isinstance(scheme, RungeKutta):
        flow = ParticleFlow(lambda t, x, mu: x**2 * np.cos(t), start)
    else:
        early = ParticleFlow(lambda t, x, mu: x**2 * (np.cos(t) - t), start)
        flow = SplitFlow((early, ParticleFlow(lambda t, x, mu: x**2 * t, start)))
    exact = 1 / (1 / start.points - np.sin(1.0))
    assert scheme_order(scheme, flow, start.points, exact) == pytest.approx(scheme.order, abs=WINDOW)


@pytest.mark.parametrize("name", SCHEMES)
def test_the_stated_order_holds_on_the_sphere(name):
    # beta = 0, V = I, two tokens on a circle of radius 1: the cosine of their angle is tanh(t) [a user's report].
    scheme, start = SCHEMES[name], Measure([[1.0, 0.0], [0.0, 1.0]])
    field = SoftmaxAttention(Head.identity(2, beta=0.0))
    flow = prepared(scheme, lambda f: ParticleFlow(f, start, Sphere()), field)
    half = np.arccos(np.tanh(1.0)) / 2
    angles = np.array([np.pi / 4 - half, np.pi / 4 + half])
    exact = np.column_stack([np.cos(angles), np.sin(angles)])
    assert scheme_order(scheme, flow, start.points, exact, count=4) == pytest.approx(scheme.order, abs=WINDOW)


@pytest.mark.parametrize("scheme", [LieTrotter(), LieTrotter(RK4), Strang(), Strang(RK4)])
def test_a_splitting_of_parts_that_do_not_commute_has_its_stated_order(scheme):
    start = Measure([[1.0, 0.5], [-0.2, 2.0]])
    flow = SplitFlow(tuple(ParticleFlow(AffinePerceptron(M), start) for M in (FIRST, SECOND)))
    exact = start.points @ expm(FIRST + SECOND).T
    assert scheme_order(scheme, flow, start.points, exact) == pytest.approx(scheme.order, abs=WINDOW)


def test_strang_drops_to_order_one_when_only_one_part_projects():
    # The last half step leaves the sphere by about dt / 2 times the radial part of the velocity.
    start = Measure(Sphere().retract(np.array([[1.0, 0.2], [0.3, -1.0]])))
    parts = ParticleFlow(AffinePerceptron(FIRST), start), ParticleFlow(AffinePerceptron(SECOND), start, Sphere())
    fine = simulate(AffinePerceptron(FIRST + SECOND), start, [0.0, 1.0], space=Sphere())
    order = scheme_order(Strang(), SplitFlow(parts), start.points, fine[-1].points)
    assert order == pytest.approx(1, abs=WINDOW)


@pytest.mark.parametrize("name", SCHEMES)
def test_no_scheme_of_the_registry_changes_its_input(name):
    scheme, start = SCHEMES[name], Measure([[1.0, 0.5]])
    flow = prepared(scheme, lambda f: ParticleFlow(f, start), AffinePerceptron(FIRST))
    y = start.points.copy()
    scheme(flow, 0.0, y, 0.1)
    np.testing.assert_array_equal(y, start.points)


def test_the_first_stage_is_not_retracted_and_the_result_is():
    asked = []

    def field(t, x, mu):
        asked.append(x.copy())
        return np.array([[0.0, 1.0]])

    flow = ParticleFlow(field, Measure([[1.0, 0.0]]), Sphere())
    off = np.array([[2.0, 0.0]])
    y = HEUN(flow, 0.0, off, 0.5)
    assert asked[0].tolist() == [[2.0, 0.0]]
    # Round-off of one division by a norm.
    assert np.linalg.norm(asked[1]) == pytest.approx(1, abs=4e-16)
    assert np.linalg.norm(y) == pytest.approx(1, abs=4e-16)


@pytest.mark.parametrize(
    ("T", "dt", "steps", "value"),
    # In floating point 0.3 / 0.1 lies below three and (0.1 + 0.2) / 0.1 above.
    [(0.3, 0.1, 3, 1.1**3), (0.1 + 0.2, 0.1, 3, 1.1**3), (1.0, 0.1, 10, 1.1**10), (1.0, 0.3, 4, 1.25**4)],
)
def test_euler_takes_the_fewest_equal_steps_up_to_round_off(T, dt, steps, value):
    # One softmax token has x' = x, so a step of size h multiplies by 1 + h [a user's report].
    run = simulate(SoftmaxAttention(Head.identity(1)), Measure([[1.0]]), [0.0, T], scheme=EULER, dt=dt)
    assert run.statistics.steps == steps
    assert run.times[-1] == T
    assert run[-1].points[0, 0] == pytest.approx(value, rel=1e-14)


def test_output_times_cut_the_steps_and_are_hit_exactly():
    run = simulate(SoftmaxAttention(Head.identity(1)), Measure([[1.0]]), [0.0, 0.25, 1.0], scheme=EULER, dt=0.5)
    assert run.statistics.steps == 3
    assert run.arrays[:, 0, 0].tolist() == [1.0, 1.25, 1.25 * 1.375**2]


def test_a_split_step_counts_the_evaluations_of_every_part():
    start = Measure([[1.0, 0.5]])
    flow = SplitFlow(tuple(ParticleFlow(AffinePerceptron(M), start) for M in (FIRST, SECOND)))
    lie = integrate(flow, [0.0, 1.0], scheme=LieTrotter(), dt=0.1)
    strang = integrate(flow, [0.0, 1.0], scheme=Strang(), dt=0.1)
    assert lie.statistics.evaluations == 10 * 2
    # Half, whole, half: three Heun steps of two stages.
    assert strang.statistics.evaluations == 10 * 6


@pytest.mark.parametrize("scheme", [EULER, HEUN, RK4])
def test_overflow_in_a_fixed_step_is_not_finite_and_never_a_blow_up(scheme):
    run = simulate(lambda t, x, mu: x**3, Measure([[1.0]]), [0.0, 0.1, 2.0], scheme=scheme, dt=0.1)
    assert run.outcome is Outcome.NOT_FINITE
    assert run.blow_up_time is None
    assert np.isfinite(run.last.state.points).all()
    assert len(run) == 2


def test_a_mistyped_coefficient_stops_the_construction():
    with pytest.raises(ValueError, match="coefficients of HEUN do not give order 2"):
        RungeKutta("HEUN", 2, ((0.9,),), (0.5, 0.5))


def test_a_splitting_refuses_what_it_cannot_use():
    with pytest.raises(ValueError, match="Strang needs an inner scheme of order 2 or more; got EULER"):
        Strang(EULER)
    with pytest.raises(ValueError, match="LieTrotter splits a SplitFlow; this flow has no parts"):
        simulate(AffinePerceptron(FIRST), Measure([[1.0, 0.5]]), [0.0, 1.0], scheme=LieTrotter(), dt=0.1)
