"""Run the command line with `python -m mechanik`."""

import sys

from mechanik.cli import main

if __name__ == "__main__":
    sys.exit(main())
