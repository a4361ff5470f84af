"""Many Gaussians at once: the front door to the batched integrator, with an outcome and a blow-up time per instance."""

from dataclasses import dataclass

import numpy as np

from ..checks import finite_array, number, time_array
from ..flows import GaussianFlow
from ..integration.adaptive import Adaptive
from ..integration.trajectory import Moment, Outcome, Statistics, Trajectory
from ..measures import Gaussian
from ..parameters import Head
from ..velocity import SumField
from .batched import BatchedRun, narrowed

#: Evaluations after which an instance stops, unless the caller says otherwise: the batch waits for its longest run.
MAX_EVALUATIONS = 10_000


@dataclass(frozen=True, eq=False)
class EnsembleTrajectory:
    """Runs of b Gaussians over the same output times, each as far as it came.

    Parameters
    ----------
    times : ndarray, shape (k,)
    arrays : ndarray, shape (b, k, d, 1 + d)
        [mean | square root of the covariance]; NaN where ``reached`` is False, and nowhere else.
    reached : ndarray of bool, shape (b, k)
    outcomes : ndarray of Outcome, shape (b,)
    messages : ndarray of str, shape (b,)
    blow_up_times : ndarray, shape (b,)
        t*, or inf where no blow-up was met.
    last_times : ndarray, shape (b,)
    last_arrays : ndarray, shape (b, d, 1 + d)
        Where each run ended, whatever its outcome.
    evaluations, steps : ndarray of int, shape (b,)
    field : object
        With the heads of all instances.

    Notes
    -----
    ``ensemble[i]`` is instance i as a `Trajectory`.
    """

    times: np.ndarray
    arrays: np.ndarray
    reached: np.ndarray
    outcomes: np.ndarray
    messages: np.ndarray
    blow_up_times: np.ndarray
    last_times: np.ndarray
    last_arrays: np.ndarray
    evaluations: np.ndarray
    steps: np.ndarray
    field: object

    def __len__(self):
        return len(self.outcomes)

    @property
    def means(self):
        """Means, shape (b, k, d); NaN where not reached."""
        return self.arrays[..., 0]

    @property
    def covariances(self):
        """Covariances, shape (b, k, d, d); NaN where not reached."""
        root = self.arrays[..., 1:]
        return root @ np.swapaxes(root, -1, -2)

    def __getitem__(self, i):
        kept = self.reached[i]
        arrays = self.arrays[i, kept]
        flow = GaussianFlow(narrowed(self.field, i), Gaussian.from_root(arrays[0, :, 0], arrays[0, :, 1:]))
        return Trajectory(
            self.times[kept],
            arrays,
            flow,
            self.outcomes[i],
            self.messages[i],
            Moment(float(self.last_times[i]), flow.state(self.last_arrays[i])),
            float(self.blow_up_times[i]) if self.outcomes[i] is Outcome.BLEW_UP else None,
            [],
            Statistics(int(self.evaluations[i]), int(self.steps[i])),
        )


def simulate_ensemble(
    field, means, covariances, times, *, scheme=Adaptive(), max_evaluations=MAX_EVALUATIONS, stop_trace=None
):
    """Move b Gaussians along a Gaussian-preserving field, all at once.

    Parameters
    ----------
    field : object
        With ``on_gaussian``; its heads may be one for all, or batches (b, k, d), (b, d, d) with one per instance.
        Heads are constant in time.
    means : array_like, shape (b, d)
    covariances : array_like, shape (b, d, d)
        Singular ones keep their rank.
    times : array_like, shape (k,)
        The first is the start.
    scheme : Adaptive
        Its tolerances are used; the method is DOP853.
    max_evaluations : int
        Per instance; 10,000 by default, since the batch waits for its longest run. Stiff instances (huge covariance,
        fast relaxation) end LIMIT; run those with ``simulate(..., scheme=Adaptive("Radau"))``.
    stop_trace : float, optional
        End an instance, STOPPED, at the first step where the trace of its covariance passes this (the published
        scheme calls it divergence at 1e3).

    Returns
    -------
    EnsembleTrajectory
        With the same numbers as `simulate` to the tolerance, and outcomes per instance.

    Raises
    ------
    ValueError
        On shapes that do not fit, a covariance that is none, another method, or a schedule in time.
    """
    start, roots = _starts(means, covariances)
    if not isinstance(scheme, Adaptive) or scheme.method != "DOP853":
        raise ValueError(f"simulate_ensemble steps with Adaptive('DOP853'); got {scheme!r}. Use simulate for others.")
    max_evaluations = number("max_evaluations", max_evaluations, at_least=1, integer=True)
    _check_heads(field, len(start))
    times = time_array("times", times)
    stop_trace = np.inf if stop_trace is None else number("stop_trace", stop_trace, above=0)
    return EnsembleTrajectory(
        times, field=field, **BatchedRun(field, start, roots, times, scheme, max_evaluations, stop_trace).go()
    )


def _starts(means, covariances):
    means = finite_array("means", means, ndim=2)
    covariances = finite_array("covariances", covariances, ndim=3)
    b, d = means.shape
    if covariances.shape != (b, d, d) or 0 in (b, d):
        raise ValueError(
            f"means (b, d) and covariances (b, d, d) must fit; got shapes {means.shape} and {covariances.shape}."
        )
    size = np.abs(covariances).max(axis=(1, 2))
    asymmetry = np.abs(covariances - np.swapaxes(covariances, 1, 2)).max(axis=(1, 2))
    values, vectors = np.linalg.eigh((covariances + np.swapaxes(covariances, 1, 2)) / 2)
    wrong = (asymmetry > 1e-10 * size) | (values[:, 0] < -1e-10 * size)
    if wrong.any():
        i = int(np.argmax(wrong))
        raise ValueError(
            f"covariances must be symmetric and positive semi-definite; number {i} differs from its transpose by "
            f"{asymmetry[i]:g} and has eigenvalue {values[i, 0]:g}. Build it as L @ L.T."
        )
    kept = values > d * np.finfo(float).eps * np.maximum(values[:, -1:], 0)
    return means, vectors * np.sqrt(np.where(kept, values, 0.0))[:, None, :]


def _check_heads(field, b):
    for part in field.fields if isinstance(field, SumField) else (field,):
        head = getattr(part, "head", None)
        if head is None:
            continue
        if not isinstance(head, Head):
            raise ValueError(
                f"simulate_ensemble needs heads that are constant in time; got a {type(head).__name__}. "
                "Run the instances one by one with simulate, or with run_cases."
            )
        if head.query.ndim > 3 or (head.query.ndim == 3 and len(head.query) != b):
            raise ValueError(f"a batch of heads must have shape ({b}, k, d), one a law; got {head.query.shape}.")
