"""From a flow to a trajectory: schemes, events, the loop, and the front door."""

from .adaptive import METHODS, Adaptive
from .events import Event
from .integrate import integrate
from .schemes import EULER, HEUN, RK4, SCHEMES, LieTrotter, RungeKutta, Strang
from .simulate import simulate
from .trajectory import Moment, Outcome, Statistics, Trajectory

__all__ = [
    "EULER",
    "HEUN",
    "METHODS",
    "RK4",
    "SCHEMES",
    "Adaptive",
    "Event",
    "LieTrotter",
    "Moment",
    "Outcome",
    "RungeKutta",
    "Statistics",
    "Strang",
    "Trajectory",
    "integrate",
    "simulate",
]
