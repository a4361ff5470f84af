"""The front door: a field, a start and output times make a trajectory."""

from ..flows import GaussianFlow, ParticleFlow
from ..measures import Gaussian, Measure
from ..spaces import Euclidean
from .adaptive import Adaptive
from .integrate import integrate


def simulate(
    field,
    start,
    times,
    *,
    space=Euclidean(),
    scheme=Adaptive(),
    dt=None,
    events=(),
    max_evaluations=None,
    max_seconds=None,
    progress=None,
):
    """Move a law of tokens along a velocity field.

    Parameters
    ----------
    field : callable
        ``field(t, x, mu) -> (m, d)``: an attention field or your own function. For a Gaussian start it needs
        ``on_gaussian`` (softmax, L2, Sinkhorn, linear, several heads of these, affine feed-forward parts).
    start : Measure or Gaussian
        A Measure moves as particles, a Gaussian by the ODEs of its mean and covariance.
    times : array_like, shape (k,)
        Output times, strictly increasing; the first is the start.
    space : Euclidean, Sphere or Positioned
        Where particles live. A measure with positions moves in Positioned(space).
    scheme : Adaptive or a fixed-step scheme
        EULER, HEUN and RK4 need ``dt``; a fixed step is a layer, not the ODE, and is never called a blow-up.
    dt : float, optional
        Largest fixed step; every output time is hit exactly.
    events : Event, function of (t, state), or a list of them
    max_evaluations, max_seconds : number, optional
        Limits; meeting one is the outcome LIMIT, with everything up to then kept. Adaptive runs stop after 100,000
        evaluations unless told otherwise.
    progress : None, False or callable
        None shows a bar on a terminal.

    Returns
    -------
    Trajectory
        With the outcome; see `Outcome`.

    Raises
    ------
    ValueError
        On bad input; NotGaussianError (a ValueError) for a Gaussian start and a field that does not keep Gaussians.
    """
    if isinstance(start, Measure):
        flow = ParticleFlow(field, start, space)
    elif isinstance(start, Gaussian):
        if not isinstance(space, Euclidean):
            raise ValueError(
                f"a Gaussian lives in Euclidean space; got {space!r}. Sample it onto the sphere: "
                "Measure(space.retract(law.sample(n, rng).points))."
            )
        flow = GaussianFlow(field, start)
    else:
        raise ValueError(
            f"start must be a Measure or a Gaussian; got {type(start).__name__}. "
            "Use Measure(points) for tokens in rows, Gaussian(mean, covariance) for a law."
        )
    return integrate(
        flow,
        times,
        scheme=scheme,
        dt=dt,
        events=events,
        max_evaluations=max_evaluations,
        max_seconds=max_seconds,
        progress=progress,
    )
