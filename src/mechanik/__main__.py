"""`python -m mechanik` is `mechanik`."""

import sys

from mechanik.cli import main

if __name__ == "__main__":
    sys.exit(main())
