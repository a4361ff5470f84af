"""Which fields are gradient flows of which energies, in which metric; and which hypothesis fails where they are not."""

from dataclasses import dataclass

import numpy as np

from ..attention.linear import LinearAttention
from ..attention.multihead import MultiHeadAttention
from ..attention.sigmoid import SigmoidAttention
from ..attention.sinkhorn import SinkhornAttention
from ..attention.softmax import SoftmaxAttention
from ..attention.unnormalised import UnnormalisedAttention
from ..spaces import Euclidean, Sphere
from ..velocity import AffineMap
from .base import Energy, symmetric
from .energies import InteractionEnergy, QuadraticEnergy, SigmoidEnergy, SinkhornEnergy, SphereEnergy
from .metric import HeadsMobility, SoftmaxMobility, TwistedMetric, UnitMobility
from .multihead import MultiHeadEnergy

#: Matrices agree, and equations between them hold, up to this much of their largest entry.
ROUND_OFF = 1e-10


@dataclass(frozen=True, eq=False)
class GradientField:
    """The velocity sign H grad dE/dmu: the steepest path of an energy in W_2 (H = I), as a field for `simulate`.

    Parameters
    ----------
    energy : Energy
    sign : float
        -1 descends, +1 climbs.
    """

    energy: Energy
    sign: float = -1.0

    def __post_init__(self):
        if not isinstance(self.energy, Energy) or self.sign not in (-1, 1):
            raise ValueError(
                f"GradientField takes an Energy and a sign, +1 or -1; got {type(self.energy).__name__}, {self.sign!r}."
            )

    def __call__(self, t, x, mu):
        """Velocities at the points x (m, d)."""
        return self.sign * self.energy.at(t).gradient(mu, x)

    def on_gaussian(self, t, law):
        """The affine map, for energies with an affine gradient."""
        affine = self.energy.at(t).affine_gradient(law)
        return AffineMap(self.sign * affine.matrix, self.sign * affine.offset)


def mobility_matrix(values, matrices):
    """The symmetric definite H with V = H A for all pairs (V, A); |H| is V A^{-1} where A is invertible.

    Where the A have a common kernel, H is not unique there; the metric on velocities V y does not depend on it.

    Parameters
    ----------
    values, matrices : list of ndarray, shape (d, d) each
        V and symmetric A.

    Returns
    -------
    ndarray, shape (d, d)

    Raises
    ------
    ValueError
        Names the hypothesis that fails: A symmetric; V = H A solvable; V A^{-1} symmetric; V A^{-1} definite.
    """
    for A in matrices:
        if not symmetric(A):
            raise ValueError(
                "a gradient structure needs A symmetric: the energy sees only the symmetric kernel; got a difference "
                f"of {np.abs(A - A.T).max():.3g} from its transpose. Choose query = K and value = H A, H definite."
            )
    A, V = np.concatenate(matrices, axis=1), np.concatenate(values, axis=1)
    U, s, Wt = np.linalg.svd(A)
    rank = int(np.sum(s > ROUND_OFF * s[0])) if s[0] > 0 else 0
    U, N, Wt = U[:, :rank], U[:, rank:], Wt[:rank]
    HU = (V @ Wt.T) / s[:rank]
    size = np.abs(V).max()
    missed = np.abs(HU @ (U.T @ A) - V).max()
    if missed > ROUND_OFF * size:
        raise ValueError(
            f"V = H A must have a solution H, one for all heads; the best H misses V by {missed:.3g} "
            "(V must vanish on the kernel of A, and heads must share V A^{-1}). Choose V = H A with one definite H."
        )
    core = U.T @ HU
    if np.abs(core - core.T).max(initial=0.0) > 100 * ROUND_OFF * np.abs(core).max(initial=0.0):
        raise ValueError(
            "V A^{-1} must be symmetric (on the range of A); got a difference of "
            f"{np.abs(core - core.T).max():.3g} from its transpose. Choose V = H A with H symmetric and definite."
        )
    eigenvalues = np.linalg.eigvalsh((core + core.T) / 2)
    if rank and not eigenvalues[0] * eigenvalues[-1] > 0:
        raise ValueError(
            f"V A^{{-1}} must be definite; got eigenvalues from {eigenvalues[0]:.6g} to {eigenvalues[-1]:.6g}. "
            "The flow climbs in some directions and descends in others."
        )
    if not rank:
        return np.eye(len(A))
    cross = N.T @ HU
    rest = cross @ np.linalg.solve(core, cross.T) + eigenvalues.mean() * np.eye(N.shape[1])
    H = U @ core @ U.T + N @ cross @ U.T + U @ cross.T @ N.T + N @ rest @ N.T
    return (H + H.T) / 2


def _single(multiplier, mobility):
    """The rule of a one-head field with velocity ``multiplier * H grad E / mobility`` when V = H A."""

    def rule(field, energy, t, d):
        head = field.head.at(t)
        A, factor = _energy_matrix(energy, d)
        _same_matrix(A, head.A)
        return TwistedMetric(multiplier / factor * mobility_matrix([head.value], [A]), mobility(A))

    return rule


