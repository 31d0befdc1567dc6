"""The integrated calibration index: how far a flexible calibration curve lies from the diagonal."""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from calibrant.estimators.norms import result
from calibrant.estimators.recalibration_framework import probability_cells
from calibrant.numerics.arrays import Floats
from calibrant.results.estimate import Estimate
from calibrant.results.target import estimates
from calibrant.table.binning import EqualMass
from calibrant.table.bintable import BinTable
from calibrant.table.of_data import Data

Curve = Literal["smooth", "loess"]

#: The most cells of neighbouring scores on which loess is fitted, each with its own window.
LOESS_CELLS = 1024


@estimates("true error", norm=1)
def ici(data: Data, y_prob: ArrayLike | None = None, /, *, curve: Curve = "smooth") -> Estimate:
    r"""Integrated calibration index: mean distance between predictions and a flexible calibration curve ĝ.

    .. math:: \mathrm{ICI} = \frac1W \sum_i w_i \lvert p_i - \hat g(p_i) \rvert

    ``details`` holds the median, the 90 % quantile and the maximum of the same distances as "E50", "E90" and "Emax".
    The curve is fitted to the same rows, not cross-fitted, as the literature does: noise that it follows counts as
    distance, so that the ICI of a calibrated model is above 0. The target is the true L1 error, and `interval` gives
    the same interval as for `ece`, which allows for that noise.

    Parameters
    ----------
    data : Binary, fine BinTable, or y_true
    curve : {"smooth", "loess"}
        "smooth" is the average of penalised logistic splines behind `calibrant.recalibrate.Smoothed` (without its
        isotonic steps), which shrinks to the diagonal what the rows cannot show. "loess" is a local quadratic
        regression of the outcomes on the probabilities with span 0.75, for comparison with published values; it is
        fitted at every score (beyond 1024 scores, at 1024 cells of them) where R interpolates between a few, and
        may leave [0, 1].

    References
    ----------
    Austin, Steyerberg (2019), The Integrated Calibration Index (ICI) and related metrics for quantifying the
    calibration of logistic regression models.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(2000)
    >>> found = ici(rng.random(2000) < p**2, p)  # the distances p - p² have mean 1/6 and maximum 1/4
    >>> round(found, 2), round(found.details["Emax"], 2)
    (0.17, 0.28)
    """
    if curve not in get_args(Curve):
        message = f"curve must be 'smooth' or 'loess', got {curve!r}."
        raise ValueError(message)
    cells = probability_cells(data, y_prob, needed_by="ici")
    some = cells if curve == "smooth" or len(cells) <= LOESS_CELLS else cells.coarsen(EqualMass(LOESS_CELLS)).filled()
    distance = np.abs(some.predicted_mean - (_smooth(some) if curve == "smooth" else _loess(some)))
    order = np.argsort(distance)
    running = np.cumsum(some.weight[order]) / some.total
    middle, high = (float(distance[order][np.searchsorted(running, q - 1e-12)]) for q in (0.5, 0.9))
    words = "smooth curve" if curve == "smooth" else "loess, span 0.75, degree 2"
    largest = float(distance.max())
    return result(float(some.share @ distance), "ICI (L1)", words, cells, E50=middle, E90=high, Emax=largest)


def _smooth(cells: BinTable) -> Floats:
    from calibrant.numerics.smoothers import LogitBins, SmootherAverage, raw_logit

    unit = cells.total / float(cells.weight_squares.sum())
    raw = raw_logit(cells.predicted_mean)
    bins = LogitBins.of(raw, cells.weight * unit)
    ones = np.bincount(bins.index(raw), cells.observed * unit, len(bins)).astype(np.float64)
    none = np.zeros(len(bins))
    zeros = np.maximum(bins.mass - ones, 0.0)
    # The second fold, which is left out, is empty.
    return SmootherAverage.fit(bins, np.stack([ones, none]), np.stack([zeros, none]), [1]).predict(0, raw)


def _loess(cells: BinTable) -> Floats:
    from calibrant.numerics.local_regression import loess

    return loess(cells.predicted_mean, cells.observed_mean, cells.share)
