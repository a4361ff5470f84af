"""Options of the command line, each said once: its name, how its value is read, its default and its help line."""

import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from ..checks import number
from ..integration import METHODS, Adaptive
from . import values
from .laws import LAWS
from .problem import FIXED
from .tokens import READERS

whole = partial(number, at_least=1, integer=True)
positive = partial(number, above=0)


@dataclass(frozen=True)
class Option:
    """One option ``--name``, also a key of the TOML file.

    Parameters
    ----------
    name : str
        Without the dashes.
    read : callable
        ``read(label, value) -> value``; the value is a string, or what TOML makes of it.
    help : str
    default : object
    metavar : str or None
        None makes a flag.
    repeated : bool
        May be given once a head; the value is then a list.
    """

    name: str
    read: Callable
    help: str
    default: object = None
    metavar: str | None = "X"
    repeated: bool = False

    @property
    def key(self):
        """The name as Python and TOML spell it."""
        return self.name.replace("-", "_")


SPACES = ("euclidean", "sphere")

HEAD = (
    Option("dimension", whole, "dimension d of the tokens (default: from files and matrices, else 2)", metavar="D"),
    Option("beta", number, "inverse temperature: logits are beta <Q x, K y> (default 1)", metavar="B", repeated=True),
    Option("query", values.matrix, 'Q: a number c for c I, "1,0;0,1", or a .npy file (default I)', metavar="M",
           repeated=True),
    Option("key", values.matrix, "K, likewise", metavar="M", repeated=True),
    Option("value", values.matrix, "V, likewise", metavar="M", repeated=True),
    Option("set", values.assignments, "an option of the variant, e.g. bias=-2 of sigmoid", metavar="KEY=VALUE",
           repeated=True),
)  # fmt: skip

START = (
    Option("start", values.text, f"a law ({', '.join(LAWS)}), or your own tokens ({', '.join(READERS)})",
           metavar="LAW|FILE"),
    Option("tokens", whole, "number of tokens to draw (default 64)", metavar="N"),
    Option("spread", positive, "size of the law: half side, standard deviation or radius (default 1)", metavar="R"),
    Option("seed", partial(number, at_least=0, integer=True), "seed of the draw (default 0)", metavar="K"),
    Option("columns", values.names, "columns of a .csv file that are the coordinates (default: all but weight and "
           "position)", metavar="A,B"),
    Option("normalise", values.switch, "divide the weights of a file (column weight) by their sum", False, None),
    Option("space", values.one_of(SPACES), "euclidean (default) or sphere", "euclidean", "SPACE"),
    Option("radius", positive, "radius of the sphere (default 1)", metavar="R"),
    Option("retract", values.switch, "scale the start onto the sphere", False, None),
)  # fmt: skip

LAW = (
    Option("mean", values.vector, 'mean of a Gaussian start, "0,0" (default 0)', metavar="M"),
    Option("covariance", values.matrix, "its covariance: a number c for c I, a matrix, or a .npy file", metavar="S"),
    Option("moments", values.text, "take mean and covariance of the tokens in this file instead", metavar="FILE"),
)

_USUAL = Adaptive()

RUN = (
    Option("times", values.times, "output times: T for 0 to T, start:stop:count, or t0,t1,... (default 10)", "10", "T"),
    Option("scheme", values.one_of((*METHODS, *FIXED)),
           f"adaptive: {', '.join(METHODS)}; fixed step: {', '.join(FIXED)} (default {_USUAL.method})", _USUAL.method,
           "NAME"),
    Option("dt", positive, "step of a fixed-step scheme"),
    Option("rtol", positive, f"relative tolerance of an adaptive scheme (default {_USUAL.rtol:g})"),
    Option("atol", positive, f"absolute tolerance (default {_USUAL.atol:g})"),
    Option("max-step", positive, "largest adaptive step"),
    Option("max-evaluations", whole, "stop after so many evaluations of the field", metavar="N"),
    Option("max-seconds", positive, "stop after so many seconds"),
)  # fmt: skip

