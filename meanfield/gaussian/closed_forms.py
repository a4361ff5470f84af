"""Closed forms of the Gaussian flows, every one by name; the modules beside this one say how each is found.

A closed form is an object made by a function of a constant `Head` and a start. It answers at any times since the start,
``covariance(times)`` and such, vectorised; ``blow_up_time`` is t* or inf. Times at or past t* raise a ValueError that
names t*; parameters outside the stated conditions raise a ValueError that names the condition.
"""

from .closed_forms_affine import (
    AffineSolution,
    affine_equilibrium,
    affine_precision,
    affine_solution,
    scalar_affine_blow_up_time,
)
from .closed_forms_fate import AffineFate, Fate, affine_fate
from .closed_forms_limits import RankOneSolution, rank_one_solution, softmax_limit, tied_limit
from .closed_forms_poles import OneRowL2Solution, TokenSolution, l2_counterexample_head, one_row_l2, unnormalised_token
from .closed_forms_quadratic import LinearSolution, QuadraticFlow, SoftmaxSolution, linear_solution, softmax_solution
from .closed_forms_sinkhorn import SinkhornDivergenceSolution, sinkhorn_divergence_flow
from .scalar_flows import ScalarL2Solution, ScalarSinkhornSolution, scalar_l2, scalar_sinkhorn

__all__ = [
    "AffineFate",
    "AffineSolution",
    "Fate",
    "LinearSolution",
    "OneRowL2Solution",
    "QuadraticFlow",
    "RankOneSolution",
    "ScalarL2Solution",
    "ScalarSinkhornSolution",
    "SinkhornDivergenceSolution",
    "SoftmaxSolution",
    "TokenSolution",
    "affine_equilibrium",
    "affine_fate",
    "affine_precision",
    "affine_solution",
    "l2_counterexample_head",
    "linear_solution",
    "one_row_l2",
    "rank_one_solution",
    "scalar_affine_blow_up_time",
    "scalar_l2",
    "scalar_sinkhorn",
    "sinkhorn_divergence_flow",
    "softmax_limit",
    "softmax_solution",
    "tied_limit",
    "unnormalised_token",
]
