"""Small results to draw: runs of tokens and of Gaussians, made once."""

from functools import cache

import numpy as np

import meanfield as mf


@cache
def tokens(n, d, k=4):
    """A softmax run of n tokens of d coordinates, at k times."""
    start = mf.Measure(np.random.default_rng(7).uniform(-1, 1, (n, d)))
    return mf.simulate(mf.SoftmaxAttention(mf.Head.identity(d, 1.0)), start, np.linspace(0, 1, k), progress=False)


@cache
def gaussian(rank, d=2, k=4):
    """A softmax run of a Gaussian of a given rank that flattens."""
    start = mf.Gaussian(np.arange(1.0, d + 1), np.diag([1.0] * rank + [0.0] * (d - rank)))
    head = mf.Head(np.eye(d), -np.eye(d), np.eye(d))
    return mf.simulate(mf.SoftmaxAttention(head), start, np.linspace(0, 1, k), progress=False)


@cache
def blown_up(kind):
    """A run that ends at a pole: linear attention on tokens of one coordinate, or a Gaussian under softmax."""
    head = mf.Head.identity(1, 1.0)
    if kind == "tokens":
        field, start = mf.LinearAttention(head), mf.Measure([[1.0], [-2.0], [0.5]])
    else:
        field, start = mf.SoftmaxAttention(head), mf.Gaussian([0.5], [[1.0]])
    run = mf.simulate(field, start, np.linspace(0, 5, 51), progress=False)
    assert run.outcome is mf.Outcome.BLEW_UP
    return run


def drawn(figure):
    """The figure after its layout is settled and everything is drawn once."""
    figure.draw_without_rendering()
    return figure
