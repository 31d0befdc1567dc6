"""Predicted distributions of a number and observed values: normal, quantiles, ensembles, objects with a cdf.

Every regression metric asks a `Forecast` two questions: how large is the predicted spread relative to the error
(`rows`), and where in its own distribution did the outcome fall (`pit`, `quantile`).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calibrant.data import validation
from calibrant.data.predictions import Column, Predictions
from calibrant.data.validation import fail, frozen
from calibrant.numerics.arrays import Floats
from calibrant.numerics.rows import Rows

#: Beyond this, the difference of two outcomes need not be a number.
#: Derived: the largest number of double precision is 1.8e308; the rest is left to weights and sums.
LARGEST_OUTCOME = 1e300

#: Tables hold fourth powers of spreads and errors: those must be numbers that have all their digits.
#: Derived: their fourth powers, 1e-288 and 1e288, are within 2.2e-308 and 1.8e308.
SMALLEST_SPREAD, LARGEST_SPREAD = 1e-72, 1e72


class Forecast(Predictions):
    """A predicted distribution per row and output. Methods give one flat column: rows times outputs.

    Examples
    --------
    >>> forecast = Gaussian([1.0, 2.5], mean=[1.0, 2.0], std=[0.5, 1.0])
    >>> isinstance(forecast, Forecast), forecast.quantile(0.5)
    (True, array([1., 2.]))
    """

    y_true: NDArray[Any]

    def __len__(self) -> int:
        return len(self.y_true)

    @property
    def outputs(self) -> Sequence[Self]:
        """One task per output column."""
        if self.y_true.ndim == 1:
            return [self]
        return [self._output(column)._of_rows_of(self) for column in range(self.y_true.shape[1])]

    def _output(self, column: int) -> Self:
        raise NotImplementedError  # pragma: no cover - of kinds that have one output

    @property
    def flat_weight(self) -> Floats | None:
        """The row weights, repeated for each output."""
        size = self.y_true.shape[1] if self.y_true.ndim == 2 else 1
        return self.weight if self.weight is None or size == 1 else np.repeat(self.weight, size)

    @abstractmethod
    def pit(self) -> tuple[Floats, Floats]:
        """The probability integral transform F(y), as the interval [low, high] it is known to lie in.

        Low equals high where the distribution is continuous and known. For draws, quantiles and counts the
        transform is spread evenly over the interval, which is what randomising it would do on average.
        """

    @abstractmethod
    def quantile(self, q: float) -> Floats:
        """The predicted quantile of each row at the probability `q` in (0, 1)."""


class Gaussian(Forecast):
    """Predicted means and standard deviations, and the observed values.

    Parameters
    ----------
    y_true, mean, std : array-like of shape (n,), or (n, d) for d outputs per row, such as the coordinates of a box
        The observed values, the predicted means, and the predicted standard deviations, which must be positive.
    weight, group : array-like of shape (n,), optional
        Row weights (not negative), and ids of rows that belong together.

    Examples
    --------
    >>> Gaussian([1.0, 2.5], mean=[1.2, 2.0], std=[0.3, 0.4])
    <Gaussian, n=2>
    """

    columns = ("y_true", "mean", "std")

    def __init__(
        self, y_true: ArrayLike, mean: ArrayLike, std: ArrayLike, *, weight: Column = None, group: Column = None
    ) -> None:
        self._borrow(y_true, mean, std, weight, group)
        self._freeze()

    @classmethod
    def borrowing(
        cls, y_true: ArrayLike, mean: ArrayLike, std: ArrayLike, *, weight: Column = None, group: Column = None
    ) -> Self:
        """The same without copies, for use while nobody changes the arrays: within one call, or of arrays made anew."""
        made = cls.__new__(cls)
        made._borrow(y_true, mean, std, weight, group)
        return made

    def _borrow(self, y_true: ArrayLike, mean: ArrayLike, std: ArrayLike, weight: Column, group: Column) -> None:
        self._align(y_true=y_true, mean=mean, std=std, weight=weight, group=group)
        self.y_true = as_outputs("y_true", y_true, None)
        self.mean = as_outputs("mean", mean, self.y_true.shape)
        self.std = as_outputs("std", std, self.y_true.shape)
        validation.require("std", self.std, (self.std > 0).reshape(len(self), -1).all(axis=1), "must be positive")
        self._attach(weight, group)

    def _output(self, column: int) -> Self:
        some = (values[:, column] for values in (self.y_true, self.mean, self.std))
        return self.borrowing(*some, weight=self.weight, group=self.group)

    def rows(self) -> Rows:
        """Key is sigma; predicted and observed are the squares of sigma and of the error. Outputs are pooled."""
        std = self.std.astype(np.float64, copy=False).ravel()
        return squared_rows(std, self.error(), self.flat_weight)

    def error(self) -> Floats:
        """Outcome minus mean."""
        return (self.y_true.astype(np.float64, copy=False) - self.mean).ravel()

    def z(self) -> Floats:
        """The error in units of the predicted standard deviation."""
        return self.error() / self.std.ravel()

    def pit(self) -> tuple[Floats, Floats]:
        """The normal distribution function of z."""
        from scipy.special import ndtr

        u = ndtr(self.z())
        return u, u

    def quantile(self, q: float) -> Floats:
        """Mean plus the normal quantile of `q` times the standard deviation."""
        from scipy.special import ndtri

        return (self.mean + ndtri(q) * self.std.astype(np.float64, copy=False)).ravel()


class Quantiles(Forecast):
    """Predicted quantiles at given levels, and the observed values.

    Parameters
    ----------
    y_true : array-like of shape (n,)
    levels : array-like of shape (q,), increasing, inside (0, 1)
    values : array-like of shape (n, q)
        Column j holds the predicted `levels[j]` quantile; values must not decrease along a row.
    sort : bool
        Sort the quantiles of rows in which they cross, instead of raising an error.

    Examples
    --------
    >>> Quantiles([1.0, 3.0], levels=[0.1, 0.5, 0.9], values=[[0, 1, 2], [1, 2, 3]])
    <Quantiles, n=2>
    """

    columns = ("y_true", "values")

    def __init__(
        self,
        y_true: ArrayLike,
        levels: ArrayLike,
        values: ArrayLike,
        *,
        weight: ArrayLike | None = None,
        group: ArrayLike | None = None,
        sort: bool = False,
    ) -> None:
        if np.ndim(levels) == 2 and np.ndim(values) == 1:
            fail("levels is a matrix and values is not: the order is Quantiles(y_true, levels, values).")
        self._align(y_true=y_true, values=values, weight=weight, group=group)
        self.y_true = as_outcomes("y_true", validation.column("y_true", y_true))
        self.levels = validation.column("levels", levels).astype(np.float64)
        validation.require("levels", self.levels, (self.levels > 0) & (self.levels < 1), "must lie in (0, 1)")
        rising = np.diff(self.levels, prepend=-1.0) > 0
        validation.require("levels", self.levels, rising, "must rise")
        columns = validation.matrix("values", values, rows=len(self), columns=len(self.levels))
        self.values = as_outcomes("values", columns)
        if sort:
            self.values = np.sort(self.values, axis=1)
        uncrossed = (np.diff(self.values, axis=1) >= 0).all(axis=1)
        remedy = " Pass sort=True to sort them."
        validation.require("values", self.values, uncrossed, "must not cross (fall along a row)", remedy=remedy)
        self._attach(weight, group)
        self._freeze()

    def rows(self) -> Rows:
        """One row per value and level: is the share of outcomes below the quantile its level?"""
        key = np.repeat(self.levels, len(self))
        below = (self.y_true[:, None] <= self.values).T.ravel().astype(np.int8)
        weight = None if self.weight is None else np.tile(self.weight, len(self.levels))
        return Rows(key, key, below, weight)

    def pit(self) -> tuple[Floats, Floats]:
        """The neighbouring levels between whose quantiles the outcome fell."""
        levels = np.concatenate([[0.0], self.levels, [1.0]])
        above = (self.values < self.y_true[:, None]).sum(axis=1)
        return levels[above], levels[above + 1]

    def quantile(self, q: float) -> Floats:
        """The column of level `q`, which must be one of the given ones."""
        column = int(np.argmin(np.abs(self.levels - q)))
        if abs(self.levels[column] - q) > 1e-9:
            fail(f"These predictions have no quantile at level {q:g}; theirs are {self.levels.tolist()}.")
        return self.values[:, column].astype(np.float64, copy=False)


class Samples(Forecast):
    """Draws from the predicted distribution (an ensemble), and the observed values.

    A calibrated ensemble is one whose draws and outcome are exchangeable. Spreads and errors are therefore those of
    outcome and draws together (`pooled`): the standard deviation of a few draws alone is itself uncertain.

    >>> Samples([0.5, 1.5], draws=[[0.0, 1.0, 0.4], [1.0, 2.0, 1.8]])
    <Samples, n=2>
    """

    columns = ("y_true", "draws")

    def __init__(self, y_true: ArrayLike, draws: ArrayLike, *, weight: Column = None, group: Column = None) -> None:
        self._align(y_true=y_true, draws=draws, weight=weight, group=group)
        self.y_true = as_outcomes("y_true", validation.column("y_true", y_true))
        self.draws = as_outcomes("draws", validation.matrix("draws", draws, rows=len(self)))
        if self.draws.shape[1] < 2:
            fail(f"draws needs at least two columns, got shape {self.draws.shape}.")
        self._attach(weight, group)
        self._freeze()

    @property
    def mean(self) -> Floats:
        """Mean of the draws."""
        return self.draws.mean(axis=1, dtype=np.float64)

    @property
    def std(self) -> Floats:
        """Unbiased standard deviation of the draws, inflated by sqrt(1 + 1/m).

        That is what the error of the mean of m draws should be: the outcome and the mean both vary.
        """
        spread = self.draws.astype(np.float64, copy=False).var(axis=1, ddof=1)
        return np.sqrt(spread * (1 + 1 / self.draws.shape[1]))

    def pooled(self) -> tuple[Floats, Floats]:
        """The error y - M of each row and the standard deviation S, with M and S those of all m + 1 values.

        If outcome and draws are exchangeable, each of the m + 1 values is the outcome with the same probability, so
        that (y - M) / S has mean 0 and mean square 1 whatever the distribution and however few the draws.
        """
        size = self.draws.shape[1]
        draws = self.draws.astype(np.float64, copy=False)
        error = self.y_true.astype(np.float64, copy=False) - self.mean
        with np.errstate(over="ignore"):  # of extreme units, which are refused where spreads are needed
            spread = draws.var(axis=1) * size / (size + 1) + error**2 * size / (size + 1) ** 2
        return error * size / (size + 1), np.sqrt(spread)

    def z(self) -> Floats:
        """The error in units of the standard deviation of outcome and draws together, at most sqrt(m) in size."""
        error, spread = self.pooled()
        return np.divide(error, spread, out=np.zeros(len(error)), where=spread > 0)

    def rows(self) -> Rows:
        """As for `Gaussian`, with the mean and the standard deviation of outcome and draws together (see `pooled`)."""
        error, spread = self.pooled()
        rule = "must not be all alike in a row, and equal to y_true: their spread is zero"
        validation.require("draws", self.draws, spread > 0, rule)
        return squared_rows(spread, error, self.weight, name="the spread of draws")

    def pit(self) -> tuple[Floats, Floats]:
        """The rank of the outcome among the m draws, as an interval of width 1 / (m + 1), wider where it ties."""
        size = self.draws.shape[1] + 1
        below = (self.draws < self.y_true[:, None]).sum(axis=1)
        upto = (self.draws <= self.y_true[:, None]).sum(axis=1)
        return below / size, (upto + 1) / size

    def quantile(self, q: float) -> Floats:
        """The q (m + 1)-th smallest draw, interpolated: the outcome falls below it with probability q."""
        return np.quantile(self.draws.astype(np.float64, copy=False), q, axis=1, method="weibull")


def squared_rows(std: Floats, error: Floats, weight: Floats | None, *, name: str = "std") -> Rows:
    """Rows of spreads and errors: key is sigma, predicted and observed are squares. Extreme units are refused."""
    remedy = " Give outcomes and predictions in another unit."
    fits = (std >= SMALLEST_SPREAD) & (std <= LARGEST_SPREAD)
    validation.require(name, std, fits, "must lie in [1e-72, 1e72], or its powers are no numbers", remedy=remedy)
    fits = np.abs(error) <= LARGEST_SPREAD
    validation.require("y_true - mean", error, fits, "must be at most 1e72 in size", remedy=remedy)
    return Rows(std, std * std, error**2, weight)


def as_outputs(name: str, values: ArrayLike, shape: tuple[int, ...] | None) -> NDArray[Any]:
    """A column of outcomes, or a matrix of several outputs, of the given shape."""
    array = validation.as_array(name, values)
    wide = array.ndim == 2 and array.shape[1] > 1
    array = as_outcomes(name, validation.matrix(name, array) if wide else validation.column(name, array))
    if shape is not None and array.shape != shape:
        fail(f"{name} has shape {array.shape}, expected {shape}, that of y_true.")
    return array


def as_outcomes(name: str, array: NDArray[Any]) -> NDArray[Any]:
    """`array` itself, whose finite numbers must be small enough to be subtracted from each other."""
    if max(float(array.max()), -float(array.min())) > LARGEST_OUTCOME:
        fits = (np.abs(array) <= LARGEST_OUTCOME).reshape(len(array), -1).all(axis=1)
        validation.require(name, array, fits, "must be at most 1e300 in size", remedy=" Use another unit.")
    return array


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

    def __init__(self, y_true: ArrayLike, dist: Any, *, weight: Column = None, group: Column = None) -> None:
        self._align(y_true=y_true, weight=weight, group=group)
        self.y_true = frozen(as_outputs("y_true", y_true, None))
        self.dist = dist
        for needed in (("cdf",), ("ppf", "icdf")):
            if not any(callable(getattr(dist, name, None)) for name in needed):
                fail(f"dist needs a method {' or '.join(needed)}; {type(dist).__name__} has none.")
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

    def _output(self, column: int) -> Self:
        return type(self)(self.y_true[:, column], _Column(self.dist, column), weight=self.weight, group=self.group)

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
            fail(f"dist.cdf(y_true) has shape {u.shape}, expected {self.y_true.shape}, that of y_true.")
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
            for some in _turns(self._rows):
                whole = [np.broadcast_to(argument[:1], self._shape).copy() for argument in given]
                for argument, place in zip(given, whole, strict=True):
                    place[self._rows[some]] = argument[some]
                values[some] = np.broadcast_to(method(*whole), self._shape)[self._rows[some]]
            return values

        return of_rows


def _turns(rows: NDArray[np.intp]) -> list[NDArray[np.intp]]:
    """The places of each row's first, second, ... copy: within one of them no row is repeated."""
    order = np.argsort(rows, kind="stable")
    copy_number = np.arange(len(rows)) - np.searchsorted(rows[order], rows[order], side="left")
    return [order[copy_number == turn] for turn in range(int(copy_number.max(initial=-1)) + 1)]
