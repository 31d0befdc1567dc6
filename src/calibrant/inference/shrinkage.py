"""Estimates of many groups drawn towards their mean: small groups look extreme mostly by chance."""

from __future__ import annotations

import numpy as np

from calibrant.numerics.arrays import Floats


def shrunk(values: Floats, error: Floats) -> Floats:
    r"""Empirical Bayes estimates of groups with these standard errors.

    .. math:: m + (e_g - m) \frac{\tau^2}{\tau^2 + s_g^2}, \qquad
              \tau^2 = \max\Bigl(0,
              \frac{\sum_g w_g (e_g - m)^2 - (G - 1)}{\sum_g w_g - \sum_g w_g^2 / \sum_g w_g}\Bigr), \quad
              w_g = s_g^{-2}, \quad m = \frac{\sum_g w_g e_g}{\sum_g w_g}

    References
    ----------
    DerSimonian, Laird (1986), Meta-analysis in clinical trials; Efron, Morris (1975), Data Analysis Using Stein's
    Estimator and its Generalizations.

    Examples
    --------
    >>> shrunk(np.array([0.0, 0.1, 0.5]), np.array([0.01, 0.01, 0.5])).round(2)
    array([0.  , 0.1 , 0.06])
    """
    weight = 1 / np.maximum(error**2, 1e-18)
    mean = float(weight @ values / weight.sum())
    excess = float(weight @ (values - mean) ** 2) - (len(values) - 1)
    between = max(0.0, excess / float(weight.sum() - (weight**2).sum() / weight.sum())) if len(values) > 1 else 0.0
    kept = between / (between + error**2) if between > 0 else np.zeros(len(values))
    return np.asarray(mean + kept * (values - mean))
