"""What runs here: versions, and the compiled loops of `calibrant[fast]`."""

from __future__ import annotations

import platform
import sys
from importlib.metadata import PackageNotFoundError, version

from calibrant._version import __version__
from calibrant.numerics import switch

#: The packages that results or times may depend on.
PACKAGES = (
    *("numpy", "scipy", "scikit-learn", "narwhals", "numba", "duckdb", "pyarrow", "pandas", "polars", "torch"),
    *("matplotlib", "catboost", "lightgbm", "pyspark", "dask", "ibis-framework"),
)


def show_versions() -> None:
    """Print the versions of Python, Calibrant and what it works with, and whether loops run as machine code.

    Put the output into a report of a bug.

    Examples
    --------
    >>> import calibrant as cal
    >>> cal.show_versions()  # doctest: +SKIP
    calibrant       1.0.0
    python          3.12.4 (Linux x86_64)
    numpy           2.4.6
    compiled loops  ready, 8 thread(s)
    """
    python = f"{sys.version.split()[0]} ({platform.system()} {platform.machine()})"
    lines = {"calibrant": __version__, "python": python}
    lines |= {name: found for name in PACKAGES if (found := _version(name)) is not None}
    lines["compiled loops"] = switch.status()
    width = max(map(len, lines)) + 2
    print("\n".join(f"{name:{width}}{value}" for name, value in lines.items()))


def warm_up() -> bool:
    """Start the compiled loops of ``calibrant[fast]`` now, so that no later call waits for them.

    Numba takes half a second to start in each process, and some twenty seconds the very first time on a machine, when
    it compiles and keeps the machine code on disk. Without this call it is started by the first call on so many rows
    that it pays (some hundred million rows in a few bins). A service that streams or measures all day calls this once
    when it starts. Results are the same with and without: bins and cells to the bit, sums to 1e-12.

    The environment variable ``CALIBRANT_FAST=off`` switches the compiled loops off, ``on`` demands them. Arrays of
    millions of rows are shared among as many threads as ``OMP_NUM_THREADS`` says, or else as there are processors.

    Returns
    -------
    bool
        Whether compiled loops are in use: False where Numba is not installed or they are switched off.

    Examples
    --------
    >>> import calibrant as cal
    >>> cal.warm_up()  # doctest: +SKIP
    True
    """
    return switch.start()


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
