"""Acceleration: whether loops over rows run as machine code, when they are started, and which versions run here.

This is the one place that decides, and the only one that imports the compiled module. `CALIBRANT_FAST` in the
environment is ``auto`` (the default), ``on`` or ``off``. With ``auto``, Numba is started only for a call that saves
more time than starting it takes; once it is started, calls with many rows use it too. Without Numba everything runs in
NumPy, without a message. With ``on``, a missing Numba raises an error.

Fits use one thread of BLAS: `one_blas_thread`.
"""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ContextDecorator, ExitStack
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from threading import Lock
from types import ModuleType
from typing import Any, TypeVar

from calibrant._version import __version__

Made = TypeVar("Made")

#: What starting Numba takes in each process, in nanoseconds, with a margin for kernels that are not on disk yet.
#: Speed: benchmarks/fast.py; no result depends on it.
START = 1e9

#: Below this many rows a compiled loop is not worth loading, unless `warm_up` loaded all of them before. Speed:
#: benchmarks/fast.py; no result depends on it.
FEW_ROWS = 100_000

#: Rows of a chunk with totals of its own, whatever the number of threads that work on chunks. Speed:
#: benchmarks/fast.py; no result depends on it but for the rounding of sums.
CHUNK_ROWS = 1 << 20

#: From this many rows on, chunks are shared among threads. Speed: benchmarks/fast.py; no result depends on it.
THREADED_ROWS = 1 << 22

_SETTINGS = {"": "auto", "auto": "auto"}
_SETTINGS |= dict.fromkeys(("0", "off", "false", "no"), "off") | dict.fromkeys(("1", "on", "true", "yes"), "on")


class _State:
    """The compiled module once it is loaded, and whether all of its loops are ready."""

    module: ModuleType | None = None
    warm = False
    failed = False


def setting() -> str:
    """What the environment asks for: "on", "off" or "auto"."""
    value = os.environ.get("CALIBRANT_FAST", "auto").strip().lower()
    if value not in _SETTINGS:
        message = f"CALIBRANT_FAST must be auto, on or off, got {value!r}."
        raise ValueError(message)
    return _SETTINGS[value]


def compiled(rows: int, *, saves: float) -> ModuleType | None:
    """The compiled loops if they are to be used for this many rows, each of which `saves` nanoseconds."""
    wanted = setting()
    if wanted == "off":
        return None
    if wanted == "on":
        return _loaded(required=True)
    if _State.module is not None:
        return _State.module if _State.warm or rows >= FEW_ROWS else None
    return _loaded(required=False) if rows * saves >= START else None


def status() -> str:
    """In words, for `calibrant.show_versions`."""
    if setting() == "off":
        return "off (CALIBRANT_FAST)"
    if find_spec("numba") is None:
        return "not installed (pip install 'calibrant[fast]')"
    if _State.failed:
        return "failed to start, NumPy is used"
    return f"{'started' if _State.module is not None else 'ready'}, {thread_limit()} thread(s)"


def _loaded(*, required: bool) -> ModuleType | None:
    if _State.module is None and not _State.failed:
        try:
            from calibrant.numerics.compiled import loops as module

            module.try_out()
            _State.module = module
        except Exception as error:
            _State.failed = True
            if required:
                message = "CALIBRANT_FAST=on needs Numba, which cannot be used here: pip install 'calibrant[fast]'."
                raise ImportError(message) from error
    if _State.module is None and required:
        message = "CALIBRANT_FAST=on needs Numba, which could not be started: pip install 'calibrant[fast]'."
        raise ImportError(message)
    return _State.module


@cache
def thread_limit() -> int:
    """The number of threads for large arrays: OMP_NUM_THREADS, which schedulers set for workers, or all processors."""
    given = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()
    available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(int(given), available)) if given.isdigit() and given != "0" else available


def by_chunks(rows: int, work: Callable[[slice], Made]) -> list[Made]:
    """The results of `work` for each chunk of rows, in their order; on several threads where there are many rows."""
    chunks = [slice(first, min(first + CHUNK_ROWS, rows)) for first in range(0, max(rows, 1), CHUNK_ROWS)]
    if rows < THREADED_ROWS or thread_limit() == 1:
        return [work(chunk) for chunk in chunks]
    with ThreadPoolExecutor(thread_limit()) as pool:
        return list(pool.map(work, chunks))


#: The packages that results or times may depend on.
PACKAGES = (
    *("numpy", "scipy", "scikit-learn", "narwhals", "numba", "duckdb", "pyarrow", "pandas", "polars", "torch"),
    *("matplotlib", "catboost", "lightgbm", "pyspark", "dask", "ibis-framework"),
)


def show_versions() -> None:
    """Print the versions of Python, Calibrant and what it works with, and whether loops run as machine code.

    Include the output in a bug report.

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
    lines["compiled loops"] = status()
    width = max(map(len, lines)) + 2
    print("\n".join(f"{name:{width}}{value}" for name, value in lines.items()))


def warm_up() -> bool:
    """Start the compiled loops of ``calibrant[fast]`` now, so that no later call waits for them.

    Numba takes half a second to start in each process, and about twenty seconds the very first time on a machine, when
    it compiles and keeps the machine code on disk. Without this call, it starts at the first call on an array large
    enough for it to pay off (about a hundred million rows in a few bins). A service that streams or measures all day
    calls this once when it starts. Results are the same with and without: bins and cells to the bit, sums to 1e-12.

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
    module = None if setting() == "off" else _loaded(required=setting() == "on")
    if module is None:
        return False
    module.compile_all()
    _State.warm = True
    return True


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


class _OneBlasThread(ContextDecorator):
    """One thread for the products of matrices inside: those of a fit are small, and more threads wait for each other.

    The limit is that of the process. Where several threads are inside, the first one sets it and the last one lifts it.
    """

    def __init__(self) -> None:
        self._lock, self._inside, self._limit = Lock(), 0, ExitStack()

    def __enter__(self) -> None:
        with self._lock:
            if self._inside == 0:
                self._limit.enter_context(_blas().limit(limits=1, user_api="blas"))
            self._inside += 1

    def __exit__(self, *error: object) -> None:
        with self._lock:
            self._inside -= 1
            if self._inside == 0:
                self._limit.close()


@cache
def _blas() -> Any:
    """The libraries that are loaded; scikit-learn needs the package that finds them."""
    import scipy.linalg  # noqa: F401  -- its library is another one than NumPy's
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


#: Around calls, or above the functions, that make many products of small matrices.
one_blas_thread = _OneBlasThread()
