"""Errors of running sums: no bins at all."""

from __future__ import annotations

from typing import NamedTuple, Unpack

import numpy as np

from calibrant.data.predictions import Column, Columns, binary
from calibrant.numerics.sorting import running_gap_extremes
from calibrant.results.estimate import Estimate
from calibrant.results.target import estimates
from calibrant.table.bintable import BinTable
from calibrant.table.of_data import Data, fine


@estimates("cumulative error")
def ks_error(data: Data = None, y_prob: Column = None, **columns: Unpack[Columns]) -> Estimate:
    r"""Kolmogorov-Smirnov calibration error: the largest gap of the running sums of prediction and outcome.

    .. math:: \max_s \Bigl\lvert \frac1W \sum_{i : p_i \le s} w_i (p_i - y_i) \Bigr\rvert

    Needs no bins and no smoothing; at most the L1 calibration error. Errors of opposite sign at neighbouring scores
    cancel, so a small value does not prove calibration.

    References
    ----------
    Gupta, Rahimi, Ajanthan, Mensink, Sminchisescu, Hartley (2021), Calibration of Neural Networks using Splines;
    Arrieta-Ibarra, Gujral, Tannen, Tygert, Xu (2022), Metrics of Calibration for Probabilistic Predictions.

    Examples
    --------
    >>> ks_error([0, 0, 1, 1], [0.25, 0.25, 0.75, 0.75])
    <KS error 0.125, n=4, exact>
    """
    found = _running_gaps(data, y_prob, needed_by="ks_error")
    return Estimate(max(-found.lowest, found.highest), name="KS error", method="exact", n=found.n)


@estimates("cumulative range")
def kuiper_error(data: Data = None, y_prob: Column = None, **columns: Unpack[Columns]) -> Estimate:
    r"""Kuiper calibration error: the largest gap between prediction and outcome summed over any range of scores.

    .. math:: \max_{s} C(s) - \min_{s} C(s), \qquad C(s) = \frac1W \sum_{i : p_i \le s} w_i (p_i - y_i),
              \quad C(-\infty) = 0

    The range of the running sums whose largest size is `ks_error`, which it is between once and twice; like it, it
    needs no bins, and errors of opposite sign within the range cancel. Both are also known as empirical cumulative
    calibration errors: ECCE-R (this one) and ECCE-MAD (`ks_error`).

    References
    ----------
    Arrieta-Ibarra, Gujral, Tannen, Tygert, Xu (2022), Metrics of Calibration for Probabilistic Predictions.

    Examples
    --------
    >>> kuiper_error([0, 0, 1, 1], [0.25, 0.25, 0.75, 0.75])  # up by 1/8, then down to zero
    <Kuiper error 0.125, n=4, exact>
    """
    found = _running_gaps(data, y_prob, needed_by="kuiper_error")
    return Estimate(found.highest - found.lowest, name="Kuiper error", method="exact", n=found.n)


class _RunningGaps(NamedTuple):
    """The extremes of C(s), 0 at the outset included, and the number of rows."""

    lowest: float
    highest: float
    n: int


def _running_gaps(data: Data, y_prob: Column, *, needed_by: str) -> _RunningGaps:
    if not isinstance(data, BinTable):
        data = binary(data, y_prob)
        first, *_ = data.parts()
        if first.plain_binary:
            lowest, highest = running_gap_extremes(first)
            return _RunningGaps(lowest / len(first.key), highest / len(first.key), len(first.key))
    cells = fine(data, None, needed_by=needed_by)
    running = np.cumsum(cells.predicted - cells.observed * cells.observed_scale) / cells.total
    return _RunningGaps(min(float(running.min()), 0.0), max(float(running.max()), 0.0), cells.n)
