"""From settings to problems: dimension, heads, start and scheme are found and fitted to one another."""

from pathlib import Path

import numpy as np

from ..integration import METHODS
from ..measures import Gaussian, Measure
from ..parameters import Head
from ..spaces import Euclidean, Sphere
from ..velocity import NotGaussianError
from .laws import LAWS
from .problem import Part, Problem, options_of, parse_attention, scheme_of
from .tokens import READERS, Tokens, read_tokens

#: Dimension and number of tokens where nothing says otherwise.
DIMENSION, TOKENS = 2, 64


def problems_from(settings, names, *, gaussian):
    """One problem a variant, all from the same start.

    Parameters
    ----------
    settings : dict
        From `settings_from`.
    names : list of str
        Variants as they were asked for.
    gaussian : bool
        Whether the start is a Gaussian, by its mean and covariance or by the moments of a file.

    Returns
    -------
    list of Problem
        Fields, starts and spaces checked.
    """
    parsed = {name: parse_attention(name) for name in names}
    _refuse_stray_options(settings["set"], [variant for parts in parsed.values() for variant, _ in parts])
    source = settings["moments"] if gaussian else settings["start"]
    label = "--moments" if gaussian else "--start"
    tokens = _tokens(label, source, settings, law_allowed=not gaussian)
    d = _dimension(settings, source, tokens)
    scheme = scheme_of(settings["scheme"], **{key: settings[key] for key in ("rtol", "atol", "max_step")})
    _check_dt(settings)
    space = Euclidean() if gaussian else _space(settings)
    if gaussian:
        law, origin = _gaussian(settings, tokens, d)
    else:
        tokens, origin = _drawn(settings, tokens, d, space)
    found = []
    for name, parts in parsed.items():
        start = law if gaussian else _measure(tokens, parts[0][1])
        problem = Problem(
            name=name,
            parts=_heads(settings, parts, d),
            start=start,
            times=settings["times"],
            space=space,
            scheme=scheme,
            **{key: settings[key] for key in ("dt", "max_evaluations", "max_seconds")},
            origin=origin,
        )
        _check_flow(problem)
        found.append(problem)
    return found


def _check_flow(problem):
    """Fields, start and space fit; a field without a Gaussian reduction is told the way out on this command line."""
    try:
        problem.flow()
    except NotGaussianError as error:
        reason = str(error).partition(" Simulate a sample")[0]
        raise ValueError(
            f"{reason} Move a sample of tokens instead: meanfield simulate {problem.name} --start gaussian."
        ) from error


def _tokens(label, source, settings, *, law_allowed):
    """The tokens of a file, or None for a law."""
    is_file = source is not None and Path(source).suffix.lower() in READERS
    if not is_file and source is not None and (source not in LAWS or not law_allowed):
        laws = f"a law ({', '.join(LAWS)}) or " if law_allowed else ""
        raise ValueError(f"{label} must be {laws}a file of tokens ({', '.join(READERS)}); got {source!r}.")
    for key in ("columns", "normalise"):
        if settings.get(key) and not is_file:
            raise ValueError(f"--{key} must go with a file of tokens; got none. Name it with {label} FILE.")
    if not is_file:
        return None
    for key in ("tokens", "spread"):
        if settings.get(key) is not None:
            raise ValueError(f"--{key} must go with a law that is drawn from; got the file {source}. Leave it out.")
    return read_tokens(label, source, columns=settings.get("columns"), normalise=settings.get("normalise", False))


def _dimension(settings, source, tokens):
    """The dimension that everything given agrees on."""
    clues = {}
    if settings["dimension"] is not None:
        clues["--dimension"] = settings["dimension"]
    if tokens is not None:
        clues[source] = tokens.points.shape[1]
    if settings.get("mean") is not None:
        clues["--mean"] = len(settings["mean"])
    for key in ("covariance", "query", "key", "value"):
        value = settings.get(key)
        for item in value if isinstance(value, list) else [value]:
            if isinstance(item, np.ndarray):
                clues[f"--{key}"] = item.shape[-1]
    if len(set(clues.values())) > 1:
        said = ", ".join(f"{name} has {d}" for name, d in clues.items())
        raise ValueError(f"everything must have one dimension; {said}. Columns of Q, K and V count coordinates.")
    return next(iter(clues.values()), DIMENSION)


def _heads(settings, parts, d):
    """One Part a head; a single matrix, or a single variant, serves all heads."""
    beta = settings["beta"] or [1.0]
    matrices = {key: _stack(settings[key], d) for key in ("query", "key", "value")}
    counts = {"variants": len(parts), "beta": len(beta), **{key: len(found) for key, found in matrices.items()}}
    heads = max(counts.values())
    if set(counts.values()) - {1, heads}:
        said = ", ".join(f"{count} for {key}" for key, count in counts.items())
        raise ValueError(f"every head must have its variant, beta and matrices, or share one; got {said}.")
    for key, rows, kind in (("query", None, "as many rows as K"), ("value", d, f"{d} rows")):
        for own, other in zip(*_same_length(matrices[key], matrices["key"]), strict=True):
            if len(own) != (len(other) if rows is None else rows):
                raise ValueError(
                    f"--{key} must have {kind}; got {len(own)} rows, and K has {len(other)}. "
                    "Q and K are k x d, V is d x d; what is not given is the identity."
                )
    wanted = settings["set"] or {}

    def one(found, k):
        return found[k] if len(found) > 1 else found[0]

    return tuple(
        Part(
            one(parts, k)[0],
            one(parts, k)[1],
            Head(*(one(found, k) for found in matrices.values()), scale=one(beta, k)),
            {key: value for key, value in wanted.items() if key in options_of(one(parts, k)[0])},
        )
        for k in range(heads)
    )


