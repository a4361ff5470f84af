"""The command line itself: subcommands, their options and their help, made from the tables of options."""

import argparse
import re
from importlib import metadata

from ..attention import ATTENTION
from . import commands, options, sweeping, values
from .laws import LAWS
from .plots import ANIMATION, KINDS, OBSERVABLES, STILLS
from .problem import MASKED
from .runs import GOOD

_VARIANTS = f"""variants of attention (ATTENTION is the argument):
  {", ".join(ATTENTION)}
  {MASKED}-NAME    each token sees only those before it (by position, else by the order of the rows);
                 {MASKED} alone is {MASKED}-{next(iter(ATTENTION))}
  NAME+NAME      several heads; matrices and --beta may then be given once a head

"""

_LAWS = "laws of a start:\n" + "".join(f"  {name:<11} {law.__doc__}\n" for name, law in LAWS.items()) + "\n"

_STATUS = f"""exit status:
  0    the run ended well ({", ".join(outcome.name for outcome in GOOD)})
  1    the mathematics failed (blow-up, a limit, no convergence); the record is written all the same
  2    an argument or a file is wrong
  130  Ctrl-C; the record holds what was computed until then (a second Ctrl-C stops at once)

"""

#: Examples of each subcommand, one or two lines each.
EXAMPLES = {
    "simulate": """  meanfield simulate softmax --tokens 64 --space sphere --beta 4 --times 20 --out run.npz
  meanfield simulate l2 --start tokens.csv --value "0,-1;1,0" --times 0:5:51
  meanfield simulate softmax+softmax --query 1 --query "1,0;0,0" --scheme rk4 --dt 0.05
  meanfield simulate --config run.toml --seed 7
  meanfield simulate --from run.npz --out again.npz      (the same bits)
""",
    "gaussian": """  meanfield gaussian softmax --covariance "1,0.2;0.2,2" --times 0:0.4:41 --out law.npz
  meanfield gaussian l2 --moments tokens.csv --times 2
""",
    "compare": """  meanfield compare softmax l2 sigmoid masked-softmax --space sphere --times 10 --figure clusters
  meanfield compare softmax l2 --covariance 1 --times 2 --out both.npz
""",
    "sweep": """  meanfield sweep sweep.toml --jobs 2 --store runs --out summary.csv
""",
    "info": """  meanfield info run.npz
  meanfield info run.npz --json | head
""",
    "plot": """  meanfield plot run.npz
  meanfield plot run.npz --kind attention --time 2 --out attention.pdf
  meanfield plot both.npz --kind observables --observable effective-rank
""",
}


class Parser(argparse.ArgumentParser):
    """A parser whose errors are exceptions, so that they are said in one line like all others."""

    def error(self, message):
        """Raise a ValueError in place of printing the usage and leaving."""
        raise ValueError(f"{message}. See {self.prog} --help.")


def make_parser():
    """The parser of the whole command line; ``carry_out`` and ``options`` of a result say what to do with it."""
    parser = Parser(
        prog="meanfield",
        description="Mean-field dynamics of Transformers: move tokens or a Gaussian under a variant of attention.",
        epilog="meanfield COMMAND --help shows options and examples of a command.",
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"meanfield {_version()}")
    chosen = parser.add_subparsers(title="commands", metavar="COMMAND", required=True, parser_class=Parser)

    single = (("attention", "*", "the variant, see below"),)
    config = (("config", "FILE", "a TOML file with these options; those of the command line win"),)
    _add(chosen, "simulate", "move tokens under a variant of attention", commands.simulate, single,
         (("options of the field", options.HEAD), ("options of the start", options.START),
          ("options of the run", options.RUN), ("options of the output", options.REPORT)),
         (*config, ("from", "RECORD", "run a record once more, from its own parameters")),
         _VARIANTS + _LAWS + _STATUS)  # fmt: skip
    _add(chosen, "gaussian", "move a Gaussian by the ODEs of its mean and covariance", commands.gaussian, single,
         (("options of the field", options.HEAD), ("options of the start", (*options.LAW, *_FILES)),
          ("options of the run", options.RUN), ("options of the output", options.REPORT)),
         config, _VARIANTS + _STATUS)  # fmt: skip
    _add(chosen, "compare", "move one start under several variants, side by side", commands.compare,
         (("attention", "*", "two or more variants, see below"),),
         (("options of the field", options.HEAD), ("options of a start of tokens", options.START),
          ("options of a Gaussian start", options.LAW), ("options of the run", options.RUN),
          ("options of the output", (*options.REPORT, _FIGURE, _OBSERVABLE))),
         config, _VARIANTS + _LAWS + _STATUS)  # fmt: skip
    _add(chosen, "sweep", "run many problems of one TOML file in parallel", sweeping.sweep,
         (("config", None, "a TOML file: options of `simulate` (or, with command = \"gaussian\", of `gaussian`), "
           "and what varies, see below"),),
         (("options", sweeping.SWEEP),), (), sweeping.NOTES)  # fmt: skip
    record = (("record", None, "a .npz file"),)
    _add(chosen, "info", "show what a record holds", commands.info, record, (("options", (_JSON,)),))
    _add(chosen, "plot", "draw a figure of a record", commands.plot, record, (("options", PLOT),), (), _kinds())
    return parser


