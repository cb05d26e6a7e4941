"""``python -m gatepatch``."""

import sys

from gatepatch.cli import main

if __name__ == "__main__":
    sys.exit(main())
