"""The command line ``meanfield``: every error of the caller is one line, every failure of the mathematics a result."""

import os
import sys

from ..attention import ATTENTION
from . import commands
from .options import settings_from
from .parser import join_negative, make_parser

#: What a shell reports of a program whose reader went away (128 + SIGPIPE).
PIPE_CLOSED = 141


def main(arguments=None):
    """Carry out one command line.

    Parameters
    ----------
    arguments : list of str, optional
        Without the name of the program; those of the process by default.

    Returns
    -------
    int
        Exit status: 0 ended well, 1 the mathematics failed (the record is written all the same), 2 an argument or a
        file is wrong, 130 Ctrl-C, 141 the reader of the output went away.
    """
    try:
        status = _carry_out(sys.argv[1:] if arguments is None else arguments)
        sys.stdout.flush()
        return status
    except BrokenPipeError:
        # The interpreter flushes once more when it leaves; there must be somewhere to flush to.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return PIPE_CLOSED
    except KeyboardInterrupt:
        print("meanfield: interrupted by Ctrl-C; nothing was kept.", file=sys.stderr)
        return commands.INTERRUPTED
    except (ValueError, OSError, RuntimeError) as error:
        said = error
    except MemoryError as error:
        said = f"the problem must fit into memory; {error}. Take fewer tokens or output times"
    print(f"meanfield: error: {' '.join(str(said).split())}", file=sys.stderr)
    return commands.WRONG


def _carry_out(arguments):
    """Parse, read and check the settings, and do what they say."""
    try:
        parsed, unknown = make_parser().parse_known_args(join_negative(arguments))
    except SystemExit as leaving:  # --help and --version have printed what was asked for
        return leaving.code or commands.FINE
    parsed = vars(parsed)
    command, carry_out, options = (parsed.pop(key) for key in ("command", "carry_out", "options"))
    if unknown:
        raise ValueError(
            f"options must be known to {command}; got {' '.join(unknown)}. See meanfield {command} --help."
        )
    given = {key: value for key, value in parsed.items() if value not in (None, [])}
    if "from" in given:
        return commands.rerun(_rerun_settings(given, options))
    if command == "sweep":
        return carry_out(settings_from(given, options) | {"config": given["config"]})
    config = given.pop("config", None)
    settings = settings_from(given, options, config) | {key: given[key] for key in ("record",) if key in given}
    if "attention" in parsed:
        settings["attention"] = _variants(settings.get("attention"), several=command == "compare")
    return carry_out(settings)


def _rerun_settings(given, options):
    """Settings of ``simulate --from``: only what does not change the run."""
    kept = {key: given.pop(key) for key in ("from", "out", "force", "quiet", "gap") if key in given}
    if given:
        raise ValueError(
            f"--from must stand alone, or with --out, --force, --gap, --quiet: the record says the rest; "
            f"got {', '.join(sorted(given))}."
        )
    return settings_from(kept, options) | {"from": kept["from"]}


def _variants(given, *, several):
    """The name of a variant, or a list of two or more where ``several`` are compared."""
    names = given if isinstance(given, list) else [] if given is None else [given]
    if not all(isinstance(name, str) for name in names):
        raise ValueError(f"attention must be a name, or a list of names; got {given!r}.")
    wanted = "two or more names of variants, each once" if several else "the name of one variant (`compare` takes more)"
    if len(set(names)) != len(names) or (len(names) < 2 if several else len(names) != 1):
        raise ValueError(
            f"attention must be {wanted}; got {' '.join(names) or 'none'}. Choose from {', '.join(ATTENTION)}."
        )
    return names if several else names[0]