def _kinds():
    lines = [f"  {name:<12} {function.__doc__}\n" for name, function in KINDS.items()]
    return "kinds of plots:\n" + "".join(lines) + f"  {ANIMATION:<12} a moving picture, .gif or .mp4\n\n"


_FILES = tuple(option for option in options.START if option.name in ("columns", "normalise"))
_FIGURE = options.Option("figure", values.text, f"draw an observable over time into this file ({', '.join(STILLS)})",
                         metavar="FIGURE")  # fmt: skip
_OBSERVABLE = options.Option("observable", values.one_of(tuple(OBSERVABLES)), f"which one: {', '.join(OBSERVABLES)}",
                             metavar="NAME")  # fmt: skip
_JSON = options.Option("json", values.switch, "the header alone, as JSON", False, None)
_QUIET = next(option for option in options.REPORT if option.name == "quiet")

PLOT = (
    options.Option("kind", values.one_of((*KINDS, ANIMATION)), "what to draw, see below (default: by the record)",
                   metavar="KIND"),
    options.Option("out", values.text, f"the file to draw into: {', '.join(STILLS)}, or without a suffix for .pdf and "
                   ".png (default: beside the record); an earlier figure is replaced", metavar="FIGURE"),
    options.Option("run", values.text, "one run of a comparison, by its variant", metavar="NAME"),
    _OBSERVABLE,
    options.Option("time", values.number, "time of an attention matrix"),
    options.Option("head", options.whole, "head of an attention matrix, from 1", 1, "H"),
    options.Option("coordinates", values.whole_numbers, "which coordinates of the tokens to draw, e.g. 0,1",
                   metavar="I,J"),
    options.Option("rescaled", values.switch, "tokens in the coordinates exp(-tV) x", False, None),
    options.Option("gap", options.positive, "gap of the clusters (default 1%% of the start's size)"),
    _QUIET,
)  # fmt: skip


def _add(chosen, name, words, carry_out, positionals, groups, extra=(), notes=""):
    """One subcommand with its options and its example."""
    parser = chosen.add_parser(
        name,
        help=words,
        description=words[0].upper() + words[1:] + ".",
        epilog=f"{notes}examples:\n{EXAMPLES[name]}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    for key, nargs, about in positionals:
        parser.add_argument(key, nargs=nargs, metavar=key.upper(), help=about)
    for key, metavar, about in extra:
        parser.add_argument(f"--{key}", metavar=metavar, help=about)
    for title, members in groups:
        group = parser.add_argument_group(title)
        for option in members:
            if option.metavar is None:
                group.add_argument(f"--{option.name}", action="store_const", const=True, help=option.help)
            else:
                action = "append" if option.repeated else "store"
                group.add_argument(f"--{option.name}", action=action, metavar=option.metavar, help=option.help)
    parser.set_defaults(
        command=name, carry_out=carry_out, options=[option for _, members in groups for option in members]
    )


def join_negative(arguments):
    """Values that begin with a minus sign joined to their option, which argparse would take for options otherwise."""
    joined = []
    for word in arguments:
        before = joined[-1] if joined else ""
        if re.match(r"-[\d.]", word) and re.fullmatch(r"--[a-z-]+", before):
            joined[-1] = f"{before}={word}"
        else:
            joined.append(word)
    return joined


def _version():
    try:
        return metadata.version("meanfield")
    except metadata.PackageNotFoundError:
        return "(a checkout that is not installed)"
