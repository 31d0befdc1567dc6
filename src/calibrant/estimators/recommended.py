"""`calibration_error`: the number that is recommended for each task, and that reports and gates print first."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, get_args

import numpy as np

from calibrant.data.forecasts import Forecast, Quantiles
from calibrant.data.predictions import Column, Multiclass, Predictions
from calibrant.estimators.averaged import averaged_error
from calibrant.estimators.averaged import of_samples as averaged_errors
from calibrant.estimators.binned import ece
from calibrant.numerics.arrays import Floats
from calibrant.numerics.equal_mass import SortedSamples
from calibrant.results.estimate import Estimate
from calibrant.results.target import estimates
from calibrant.table.binning import PaperBins
from calibrant.table.bintable import BinTable
from calibrant.table.of_data import Data
from calibrant.table.task import Spread, Unlabeled, task_of

Choice = Literal["averaged", "variational", "binned", "spread", "coverage"]
"""What `calibration_error` takes as `method=`."""


def _of_samples(samples: SortedSamples, *, norm: Any = 1, method: Choice | None = None, **options: Any) -> Floats:
    """`calibration_error` of each sample."""
    if recommended(None, norm) == "averaged" if method is None else method == "averaged":
        return averaged_errors(samples, norm=norm, **options)
    pairs = zip(samples.outcome, samples.key, strict=True)
    return np.array([float(calibration_error(y, p, norm=norm, method=method, **options)) for y, p in pairs])


@estimates("true error", batched=_of_samples)
def calibration_error(
    data: Data = None, y_prob: Column = None, *, norm: Any = 1, method: Choice | None = None, **options: Any
) -> Estimate:
    r"""The calibration error that is recommended for the task: how far predictions are from the truth, on average.

    .. math:: \bigl(\mathrm E\lvert f - \mathrm E[Y \mid f]\rvert^q\bigr)^{1/q}

    for one probability f of an outcome Y, with q the `norm`; the mean length of the difference for a vector of class
    probabilities. ``interval(calibration_error, data)`` adds a confidence interval for this true error. The name is
    always "Calibration error", and `Estimate.method` says how it was estimated.

    Parameters
    ----------
    data : Predictions, BinTable, or y_true
        With plain arrays, `y_prob` comes next.
    norm : float >= 1, inf, "squared", "kl", or Distance
        As far as the method has it.
    method : optional
        "averaged" : `averaged_error`, the default for one probability (binary predictions, top labels, their fine
        tables) in L1 and L2: on average nearest to the truth. "variational" : `variational_error`, the default for
        multiclass vectors and all other norms: a lower bound in expectation. "binned" : `ece`, the default in L1 for
        positive-unlabeled data, with `calibrant.pu.PaperBins`. "spread" : `ence`, the relative error of predicted
        spreads, the default for forecasts that have them. "coverage" : `interval_error`, the error of the coverage of
        central intervals, the default for quantiles.
    **options
        Those of the method: ``calibration_error(data, method="binned", bins=EqualWidth(15))``.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(2000)
    >>> y = rng.random(2000) < p**2  # the true error is 1/6
    >>> calibration_error(y, p)
    <Calibration error (L1) 0.16..., n=2_000, averaged smooth curves>
    >>> calibration_error(y, p, method="binned", n_bins=10)
    <Calibration error (L1) 0.1..., n=2_000, binned, EqualMass(n_bins=10)>
    """
    chosen = recommended(data, norm) if method is None else method
    if chosen not in get_args(Choice):
        message = f"method must be {', '.join(map(repr, get_args(Choice)))}, got {method!r}."
        raise ValueError(message)
    if chosen == "spread":
        return _of_spread(data, norm, options)
    if chosen == "binned" and _is_unlabeled(data) and not options.keys() & {"bins", "n_bins"}:
        options = {**options, "bins": PaperBins()}
    found = _estimator(chosen)(data, y_prob, norm=norm, **options)
    _, _, words = found.name.rpartition(" (")
    if chosen == "coverage":
        return found.renamed(f"Calibration error (coverage, {words}", f"coverage, {found.method}")
    name = _NAMES["score" if found.target is None else found.target.of]
    return found.renamed(f"{name} ({words}", found.method if chosen == "averaged" else f"{chosen}, {found.method}")


#: What is estimated, by whose error it is.
_NAMES = {
    "score": "Calibration error",
    "vector": "Calibration error",
    "confidence": "Confidence calibration error",
    "confidence given vector": "Confidence calibration error given the vector",
}


def recommended(data: Data, norm: Any = 1) -> Choice:
    """The method for the task of some data; that of one probability for plain arrays.

    >>> import calibrant as cal
    >>> recommended(cal.Binary([0, 1], [0.2, 0.7])), recommended(cal.Gaussian([0.0], [0.0], [1.0]))
    ('averaged', 'spread')
    """
    if isinstance(data, Quantiles):
        return "coverage"
    if isinstance(data, Forecast) or (isinstance(data, BinTable) and isinstance(data.task, Spread)):
        return "spread"
    if _is_unlabeled(data):
        return "binned" if norm == 1 else "variational"
    tables = isinstance(data, list | tuple) and len(data) > 0 and isinstance(data[0], BinTable)
    return "variational" if isinstance(data, Multiclass) or tables or norm not in (1, 2) else "averaged"


def _is_unlabeled(data: Data) -> bool:
    return isinstance(data, Predictions | BinTable) and isinstance(task_of(data), Unlabeled)


def _estimator(chosen: Choice) -> Callable[..., Estimate]:
    """The estimator, loaded only where it is needed."""
    if chosen == "coverage":
        from calibrant.estimators.regression_coverage import interval_error

        return interval_error
    if chosen == "variational":
        from calibrant.estimators.variational import variational_error

        return variational_error
    return averaged_error if chosen == "averaged" else ece


def _of_spread(data: Any, norm: Any, options: dict[str, Any]) -> Estimate:
    from calibrant.estimators.regression_spread import ence

    if norm != 1:
        message = (
            f"The error of predicted spreads has norm 1, got {norm!r}; see debiased_ence for the root mean square."
        )
        raise ValueError(message)
    found = ence(data, **options)
    return found.renamed("Calibration error (ENCE)", f"spread, {found.method}")
