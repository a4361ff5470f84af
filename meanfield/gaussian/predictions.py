"""What is proved of a Gaussian under given parameters: global or blow-up, when, and of which rank the limit is.

A rule is a function (field, law) -> Verdict or None; `RULES` lists them by field, strongest first. A rule claims only
what its source proves; when none speaks, the verdict is undecided.
"""

import math

import numpy as np

from ..attention.l2 import L2Attention
from ..attention.linear import LinearAttention
from ..attention.multihead import MultiHeadAttention
from ..attention.sinkhorn import SinkhornAttention
from ..attention.softmax import SoftmaxAttention
from ..measures import Gaussian
from ..parameters import Head
from ..perceptron import AffinePerceptron
from ..velocity import SumField, affine_on_gaussian
from ..verdict import Verdict
from .closed_forms_affine import AffineSolution, affine_solution
from .closed_forms_doors import ROUND_OFF, constant_head, multiple_of_identity, norm
from .closed_forms_fate import Fate, affine_fate
from .closed_forms_limits import rank_one_solution, tied_limit
from .closed_forms_poles import one_row_l2
from .closed_forms_quadratic import linear_solution, softmax_solution
from .invariants import frozen_directions, kernel_of_query, positive_value


def _verdict(happened, reason, source, *, time=None, bounds=None, rank=None, rank_bounds=None):
    """A Verdict of kind "blow-up": t* if it is exact, bounds on t*, rank of the limit or bounds on it."""
    bounds = bounds or ((math.inf, math.inf) if happened is False else (0.0, math.inf))
    if time is not None:
        bounds = (time, time)
    evidence = {"reason": reason, "source": source, "time_bounds": bounds, "limit_rank": rank}
    evidence["limit_rank_bounds"] = (rank, rank) if rank is not None else rank_bounds
    return Verdict("blow-up", happened, time, evidence)


def _attempt(solver, *arguments):
    """The closed form, or None where its conditions fail."""
    try:
        return solver(*arguments)
    except ValueError:
        return None


def _quadratic_exact(flow, source, *, what, ranks):
    """Verdict from a `QuadraticFlow`: pole, or global, with the limit rank where no rate is positive."""
    pole = flow.blow_up_time
    if math.isfinite(pole):
        return _verdict(True, f"{what}^-1 is linear in time and reaches a zero eigenvalue at t*", source, time=pole)
    rank = int((flow.rates == 0).sum()) if ranks else None
    return _verdict(False, f"{what}^-1 is linear in time and none of its eigenvalues falls", source, rank=rank)


def _definite(head, root, *, ranks):
    """V symmetric definite and A + A^T of one sign: tr(V^{-1} S) is monotone [S5, S6]."""
    sign = 1 if np.trace(head.value) > 0 else -1
    signed = Head(sign * head.query, head.key, sign * head.value, scale=head.scale)
    value = _attempt(positive_value, signed)
    if value is None:
        return None
    twice = signed.A + signed.A.T
    values, margin = np.linalg.eigvalsh(twice), ROUND_OFF * norm(signed.A)
    if values[-1] <= margin:
        law = Gaussian.from_root(np.zeros(len(root)), root)
        upper = min(root.shape[1], int((np.abs(values) <= margin).sum()))
        bounds = (frozen_directions(head, law).shape[1], upper) if ranks else None
        reason = "V is definite and A contracts: tr(|V|^-1 Sigma) does not increase, so the flow is global and bounded"
        rank = bounds[0] if bounds and bounds[0] == bounds[1] else None
        return _verdict(False, reason, "S5, S2", rank=rank, rank_bounds=bounds)
    if values[0] > margin and root.size and root.any():
        lowest = np.linalg.eigvalsh(value)[0]
        mass = float(np.trace(np.linalg.solve(value, root @ root.T)))
        latest = root.shape[1] / (values[0] * lowest**2 * mass)
        reason = "V is definite and A expands: tr(|V|^-1 Sigma)' is at least a positive multiple of its square"
        return _verdict(True, reason, "S6", bounds=(_earliest(head, root), latest))
    return None


def _earliest(head, root):
    """No blow-up before 1 / (2 |V| |A| |S0|), whatever the parameters [S6]."""
    speed = 2 * norm(head.value) * norm(head.A) * norm(root) ** 2
    return 1 / speed if speed > 0 else math.inf


