"""``python -m experiments [NAME ...]``: every case of every experiment through one pool, one record an experiment."""

import sys

from .runner import main

if __name__ == "__main__":
    sys.exit(main())
