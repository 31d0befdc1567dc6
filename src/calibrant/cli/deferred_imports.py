"""Libraries that others import but our commands seldom use: in the command's own process they are loaded when used."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import LazyLoader
from types import ModuleType

#: scikit-learn imports the first two for its compatibility functions, and SciPy the third because NumPy lists it.
#: They take longer to import than a report takes to compute.
SELDOM_USED = frozenset({"pandas", "scipy.stats", "numpy.f2py"})


class WhenUsed(MetaPathFinder):
    """Finds modules as Python does, but has them executed at the first use of one of their attributes.

    Parameters
    ----------
    names : collection of str
        The modules; all others are left to the finders that follow.
    """

    def __init__(self, names: frozenset[str]) -> None:
        self.names = names

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Where a module is, with a loader that waits; None where it is not there or not one of ours."""
        spec = PathFinder.find_spec(fullname, path, target) if fullname in self.names else None
        if spec is not None and spec.loader is not None:
            spec.loader = LazyLoader(spec.loader)
        return spec


def defer() -> None:
    """Have the libraries loaded when used; for a process of our own only, as others decide about their imports."""
    sys.meta_path.insert(0, WhenUsed(SELDOM_USED))