def _nothing_moves(field, law):
    if norm(field.head.at(0.0).A) == 0 or not law.root.size:
        reason = "A = 0 or Sigma0 = 0: the covariance does not move"
        return _verdict(False, reason, "S1", rank=law.root.shape[1])
    return None


def _keeps_to_its_range(head, root):
    """Whether round-off beside the range of a singular start stays small up to a pole.

    A deviation beside the range grows like |L|^(lambda / v), lambda any eigenvalue of V and v those on the range.
    Where lambda outgrows v, a hypothesis that can only be checked to round-off says nothing of the law before the pole.
    """
    if root.shape[1] in (0, len(root)) or _attempt(multiple_of_identity, head) is not None:
        return True
    own = np.linalg.eigvals(np.linalg.pinv(root) @ head.value @ root).real
    sign = np.sign(own.sum())
    return bool((sign * np.linalg.eigvals(head.value).real).max() <= (sign * own).max() * (1 + ROUND_OFF))


def _softmax_exact(field, law):
    solution = _attempt(softmax_solution, field.head, law)
    if solution is not None:
        if math.isfinite(solution.flow.blow_up_time) and not _keeps_to_its_range(field.head, law.root):
            return None
        return _quadratic_exact(solution.flow, "S3, S4 [CACP25]", what="Sigma", ranks=True)
    if law.root.shape[1] != 1:
        return None
    solution = _attempt(rank_one_solution, field.head, law.root[:, 0])
    if solution is None:
        return None
    pole, rank = solution.blow_up_time, int(solution.rate == 0)
    reason = "Sigma0 = w w^T with V w = v w: w keeps its direction and |w| is explicit"
    if not math.isfinite(pole):
        return _verdict(False, reason, "S8", rank=rank)
    return _verdict(True, reason, "S8", time=pole) if _keeps_to_its_range(field.head, law.root) else None


def _softmax_definite(field, law):
    return _definite(field.head, law.root, ranks=True)


def _linear_exact(field, law):
    solution = _attempt(linear_solution, field.head, law)
    if solution is None:
        return None
    centred = not law.mean.any()
    return _quadratic_exact(solution.flow, "S12", what="M", ranks=centred)


def _linear_definite(field, law):
    moment = law.covariance + np.outer(law.mean, law.mean)
    return _definite(field.head, Gaussian(np.zeros_like(law.mean), moment).root, ranks=not law.mean.any())


def _linear_still(field, law):
    return _nothing_moves(field, law) if not law.mean.any() or norm(field.head.A) == 0 else None


def _tied(field, law):
    if _attempt(tied_limit, field.head, law) is None:
        return None
    reason = "K = -c Q and V = v I: Sigma^-1 grows by Q^T N Q, to a limit carried by ker Q"
    return _verdict(False, reason, "S4", rank=frozen_directions(field.head, law).shape[1])


def _l2_regular_key(field, law):
    head = field.head
    if head.scale < 0 or np.linalg.matrix_rank(head.key) < head.dimension:
        return None
    reason = "K has full column rank, so |B| <= |V| |Q| / sigma_min(K) and |Sigma| grows at most exponentially"
    return _verdict(False, reason, "S9")


def _l2_tied_definite(field, law):
    head = field.head
    value = _attempt(positive_value, head)
    weight = float((head.query * head.query).sum())
    if value is None or head.scale <= 0 or weight == 0:
        return None
    c = -float((head.query * head.key).sum()) / weight
    if c <= 0 or norm(head.key + c * head.query) > ROUND_OFF * norm(head.key):
        return None
    low, high = frozen_directions(head, law).shape[1], min(law.root.shape[1], kernel_of_query(head).shape[1])
    reason = "K = -c Q and V symmetric positive definite: tr(V^-1 Sigma) decreases unless Q Sigma = 0"
    source = "S5, S2"
    return _verdict(False, reason, source, rank=low if low == high else None, rank_bounds=(low, high))


def _l2_one_row(field, law):
    solution = _attempt(one_row_l2, field.head, law)
    if solution is None:
        return None
    reason = "Q and K of one row with V^T k = 0 and V^T q = nu q: Sigma is explicit"
    pole = solution.blow_up_time
    return _verdict(math.isfinite(pole), reason, "S9", time=pole if math.isfinite(pole) else None)


