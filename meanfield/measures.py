"""Laws of tokens: weighted point clouds (`Measure`) and normal laws (`Gaussian`)."""

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from .checks import finite_array, mass_array, matrix_array, number, points_array


@dataclass(frozen=True, eq=False)
class Measure:
    """A discrete probability measure: tokens with masses.

    Parameters
    ----------
    points : array_like, shape (n, d)
        One token a row. For a positioned measure the rows are ``[s | x]`` (use `Measure.positioned`).
    weights : array_like, shape (n,), optional
        Masses, not negative, with sum one; zero is allowed (padding: moved along, seen by nobody). Default 1/n each.
        A sum within 1e-6 of one is taken as round-off and scaled to one.
    has_positions : bool
        Whether the first column holds positions; set by `Measure.positioned`.
    scaled_from : float
        The sum that the masses had before `Measure.normalised` scaled them; 1 if nobody did.

    Raises
    ------
    ValueError
        On empty or non-finite points and on weights that are no probability.

    Notes
    -----
    The constructor is the last place where anything is checked; the arrays are copies and read-only.
    ``np.asarray(measure)`` gives the points.
    """

    points: np.ndarray
    weights: np.ndarray | None = None
    has_positions: bool = field(default=False, kw_only=True)
    scaled_from: float = field(default=1.0, kw_only=True)

    def __post_init__(self):
        points = points_array("points", self.points)
        n = len(points)
        weights = np.full(n, 1.0 / n) if self.weights is None else mass_array("weights", self.weights, n)
        if self.has_positions and points.shape[1] < 2:
            raise ValueError(
                f"a positioned measure needs rows [s | x] of length 2 or more; got shape {points.shape}. "
                "Use Measure.positioned(positions, tokens)."
            )
        for array in (points, weights):
            array.setflags(write=False)
        object.__setattr__(self, "points", points)
        object.__setattr__(self, "weights", weights)

    @classmethod
    def positioned(cls, positions, tokens, weights=None):
        """Tokens x with positions s in [0, 1]: the measure on rows ``[s | x]`` that masked fields read.

        Parameters
        ----------
        positions : array_like, shape (n,)
            Any finite numbers are taken; only their order and ties matter to the causal mask.
        tokens : array_like, shape (n, d)
        weights : array_like, shape (n,), optional
        """
        tokens = points_array("tokens", tokens)
        positions = finite_array("positions", positions)
        if positions.shape != (len(tokens),):
            raise ValueError(
                f"positions must have shape ({len(tokens)},), one a token; got shape {positions.shape}. "
                "For the order of the rows use np.arange(n) / n."
            )
        return cls(np.column_stack([positions, tokens]), weights, has_positions=True)

    @classmethod
    def normalised(cls, points, masses):
        """The measure with weights ``masses / sum(masses)``: scaling that was asked for, noted in ``scaled_from``."""
        masses = finite_array("masses", masses, ndim=1)
        total = float(masses.sum())
        if (masses < 0).any() or total <= 0:
            raise ValueError(
                f"masses must not be negative and not all zero; got minimum {masses.min(initial=0):g}, sum {total:g}."
            )
        return cls(points, masses / total, scaled_from=total)

    def moved_to(self, points):
        """The same masses at other points, unchecked: for the inside of a run."""
        moved = object.__new__(Measure)
        moved.__dict__.update(self.__dict__, points=points)
        return moved

    def __len__(self):
        return len(self.points)

    def __array__(self, dtype=None, copy=None):
        return np.array(self.points, dtype=dtype, copy=copy)

    @property
    def positions(self):
        """Positions s, shape (n,); a ValueError if the measure has none."""
        if not self.has_positions:
            raise ValueError(
                "this measure has no positions; a masked field needs them. Use Measure.positioned(positions, tokens)."
            )
        return self.points[:, 0]

    @property
    def tokens(self):
        """The tokens without their positions, shape (n, d); the points themselves if there are no positions."""
        return self.points[:, 1:] if self.has_positions else self.points

    @property
    def dimension(self):
        """Dimension d of the tokens."""
        return self.tokens.shape[1]

    @cached_property
    def log_weights(self):
        """Logarithms of the weights, shape (n,); -inf for padding."""
        with np.errstate(divide="ignore"):
            return np.log(self.weights)

    @cached_property
    def relative_log_weights(self):
        """Log weights up to a constant that makes equal weights exactly zero, shape (n,); -inf for padding."""
        return self.log_weights - self.log_weights.max()

    @property
    def mean(self):
        """Mean of the tokens (positions left out), shape (d,)."""
        return self.weights @ self.tokens

    @property
    def centred(self):
        """The tokens measured from their mean, shape (n, d); exactly zero where all tokens with mass coincide."""
        shifted = self.tokens - self.tokens[np.argmax(self.weights > 0)]
        return shifted - self.weights @ shifted

    @property
    def covariance(self):
        """Covariance of the tokens (positions left out), divided by the total mass, shape (d, d)."""
        centred = self.centred
        return (centred.T * self.weights) @ centred


