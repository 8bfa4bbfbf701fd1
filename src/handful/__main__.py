"""`python -m handful`: the same as the command `handful`."""

import sys

from handful_command import main

if __name__ == "__main__":
    sys.exit(main())
