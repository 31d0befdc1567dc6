"""How well scores rank: no part of calibration, but what a repair must not destroy."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from calibrant.results.estimate import Estimate
from calibrant.results.target import estimates
from calibrant.table.of_data import Data, fine


@estimates("ranking")
def auc(data: Data, y_prob: ArrayLike | None = None, /) -> Estimate:
    r"""Area under the ROC curve: the probability that a positive outranks a negative, ties counting half.

    On positive-unlabeled data the comparison is with the whole population, of which the share π is positive, and

    .. math:: \mathrm{AUC} = \frac{\mathrm P(p_P > p_U) + \frac12 \mathrm P(p_P = p_U) - \pi/2}{1 - \pi}.

    References
    ----------
    Menon, van Rooyen, Ong, Williamson (2015), Learning from Corrupted Binary Labels via Class-Probability Estimation.

    Examples
    --------
    >>> auc([0, 1, 0, 1], [0.1, 0.4, 0.4, 0.8])
    <AUC 0.875, n=4, exact>
    >>> import calibrant as cal
    >>> auc(cal.PositiveUnlabeled([0.4, 0.8], [0.1, 0.4, 0.4, 0.8], prior=0.5))
    <AUC 0.875, n=6, exact>
    """
    cells = fine(data, y_prob, needed_by="auc")
    positives, negatives = cells.outcome_weights
    below = np.cumsum(negatives) - negatives / 2
    if not (positives.any() and negatives.any()):
        message = "auc needs both outcomes, but all rows have the same."
        raise ValueError(message)
    value = float(positives @ below) / float(positives.sum() * negatives.sum())
    return Estimate(value, name="AUC", method="exact", n=cells.n)