def _same_length(first, second):
    """Both lists, one entry repeated where the other list has more."""
    longest = max(len(first), len(second))
    return [found * longest if len(found) == 1 else found for found in (first, second)]


def _stack(given, d):
    """Matrices, one a head, from numbers, matrices and stacks of matrices."""
    found = []
    for item in given or [1.0]:
        if isinstance(item, float):
            found.append(item * np.eye(d))
        else:
            found.extend(item if item.ndim == 3 else [item])
    return found


def _refuse_stray_options(wanted, variants):
    for key in wanted or {}:
        if not any(key in options_of(variant) for variant in variants):
            have = "; ".join(f"{name}: {', '.join(options_of(name)) or 'none'}" for name in dict.fromkeys(variants))
            raise ValueError(f"--set must name an option of the variant ({have}); got {key!r}.")


def _check_dt(settings):
    adaptive = settings["scheme"] in METHODS
    if adaptive and settings["dt"] is not None:
        raise ValueError(
            f"--dt must go with a fixed-step scheme; got the adaptive {settings['scheme']}. "
            "Add --scheme rk4, or limit adaptive steps with --max-step."
        )
    if not adaptive and settings["dt"] is None:
        raise ValueError(f"--scheme {settings['scheme']} must have a step; got no --dt. Add for instance --dt 0.1.")


def _space(settings):
    on_sphere = settings["space"] == "sphere"
    for key in ("radius", "retract"):
        if settings[key] and not on_sphere:
            raise ValueError(f"--{key} must go with --space sphere; got --space {settings['space']}.")
    return Sphere(settings["radius"] or 1.0) if on_sphere else Euclidean()


def _gaussian(settings, tokens, d):
    """The Gaussian start, and where it came from."""
    if (settings["covariance"] is None) == (tokens is None):
        raise ValueError(
            "a Gaussian start must come from --covariance (with --mean) or from --moments FILE, one of them; "
            f"got {'both' if tokens is not None else 'neither'}."
        )
    if tokens is not None:
        if settings["mean"] is not None:
            raise ValueError("--mean must go with --covariance; got --moments, which has its own mean. Leave one out.")
        measure = Measure(tokens.points, tokens.weights)
        return Gaussian(measure.mean, measure.covariance), {"moments": settings["moments"]}
    covariance = settings["covariance"]
    if isinstance(covariance, float):
        covariance = covariance * np.eye(d)
    mean = np.zeros(d) if settings["mean"] is None else settings["mean"]
    return Gaussian(mean, covariance), {"covariance": "given"}


def _drawn(settings, tokens, d, space):
    """The tokens of the start in the space, and where they came from."""
    on_sphere = isinstance(space, Sphere)
    if tokens is None:
        name = settings["start"] or ("sphere" if on_sphere else "uniform")
        n, seed = settings["tokens"] or TOKENS, settings["seed"] or 0
        spread = settings["spread"] or (space.radius if on_sphere else 1.0)
        rng = np.random.default_rng(np.random.SeedSequence(seed))
        tokens = Tokens(LAWS[name](n, d, spread, rng))
        origin = {"law": name, "tokens": n, "spread": spread, "seed": seed}
    else:
        origin = {"file": settings["start"], "positions": tokens.positions is not None, "seed": None}
    if settings["retract"]:
        norms = np.linalg.norm(tokens.points, axis=1)
        if norms.min() == 0:
            raise ValueError(f"--retract must find no token at the origin; token {int(norms.argmin()) + 1} is there.")
        tokens = tokens._replace(points=space.retract(tokens.points))
        origin["retracted"] = True
    elif on_sphere:
        worst = np.abs(np.linalg.norm(tokens.points, axis=1) - space.radius).max()
        if worst > 1e-6 * space.radius:
            raise ValueError(
                f"tokens must lie on the sphere of radius {space.radius:g}; one is off it by {worst:.3g}. "
                "Add --retract to scale them onto it, or set --radius."
            )
    return tokens, origin


def _measure(tokens, masked):
    """The start as the field reads it: with positions (the order of the rows where there are none) if it is masked."""
    if not masked:
        return Measure(tokens.points, tokens.weights)
    n = len(tokens.points)
    positions = np.arange(n) / n if tokens.positions is None else tokens.positions
    return Measure.positioned(positions, tokens.points, tokens.weights)