@dataclass(frozen=True, eq=False)
class Gaussian:
    """The normal law N(mean, covariance); the covariance may be singular.

    Parameters
    ----------
    mean : array_like, shape (d,)
    covariance : array_like, shape (d, d)
        Symmetric positive semi-definite up to round-off (1e-10 of its largest entry); symmetrised.

    Raises
    ------
    ValueError
        If shapes do not fit or the covariance is not symmetric or has a negative eigenvalue.
    """

    mean: np.ndarray
    covariance: np.ndarray

    def __post_init__(self):
        mean = finite_array("mean", self.mean)
        if mean.ndim != 1 or mean.size == 0:
            raise ValueError(
                f"mean must have shape (d,) with d >= 1; got shape {mean.shape}. In one dimension write [a]."
            )
        covariance = matrix_array("covariance", self.covariance, (mean.size, mean.size))
        if covariance.ndim != 2:
            raise ValueError(
                f"covariance must be one matrix; got shape {covariance.shape}. For many laws use simulate_ensemble."
            )
        size = np.abs(covariance).max()
        asymmetry = np.abs(covariance - covariance.T).max()
        if asymmetry > 1e-10 * size:
            raise ValueError(
                f"covariance must be symmetric; got a difference of {asymmetry:g} from its transpose. "
                "Use (S + S.T) / 2 if that is what you mean."
            )
        covariance = covariance / 2 + covariance.T / 2
        lowest = np.linalg.eigvalsh(covariance)[0]
        if lowest < -1e-10 * size:
            raise ValueError(
                f"covariance must be positive semi-definite; got eigenvalue {lowest:g}. "
                "Build it as L @ L.T, or project it first."
            )
        for array in (mean, covariance):
            array.setflags(write=False)
        object.__setattr__(self, "mean", mean)
        object.__setattr__(self, "covariance", covariance)

    @classmethod
    def from_root(cls, mean, root):
        """N(mean, L L^T) from a square root L of shape (..., d, r), unchecked; leading batch axes are allowed."""
        law = object.__new__(cls)
        law.__dict__.update(mean=mean, covariance=root @ np.swapaxes(root, -1, -2), root=root)
        return law

    @property
    def dimension(self):
        """Dimension d of the law."""
        return self.mean.shape[-1]

    @cached_property
    def root(self):
        """A matrix L with L L^T = covariance and as many columns as the numerical rank, shape (d, r).

        Eigenvalues below d * eps times the largest are dropped, so a singular law keeps its rank.
        """
        values, vectors = np.linalg.eigh(self.covariance)
        keep = values > self.dimension * np.finfo(float).eps * max(values[-1], 0.0)
        return vectors[:, keep] * np.sqrt(values[keep])

    def sample(self, n, rng):
        """n independent draws as a `Measure` with equal weights.

        Parameters
        ----------
        n : int
            Number of tokens, at least 1.
        rng : numpy.random.Generator
            The source of randomness; the law keeps none of its own.
        """
        n = number("n", n, at_least=1, integer=True)
        return Measure(self.mean + rng.standard_normal((n, self.root.shape[1])) @ self.root.T)
