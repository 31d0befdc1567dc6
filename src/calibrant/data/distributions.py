"""Predicted distributions given as objects with a cdf, such as those of SciPy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calibrant.data import validation
from calibrant.data.array_likes import frozen
from calibrant.data.forecasts import Forecast, as_outputs, squared_rows
from calibrant.data.validation import InvalidPredictions
from calibrant.numerics.arrays import Floats
from calibrant.numerics.rows import Rows


class Distribution(Forecast):
    """Distributions of any family, and the observed values.

    Parameters
    ----------
    y_true : array-like of shape (n,) or (n, d)
    dist : object
        A frozen distribution of `scipy.stats` (old or new style), or anything with ``cdf``, ``ppf`` (or ``icdf``),
        ``mean`` and ``std`` (or ``standard_deviation``), and ``logpdf`` where `nll` is wanted. Its parameters
        broadcast against `y_true`.

    Examples
    --------
    >>> from scipy import stats
    >>> Distribution([0.3, 2.0], stats.t(df=5, loc=[0.0, 1.0], scale=[1.0, 2.0]))
    <Distribution, n=2>
    """

    def __init__(
        self,
        y_true: ArrayLike,
        dist: Any,
        *,
        weight: ArrayLike | None = None,
        group: ArrayLike | None = None,
    ) -> None:
        self._align(y_true=y_true, weight=weight, group=group)
        self.y_true = frozen(as_outputs("y_true", y_true, None))
        self.dist = dist
        for needed in (("cdf",), ("ppf", "icdf")):
            if not any(callable(getattr(dist, name, None)) for name in needed):
                message = f"dist needs a method {' or '.join(needed)}; {type(dist).__name__} has none."
                raise InvalidPredictions(message)
        u = self._cdf()
        rows = u.reshape(len(self), -1)
        validation.require("dist.cdf(y_true)", u, ((rows >= 0) & (rows <= 1)).all(axis=1), "must lie in [0, 1]")
        self._attach(weight, group)
        self._freeze()

    def take(self, rows: NDArray[Any]) -> Self:
        """The given rows, by number (repeats allowed) or mask, with their distributions."""
        number = np.arange(len(self))[rows]
        some = super().take(number)
        some.y_true, some.dist = self.y_true[number], _TakenRows(self.dist, number, self.y_true.shape)
        return some

    @property
    def outputs(self) -> Sequence[Distribution]:
        """One task per output column."""
        if self.y_true.ndim == 1:
            return [self]
        columns = range(self.y_true.shape[1])
        return [
            Distribution(self.y_true[:, j], _Column(self.dist, j), weight=self.weight, group=self.group)
            for j in columns
        ]

    @property
    def mean(self) -> Floats:
        """The mean of each predicted distribution."""
        return self._moment("mean")

    @property
    def std(self) -> Floats:
        """The standard deviation of each predicted distribution."""
        return self._moment("std" if hasattr(self.dist, "std") else "standard_deviation")

    def rows(self) -> Rows:
        """As for `Gaussian`, with the mean and standard deviation of the distributions."""
        std = self.std.ravel()
        validation.require("dist.std()", std, (std > 0) & np.isfinite(std), "must be positive and finite")
        return squared_rows(std, (self.y_true - self.mean).ravel(), self.flat_weight, name="dist.std()")

    def pit(self) -> tuple[Floats, Floats]:
        """The distribution function at the outcome; for counts, the interval from below the outcome up to it."""
        high = self._cdf().ravel()
        if not self.discrete:
            return high, high
        return np.maximum(high - self.dist.pmf(self.y_true).ravel(), 0.0), high

    def quantile(self, q: float) -> Floats:
        """The distributions' own quantile function."""
        return self.quantiles_at(np.full(self.y_true.shape, q))

    def quantiles_at(self, q: Floats) -> Floats:
        """The quantile of each row at a probability of its own."""
        ppf = getattr(self.dist, "ppf", None) or self.dist.icdf
        return np.asarray(ppf(q.reshape(self.y_true.shape)), dtype=np.float64).ravel()

    @property
    def discrete(self) -> bool:
        """Whether the outcomes are counts (the distribution has a probability mass function of its own)."""
        return hasattr(self.dist, "pmf") and not hasattr(self.dist, "pdf")

    def _cdf(self) -> Floats:
        u = np.asarray(self.dist.cdf(self.y_true), dtype=np.float64)
        if u.shape != self.y_true.shape:
            message = f"dist.cdf(y_true) has shape {u.shape}, expected {self.y_true.shape}, that of y_true."
            raise InvalidPredictions(message)
        return u

    def _moment(self, name: str) -> Floats:
        return np.broadcast_to(np.asarray(getattr(self.dist, name)(), dtype=np.float64), self.y_true.shape)


class _Column:
    """One output of a distribution over (n, d) arrays."""

    def __init__(self, dist: Any, column: int) -> None:
        self._dist, self._column = dist, column

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._dist, name)

        def of_column(*at: NDArray[Any]) -> Floats:
            values = np.asarray(method(*(column[:, None] for column in at)))
            shared = values.ndim and values.shape[-1] == 1  # parameters that all outputs have in common
            return values[..., 0 if shared else self._column] if values.ndim else values

        return of_column


class _TakenRows:
    """Some rows of a distribution over `shape`, which may be repeated."""

    def __init__(self, dist: Any, rows: NDArray[np.intp], shape: tuple[int, ...]) -> None:
        self._dist, self._rows, self._shape = dist, rows, shape

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._dist, name)

        def of_rows(*at: NDArray[Any]) -> Floats:
            if not at:
                return np.broadcast_to(np.asarray(method(), dtype=np.float64), self._shape)[self._rows]
            values = np.empty((len(self._rows), *self._shape[1:]))
            given = [np.broadcast_to(argument, values.shape) for argument in at]
            for some in self._turns:
                whole = [np.broadcast_to(argument[:1], self._shape).copy() for argument in given]
                for argument, place in zip(given, whole, strict=True):
                    place[self._rows[some]] = argument[some]
                values[some] = np.broadcast_to(method(*whole), self._shape)[self._rows[some]]
            return values

        return of_rows

    @property
    def _turns(self) -> list[NDArray[np.intp]]:
        """The places of each row's first, second, ... copy: within one of them no row is repeated."""
        order = np.argsort(self._rows, kind="stable")
        ordered = self._rows[order]
        copy_number = np.arange(len(ordered)) - np.searchsorted(ordered, ordered, side="left")
        return [order[copy_number == turn] for turn in range(int(copy_number.max(initial=-1)) + 1)]
