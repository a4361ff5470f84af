"""``python -m benchmarks [NAME ...]``: ask the questions, print one table, keep the numbers, draw time against n."""

import sys

from .runner import main

if __name__ == "__main__":
    sys.exit(main())