REPORT = (
    Option("gap", positive, "tokens at most this far apart are one cluster (default 1%% of the start's size)"),
    Option("out", values.text, "keep the whole run in this record, a .npz file", metavar="RECORD"),
    Option("force", values.switch, "replace the record if it exists", False, None),
    Option("quiet", values.switch, "no table and no progress bar; failures are still said", False, None),
)


def settings_from(given, options, config=None):
    """Values of options: defaults, then a TOML file, then the command line; each read and checked.

    Parameters
    ----------
    given : dict of str to object
        Options of the command line that were given, by key.
    options : sequence of Option
        What the command takes.
    config : str, optional
        Name of a TOML file with the same keys; ``[[head]]`` tables hold beta, query, key and value of one head each.

    Returns
    -------
    dict
        One value a key; "attention" too if the file has it.

    Raises
    ------
    ValueError
        If a value or a key is not right; says where it stands.
    """
    found = {option.key: option.default for option in options}
    sources = [(fitted_table(config, read_toml(config), options), f" in {config}")] if config is not None else []
    sources.append((given, ""))
    return _merged(sources, options, found)


def settings_of_table(path, table, options):
    """Values of options from a table that stands in a TOML file; as `settings_from`."""
    found = {option.key: option.default for option in options}
    return _merged([(fitted_table(path, table, options), f" in {path}")], options, found)


def _merged(sources, options, found):
    """Later sources win; every value is read and checked."""
    labelled = {}
    for source, place in sources:
        for key, value in source.items():
            labelled[key] = (value, place)
    attention = labelled.pop("attention", None)
    for option in options:
        value, place = labelled.get(option.key, (option.default, ""))
        if value is not None:
            label = f"{option.key}{place}" if place else f"--{option.name}"
            found[option.key] = _read(option, label, value)
    if attention is not None:
        found["attention"] = attention[0]
    return found


def _read(option, label, value):
    if option.read is values.assignments or not option.repeated:
        return option.read(label, value)
    return [option.read(label, item) for item in (value if isinstance(value, _PerHead | list) else [value])]


class _PerHead(tuple):
    """Values from the [[head]] tables of a TOML file, one a head (a plain list there is one matrix)."""


def read_toml(name):
    """What a TOML file holds, as a dict."""
    path = values.existing_file("--config", name)
    try:
        with open(path, "rb") as handle:
            return tomllib.load(handle)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"--config must be a TOML file; {path} is not ({error}).") from error


def fitted_table(path, table, options):
    """A table of a TOML file with its [[head]] tables spread over the options, known keys only."""
    path, table = Path(path), dict(table)
    per_head = [option.key for option in options if option.repeated and option.read is not values.assignments]
    heads = table.pop("head", [])
    heads = heads if isinstance(heads, list) else [heads]
    # A nested list is one matrix here, not one a head.
    table = {key: _PerHead([value]) if key in per_head else value for key, value in table.items()}
    known = {option.key for option in options} | {"attention"}
    _refuse_unknown(path, table, known)
    for head in heads:
        _refuse_unknown(path, head, set(per_head), " in a [[head]]")
    for key in per_head:
        inside = [head[key] for head in heads if key in head]
        if inside and (len(inside) < len(heads) or key in table):
            raise ValueError(f"{key} in {path} must stand in every [[head]] or outside of all; it stands in some.")
        if inside:
            table[key] = _PerHead(inside)
    return {key: value if key == "out" else _beside(path, value) for key, value in table.items()}


def _refuse_unknown(path, table, known, where=""):
    unknown = sorted(set(table) - known) if isinstance(table, dict) else [repr(table)]
    if unknown:
        raise ValueError(f"{path} must hold known keys{where}: {', '.join(sorted(known))}; got {', '.join(unknown)}.")


def _beside(path, value):
    """Names of input files in a TOML file are meant from the folder that it lies in."""
    if isinstance(value, _PerHead):
        return _PerHead(_beside(path, item) for item in value)
    if isinstance(value, str) and Path(value).suffix.lower() in READERS:
        return str(path.parent / value)
    return value