def _sinkhorn_global(field, law):
    return _verdict(False, "|C| <= |Sigma|, so |Sigma(t)| <= |Sigma0| e^(2 |V| t): never a blow-up", "S10")


def _affine_alone(field, law):
    return _verdict(False, "x' = W x + b is linear", "elementary")


def _heads_with_scalar_values(field, law):
    """Softmax heads with V_h = v_h I act as one with A = sum_h v_h A_h; affine parts add up to one W."""
    heads = [part.head for part in field.fields if type(part) is SoftmaxAttention]
    drifts = [part.matrix for part in field.fields if type(part) is AffinePerceptron]
    if not heads or len(heads) + len(drifts) < len(field.fields) or not all(isinstance(h, Head) for h in heads):
        return None
    values = [_attempt(multiple_of_identity, head) for head in heads]
    if None in values:
        return None
    d = law.dimension
    one = Head(sum(v * head.A for v, head in zip(values, heads, strict=True)), np.eye(d), np.eye(d))
    if not drifts:
        return _softmax_exact(SoftmaxAttention(one), law)
    return _affine_verdict(affine_solution(one, sum(drifts), law), affine_fate(one, sum(drifts), law), law)


def _affine_verdict(solution: AffineSolution, found, law):
    source = "S13"
    if found.fate is Fate.BLOWS_UP:
        return _verdict(True, found.reason, source, time=found.blow_up_time)
    if found.fate is not Fate.UNDECIDED:
        rank = {Fate.CONVERGES: law.dimension, Fate.VANISHES: 0, Fate.STAYS: law.root.shape[1]}.get(found.fate)
        return _verdict(False, found.reason, source, rank=rank)
    if np.linalg.eigvalsh(solution.quadratic)[-1] <= ROUND_OFF * norm(solution.quadratic):
        return _verdict(False, "v (A + A^T) <= 0: Sigma(t) <= e^(tW) Sigma0 e^(tW)^T", source)
    return None


def _bounded_parts(field, law):
    """Parts that each grow at most exponentially do so together."""
    for part in field.fields:
        constant = isinstance(getattr(part, "head", None), Head)
        bounded = type(part) is AffinePerceptron or (type(part) is SinkhornAttention and constant)
        if not bounded and not (type(part) is L2Attention and constant and _l2_regular_key(part, law) is not None):
            return None
    return _verdict(False, "every part moves Sigma at most exponentially, so their sum does", "S9, S10")


#: What may be said of each field, strongest statements first.
RULES = {
    SoftmaxAttention: (_nothing_moves, _softmax_exact, _softmax_definite),
    LinearAttention: (_linear_still, _linear_exact, _linear_definite),
    L2Attention: (_nothing_moves, _tied, _l2_tied_definite, _l2_one_row, _l2_regular_key),
    SinkhornAttention: (_tied, _sinkhorn_global),
    AffinePerceptron: (_affine_alone,),
    MultiHeadAttention: (_heads_with_scalar_values, _bounded_parts),
    SumField: (_heads_with_scalar_values, _bounded_parts),
}


def predict(field, law):
    """Whether a Gaussian blows up in finite time under a field, as far as it is proved.

    Parameters
    ----------
    field : an attention field, a feed-forward part or a sum of these
        With constant heads.
    law : Gaussian
        The start.

    Returns
    -------
    Verdict
        Of kind "blow-up". ``happened`` is True, False (global), or None (undecided); ``time`` is t* where it is known
        exactly. The evidence holds "reason" (words), "source", "time_bounds" (between which t* lies), "limit_rank" and
        "limit_rank_bounds" of the covariance as t -> infinity (None: nothing proved).

    Raises
    ------
    NotGaussianError
        For a field that does not keep Gaussians.
    """
    if not isinstance(law, Gaussian) or law.mean.ndim != 1:
        raise ValueError(f"law must be one Gaussian(mean, covariance); got {type(law).__name__}.")
    affine_on_gaussian(field, 0.0, law)
    head = getattr(field, "head", None)
    if head is None or isinstance(head, Head):
        if head is not None:
            constant_head(head)
        for rule in RULES.get(type(field), ()):
            verdict = rule(field, law)
            if verdict is not None:
                return verdict
    earliest = 0.0
    if type(field) is SoftmaxAttention and isinstance(head, Head):
        earliest = _earliest(head, law.root)
    return _verdict(None, "no statement covers these parameters", "", bounds=(earliest, math.inf))