def _energy_matrix(energy, d):
    """The matrix A of an energy and its multiple of the plain one."""
    if isinstance(energy, SphereEnergy):
        return energy.beta * np.eye(d), 1 / energy.beta
    return energy.A, getattr(energy, "factor", 1.0)


def _same_matrix(energy_matrix, head_matrix):
    if energy_matrix.shape != head_matrix.shape:
        raise ValueError(f"the energy has A of shape {energy_matrix.shape}, the head of shape {head_matrix.shape}.")
    gap = np.abs(energy_matrix - head_matrix).max()
    if gap > ROUND_OFF * np.abs(head_matrix).max():
        raise ValueError(
            f"the energy must be made of the head's own A = scale K^T Q; they differ by {gap:.3g}. "
            "Use the energy of the head, e.g. InteractionEnergy(head)."
        )


def _sigmoid(field, energy, t, d):
    if field.bias != energy.bias:
        raise ValueError(f"field and energy must have one bias; got {field.bias:g} and {energy.bias:g}.")
    return _single(1.0, lambda A: UnitMobility())(field, energy, t, d)


def _heads(field, energy, t, d):
    attentions, parts = field.fields, energy.at(t).parts
    if not all(type(attention) is SoftmaxAttention for attention in attentions) or len(attentions) != len(parts):
        raise ValueError(
            f"the energy of {len(parts)} heads goes with as many softmax heads; got "
            f"{[type(attention).__name__ for attention in attentions]}."
        )
    heads = [attention.head.at(t) for attention in attentions]
    for part, head in zip(parts, heads, strict=True):
        _same_matrix(part.A, head.A)
    matrices = [part.A for part in parts]
    H = mobility_matrix([len(heads) * head.value for head in heads], matrices)
    return TwistedMetric(H, HeadsMobility(tuple(matrices)))


def _gradient(field, energy, t, d):
    if field.energy is not energy:
        raise ValueError("a GradientField goes with its own energy: dissipation(field, field.energy, trajectory).")
    return TwistedMetric(field.sign * np.eye(d))


#: How the velocity of a field is made of the gradient of an energy, by their kinds.
STRUCTURES = {
    (SoftmaxAttention, InteractionEnergy): _single(1.0, SoftmaxMobility),
    (SoftmaxAttention, SphereEnergy): _single(1.0, SoftmaxMobility),
    (UnnormalisedAttention, InteractionEnergy): _single(1.0, lambda A: UnitMobility()),
    (UnnormalisedAttention, SphereEnergy): _single(1.0, lambda A: UnitMobility()),
    (SinkhornAttention, SinkhornEnergy): _single(-1.0, lambda A: UnitMobility()),
    (LinearAttention, QuadraticEnergy): _single(1.0, lambda A: UnitMobility()),
    (SigmoidAttention, SigmoidEnergy): _sigmoid,
    (MultiHeadAttention, MultiHeadEnergy): _heads,
}


def gradient_structure(field, energy, *, t=0.0, dimension, space=Euclidean()):
    """The metric in which a field is the steepest ascent or descent of an energy.

    Parameters
    ----------
    field : velocity field
        Softmax, unnormalised, Sinkhorn, linear or sigmoid attention, several softmax heads, or a `GradientField`.
    energy : Energy
        Of the field's own A.
    t : float
        The time at which moving heads are read.
    dimension : int
    space : Euclidean or Sphere

    Returns
    -------
    TwistedMetric
        Its ``sign`` says ascent or descent. Exact for one head; for several heads it is the published candidate, and
        `dissipation` measures by how much it misses.

    Raises
    ------
    ValueError
        Names what fails: the pair has no known structure, A is not symmetric, V = H A is not solvable, V A^{-1} is not
        symmetric or not definite, or (on a sphere) is no multiple of the identity.
    """
    if isinstance(field, GradientField):
        metric = _gradient(field, energy, t, dimension)
    else:
        rule = STRUCTURES.get((type(field), type(energy)))
        if rule is None:
            known = ", ".join(f"{one.__name__} with {other.__name__}" for one, other in STRUCTURES)
            raise ValueError(
                f"{type(field).__name__} is not known to be a gradient flow of {type(energy).__name__}. "
                f"Known: {known}, and GradientField with its own energy."
            )
        metric = rule(field, energy, t, dimension)
    scalar = metric.H[0, 0] * np.eye(dimension)
    if isinstance(space, Sphere) and np.abs(metric.H - scalar).max() > ROUND_OFF * abs(metric.H[0, 0]):
        raise ValueError(
            "on a sphere V A^{-1} must be a multiple of the identity, because the projection to the tangent space "
            "commutes with nothing else. Choose V = h A, or move the tokens in Euclidean space."
        )
    return metric
