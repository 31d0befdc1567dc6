"""Errors of running sums: no bins at all."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from calibrant.estimators.norms import result
from calibrant.results.estimate import Estimate
from calibrant.results.target import estimates
from calibrant.table.of_data import Data, fine


@estimates("cumulative error")
def ks_error(data: Data, y_prob: ArrayLike | None = None, /) -> Estimate:
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
    cells = fine(data, y_prob, needed_by="ks_error")
    running = np.cumsum(cells.predicted - cells.observed * cells.observed_scale)
    return result(np.abs(running).max() / cells.total, "KS error", "exact", cells)
