"""Gates: does a model pass? One rule for test suites, builds and the command line."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

from calibrant.data import validation
from calibrant.data.forecasts import Forecast
from calibrant.data.predictions import Multiclass, Predictions
from calibrant.data.validation import InvalidPredictions
from calibrant.estimators.averaged import averaged_error
from calibrant.estimators.binned import ece
from calibrant.estimators.regression_coverage import interval_error
from calibrant.inference.intervals import interval
from calibrant.results.estimate import Estimate, Significance, printable
from calibrant.table.binning import PaperBins
from calibrant.table.bintable import BinTable
from calibrant.table.task import Spread, Unlabeled, task_of

End = Literal["lower", "estimate", "upper"]


@dataclass(frozen=True)
class Gate:
    """A rule that results pass or fail.

    An estimate fails if the chosen number is above the limit: the lower end of its interval (the error is above the
    limit with confidence), the estimate itself (about half of the models at the limit fail), or the upper end (the
    error is not shown to be below the limit, so few rows fail). A test fails if its p-value is below the limit. NaN
    neither passes nor fails: it is an error.

    Parameters
    ----------
    limit : float in [0, 1)
        The largest error to be accepted, as a probability; for tests the significance level alpha.
    by : {"lower", "estimate", "upper"}
        Which number of an estimate decides.

    Examples
    --------
    >>> import numpy as np
    >>> import calibrant as cal
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(2000)
    >>> error = headline_error(cal.Binary(rng.random(2000) < p**2, p))  # the true error is 1/6
    >>> Gate(0.02).failures({"all rows": error})
    ['all rows: the lower end of Averaged error (L1) 0.1... [0.1..., 0.1...] is above 0.02']
    >>> Gate(0.3, by="upper").failures({"all rows": error})
    []
    """

    limit: float
    by: End = "lower"

    def __post_init__(self) -> None:
        if not 0 <= self.limit < 1:  # also where it is NaN
            message = f"The limit of a gate must lie in [0, 1), got {self.limit!r}."
            raise InvalidPredictions(message)
        if self.by not in ("lower", "estimate", "upper"):
            message = f"A gate decides by 'lower', 'estimate' or 'upper', got {self.by!r}."
            raise InvalidPredictions(message)

    def failures(self, results: Mapping[Any, Estimate | Significance]) -> list[str]:
        """One sentence per result that fails, under its name; none if all pass."""
        return [sentence for name, found in results.items() if (sentence := self._failure(printable(name), found))]

    def _failure(self, name: str, found: Estimate | Significance) -> str | None:
        if isinstance(found, Significance):
            p = _number(found.p_value, name)
            return f"{name}: p = {p:.3g} ({found.method}) is below {self.limit:g}" if p < self.limit else None
        value = _number(self._decisive(name, found), name)
        if not value > self.limit:
            return None
        shown = f"{found.name} {found.value:.4g}" + ("" if found.interval is None else f" {found.interval}")
        which = "" if self.by == "estimate" else f"the {self.by} end of "
        return f"{name}: {which}{shown} is above {self.limit:g}"

    def _decisive(self, name: str, found: Estimate) -> float:
        if self.by == "estimate":
            return found.value
        bounds = found.interval
        if bounds is None or bounds.side not in ("two-sided", self.by):
            message = f"{name}: {found!r} has no {self.by} end of an interval, which should decide."
            raise InvalidPredictions(message)
        return bounds.low if self.by == "lower" else bounds.high


def headline_error(data: Predictions | BinTable, *, norm: float = 1, level: float = 0.95) -> Estimate:
    """The calibration error of any task, as a probability, with its confidence interval: what gates decide on.

    Parameters
    ----------
    data : Predictions or fine BinTable
        Of several classes, the top label counts.
    norm : float
        For probabilities of an event or of the top label; other tasks have norm 1.
    level : float in (0, 1)

    Returns
    -------
    Estimate
        `averaged_error` for probabilities, `ece` in `calibrant.pu.PaperBins` for positive-unlabeled data,
        `interval_error` for predicted distributions, each with the default of `interval`.

    Examples
    --------
    >>> import numpy as np
    >>> import calibrant as cal
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(500)
    >>> headline_error(cal.Binary(rng.random(500) < p, p)).interval.low
    0.0
    """
    level = validation.fraction("level", level)
    task = task_of(data)
    if isinstance(data, Forecast):
        return interval(interval_error, data, level=level)
    if isinstance(task, Spread):
        message = "The coverage of predicted distributions needs the rows, not a table of their spreads."
        raise InvalidPredictions(message)
    if isinstance(task, Unlabeled):
        return interval(partial(ece, bins=PaperBins()), data, level=level)
    one = data.top_label() if isinstance(data, Multiclass) else data
    return interval(partial(averaged_error, norm=norm), one, level=level)


def headline_errors(
    parts: Mapping[Any, Predictions | BinTable], *, norm: float = 1, level: float = 0.95, adjusted: bool = True
) -> dict[Hashable, Estimate]:
    """`headline_error` of each group; `adjusted`, all intervals together hold with the level (Bonferroni).

    >>> import calibrant as cal
    >>> found = headline_errors({"at": cal.Binary([0, 1] * 50, [0.2, 0.7] * 50), "de": cal.Binary([0, 1], [0.4, 0.5])})
    >>> found["at"].n, round(found["at"].interval.level, 3)
    (100, 0.975)
    """
    level = validation.fraction("level", level)
    each = 1 - (1 - level) / max(1, len(parts)) if adjusted else level
    return {name: headline_error(part, norm=norm, level=each) for name, part in parts.items()}


def _number(value: float, name: str) -> float:
    if math.isnan(value):
        message = f"{name}: the result is NaN, so a gate cannot decide."
        raise InvalidPredictions(message)
    return value
