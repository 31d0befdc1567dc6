"""The commands. Each reads a file, calls the library, prints, and sets its exit code.

0: done, and a gate has passed. 1: a gate failed (--fail-above, --limit, or a test that rejects with --fail) and nothing
else, or a monitor raised an alarm. 2: usage or bad data. 3: too few rows for a gate or a monitor to decide. 70: an
error of calibrant itself. 130: interrupted.
"""

from __future__ import annotations

# isort: off
# In the order of the help.
from calibrant.cli.commands import report, measure, audit, monitor, recalibrate  # noqa: F401

# isort: on
from calibrant.cli.commands.application import app, run

__all__ = ["app", "run"]
