"""Named laws that a start is drawn from: one function a law, one line in the registry."""

import numpy as np


def uniform(n, d, spread, rng):
    """uniform in the cube [-spread, spread]^d"""
    return rng.uniform(-spread, spread, (n, d))


def gaussian(n, d, spread, rng):
    """normal with covariance spread^2 I"""
    return spread * rng.standard_normal((n, d))


def sphere(n, d, spread, rng):
    """uniform on the sphere of radius spread"""
    x = rng.standard_normal((n, d))
    return spread * x / np.linalg.norm(x, axis=1, keepdims=True)


def ball(n, d, spread, rng):
    """uniform in the ball of radius spread"""
    return sphere(n, d, spread, rng) * rng.uniform(size=(n, 1)) ** (1 / d)


def hemisphere(n, d, spread, rng):
    """uniform on the half of the sphere of radius spread whose last coordinate is not negative"""
    x = sphere(n, d, spread, rng)
    x[:, -1] = np.abs(x[:, -1])
    return x


#: Laws by name, each called as law(n, d, spread, rng) -> points (n, d); its docstring is its line in the help.
LAWS = {"uniform": uniform, "gaussian": gaussian, "sphere": sphere, "ball": ball, "hemisphere": hemisphere}
