"""`python -m reproduce`: see `reproduce.papers`."""

import sys

from reproduce.papers import main

sys.exit(main())
