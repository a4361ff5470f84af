"""``python -m meanfield``: the command line, also where the package is not installed."""

import sys

from .cli import main

if __name__ == "__main__":
    sys.exit(main())
