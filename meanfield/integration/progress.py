"""Progress of one run as a fraction of its time: a bar on a terminal, a caller's function, or nothing."""

import sys
from contextlib import contextmanager


@contextmanager
def progress_of(choice):
    """A function of the fraction done, or None where nobody wants to know.

    Parameters
    ----------
    choice : None, False or callable
        None shows a bar, after a second, when stderr is a terminal.
    """
    if choice is False or (choice is None and not sys.stderr.isatty()):
        yield None
    elif choice is None:
        from tqdm import tqdm

        with tqdm(total=1.0, delay=1.0, bar_format="{l_bar}{bar}| [{elapsed}<{remaining}]", leave=False) as bar:
            yield lambda fraction: bar.update(fraction - bar.n)
    elif callable(choice):
        yield choice
    else:
        raise ValueError(f"progress must be None, False or a function of the fraction done; got {choice!r}.")
