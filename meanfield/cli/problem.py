"""A problem: the field, the start and the numerics of one run, whole, so that a record of it can be run again."""

from dataclasses import dataclass, fields
from functools import cached_property

import numpy as np

from ..attention import ATTENTION, MaskedAttention, MultiHeadAttention, make_attention
from ..flows import GaussianFlow, ParticleFlow
from ..integration import METHODS, SCHEMES, Adaptive, RungeKutta
from ..measures import Gaussian, Measure
from ..parameters import Head
from ..spaces import Euclidean, Sphere
from ..velocity import affine_on_gaussian

#: What stands before the name of a variant that is masked; alone it means masked softmax.
MASKED = "masked"

#: Fixed-step schemes that drive one field (splittings need parts).
FIXED = {name: scheme for name, scheme in SCHEMES.items() if isinstance(scheme, RungeKutta)}


@dataclass(frozen=True, eq=False)
class Part:
    """One head of attention: the name of its variant, whether it is masked, its matrices, and its own options."""

    attention: str
    masked: bool
    head: Head
    options: dict

    @cached_property
    def field(self):
        """The attention field of this head."""
        inner = make_attention(self.attention, self.head, **self.options)
        return MaskedAttention(inner) if self.masked else inner


@dataclass(frozen=True, eq=False)
class Problem:
    """Everything that one run depends on.

    Parameters
    ----------
    name : str
        As it was asked for, e.g. "softmax", "masked-l2", "softmax+l2".
    parts : tuple of Part
        One a head.
    start : Measure or Gaussian
    times : ndarray, shape (k,)
    space : Euclidean or Sphere
    scheme : Adaptive or RungeKutta
    dt, max_evaluations, max_seconds : number or None
        As for `simulate`.
    origin : dict
        Where the start came from: the law or file, the seed.
    """

    name: str
    parts: tuple
    start: Measure | Gaussian
    times: np.ndarray
    space: Euclidean | Sphere
    scheme: Adaptive | RungeKutta
    dt: float | None
    max_evaluations: int | None
    max_seconds: float | None
    origin: dict

    @cached_property
    def field(self):
        """The velocity field, checked against a Gaussian start."""
        made = [part.field for part in self.parts]
        field = made[0] if len(made) == 1 else MultiHeadAttention(tuple(made))
        if isinstance(self.start, Gaussian):
            with np.errstate(all="ignore"):
                affine_on_gaussian(field, float(self.times[0]), self.start)
        return field

    @property
    def masked(self):
        """Whether the field reads positions."""
        return self.parts[0].masked

    @property
    def dimension(self):
        """Dimension of the tokens."""
        return self.parts[0].head.dimension

    def flow(self):
        """The flow that a run of this problem follows; checks that the start lies in the space."""
        if isinstance(self.start, Gaussian):
            return GaussianFlow(self.field, self.start)
        return ParticleFlow(self.field, self.start, self.space)

    def parameters(self):
        """Everything but the arrays, for the header of a record."""
        adaptive = isinstance(self.scheme, Adaptive)
        return {
            "name": self.name,
            "parts": [
                {"attention": part.attention, "masked": part.masked, "beta": part.head.scale, "options": part.options}
                for part in self.parts
            ],
            "gaussian": isinstance(self.start, Gaussian),
            "positioned": isinstance(self.start, Measure) and self.start.has_positions,
            "dimension": self.dimension,
            "radius": self.space.radius if isinstance(self.space, Sphere) else None,
            "scheme": self.scheme.method if adaptive else next(k for k, v in FIXED.items() if v == self.scheme),
            "rtol": self.scheme.rtol if adaptive else None,
            "atol": self.scheme.atol if adaptive else None,
            "max_step": self.scheme.max_step if adaptive and np.isfinite(self.scheme.max_step) else None,
            "dt": self.dt,
            "max_evaluations": self.max_evaluations,
            "max_seconds": self.max_seconds,
            "start": self.origin,
        }

    def arrays(self):
        """The arrays that the run depends on."""
        found = {"output_times": self.times}
        for k, part in enumerate(self.parts, 1):
            found |= {f"head_{k}_{name}": getattr(part.head, name) for name in ("query", "key", "value")}
        if isinstance(self.start, Gaussian):
            return found | {"start_mean": self.start.mean, "start_covariance": self.start.covariance}
        return found | {"start_points": self.start.points, "weights": self.start.weights}


def problem_from(parameters, arrays):
    """The problem that a record was made from, to the last bit."""
    parts = tuple(
        Part(
            each["attention"],
            each["masked"],
            Head(*(arrays[f"head_{k}_{name}"] for name in ("query", "key", "value")), scale=each["beta"]),
            each["options"],
        )
        for k, each in enumerate(parameters["parts"], 1)
    )
    if parameters["gaussian"]:
        start = Gaussian(arrays["start_mean"], arrays["start_covariance"])
    else:
        start = _same_measure(arrays["start_points"], arrays["weights"], parameters["positioned"])
    return Problem(
        name=parameters["name"],
        parts=parts,
        start=start,
        times=arrays["output_times"],
        space=Euclidean() if parameters["radius"] is None else Sphere(parameters["radius"]),
        scheme=scheme_of(parameters["scheme"], **{key: parameters[key] for key in ("rtol", "atol", "max_step")}),
        **{key: parameters[key] for key in ("dt", "max_evaluations", "max_seconds")},
        origin=parameters["start"],
    )


def _same_measure(points, weights, positioned):
    """A checked measure with exactly these weights: scaling them once more could move a last bit."""
    measure = Measure(points, weights, has_positions=positioned)
    object.__setattr__(measure, "weights", weights)
    weights.setflags(write=False)
    return measure


def scheme_of(name, *, rtol=None, atol=None, max_step=None):
    """The scheme of a registered name: an adaptive method with its tolerances, or a fixed step."""
    given = {key: value for key, value in (("rtol", rtol), ("atol", atol), ("max_step", max_step)) if value is not None}
    if name in METHODS:
        return Adaptive(name, **given)
    if given:
        raise ValueError(
            f"{', '.join('--' + key.replace('_', '-') for key in given)} must go with an adaptive scheme "
            f"({', '.join(METHODS)}); got the fixed-step {name}. Its step is --dt."
        )
    return FIXED[name]


def parse_attention(name):
    """Pairs (variant, masked), one a head, from "softmax", "masked", "masked-l2" or "softmax+l2".

    Raises
    ------
    ValueError
        If a variant is not registered, or only some of the heads are masked.
    """
    found = []
    for word in name.split("+"):
        word = word.strip().lower()
        masked = word == MASKED or word.startswith(f"{MASKED}-")
        variant = (word.removeprefix(MASKED).removeprefix("-") or next(iter(ATTENTION))) if masked else word
        if variant not in ATTENTION:
            raise ValueError(
                f"attention must be one of {', '.join(ATTENTION)}, {MASKED}-NAME, or several heads NAME+NAME; "
                f"got {name!r}."
            )
        found.append((variant, masked))
    if len({masked for _, masked in found}) > 1:
        raise ValueError(f"heads must be all masked or none; got {name!r}. Write {MASKED}- before each name.")
    return found


def options_of(variant):
    """Names of the options that a registered variant takes."""
    return [field.name for field in fields(ATTENTION[variant]) if field.init and field.kw_only]
