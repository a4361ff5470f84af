"""The detector of finite-time blow-up, which reads how a run ended and never takes one kind of data for another."""

from dataclasses import dataclass

import numpy as np

from ..integration.trajectory import Outcome
from ..measures import Gaussian
from ..verdict import Verdict


@dataclass(frozen=True)
class BlowUpDetector:
    """Says whether a run blew up in finite time, and when.

    Called with a trajectory it returns a `Verdict` of kind "blow-up". True comes from a pole that the adaptive
    integrator confirmed; False means that the run reached its last output time; a run that ended in any other way is
    undecided (None). Blow-up of a Gaussian says nothing of finitely many tokens: softmax, L2, Sinkhorn and sigmoid
    tokens never blow up, since max|x| <= e^{|V|t} max|x(0)| [CACP25]; the evidence names the kind of data.
    """

    def __call__(self, trajectory):
        """Judge a trajectory."""
        outcome = trajectory.outcome
        last = trajectory.last.state
        gaussian = isinstance(last, Gaussian)
        happened = {Outcome.BLEW_UP: True, Outcome.FINISHED: False}.get(outcome)
        evidence = {
            "data": "Gaussian" if gaussian else f"{len(last)} tokens",
            "outcome": outcome.name,
            "reason": trajectory.message or f"reached t = {trajectory.times[-1]:g}",
            "last_time": trajectory.last.time,
            "growth": _size(last) / max(_size(trajectory[0]), np.finfo(float).tiny),
        }
        if happened is None and outcome is not Outcome.STOPPED:
            evidence["reason"] += " A pole was not confirmed before that."
        return Verdict("blow-up", happened, trajectory.blow_up_time, evidence)


def _size(state):
    """Largest coordinate of the tokens, or largest entry of the square root of a Gaussian's covariance, in size."""
    array = state.root if isinstance(state, Gaussian) else state.tokens
    return float(np.abs(array).max(initial=0.0))
