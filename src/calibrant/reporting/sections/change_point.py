"""Did calibration change at some time? A test that allows for the search over all points of time."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from calibrant.numerics.arrays import Floats

DRAWS = 999
#: The share of the variance that either side of a split needs: one odd period at an end is no change.
_LEAST_SHARE = 0.02


class ChangePoint(NamedTuple):
    """The first period after the most likely change, and the p-value of the largest statistic over all splits."""

    first: int
    p_value: float


class Residuals(NamedTuple):
    """Residuals, by period, of a model that is the same at all times and was fitted to all rows.

    Attributes
    ----------
    sums, variance : array (periods,)
        Sum of the residuals, and its variance.
    scores : array (periods, parameters)
        Covariance of the sum with the scores of the fitted parameters: the sum of v x.
    information : array (parameters, parameters)
    drawn, drawn_scores : array (periods, draws), array (parameters, draws)
        Sums of the residuals, and scores, of simulated samples of the model.
    """

    sums: Floats
    variance: Floats
    scores: Floats
    information: Floats
    drawn: Floats
    drawn_scores: Floats


def change_point(found: Residuals) -> ChangePoint | None:
    r"""The largest standardised sum of residuals before any split, ranked among those of simulated samples.

    With :math:`R_k` the sum of residuals up to period k, :math:`V_k` its variance, :math:`c_k` its covariance with the
    scores U of the fitted parameters, and H their information,

    .. math:: T = \max_k \frac{(R_k - c_k' H^{-1} U)^2}{V_k - c_k' H^{-1} c_k}.

    U is zero in the data, since the model was fitted to them; in simulated samples that term stands for the fit to
    each. The p-value is the rank of T, so that it allows for the search, and is at least 1 / (draws + 1). None where
    there is nothing to split.
    """
    inverse = np.linalg.pinv(found.information)
    before, variance = (np.cumsum(values, axis=0)[:-1] for values in (found.scores, found.variance))
    spread = variance - np.einsum("kp,pq,kq->k", before, inverse, before)
    share = variance / max(float(found.variance.sum()), 1e-300)
    allowed = (share >= _LEAST_SHARE) & (share <= 1 - _LEAST_SHARE) & (spread > 1e-9 * variance)
    if not allowed.any():
        return None
    sums = np.concatenate([found.sums[:, None], found.drawn], axis=1)
    scores = np.concatenate([np.zeros((len(inverse), 1)), found.drawn_scores], axis=1)
    bridge = np.cumsum(sums, axis=0)[:-1] - before @ inverse @ scores
    statistics = bridge[allowed] ** 2 / spread[allowed, None]
    largest = statistics.max(axis=0)
    p_value = (1 + np.count_nonzero(largest[1:] >= largest[0] * (1 - 1e-9))) / len(largest)
    return ChangePoint(int(np.flatnonzero(allowed)[statistics[:, 0].argmax()]) + 1, float(p_value))


def random_signs(parts: Floats, seed: int) -> Floats:
    """Sums over clusters of their parts (clusters by columns) with random signs: columns by draws."""
    signs = np.where(np.random.default_rng([seed, 5]).random((len(parts), DRAWS)) < 0.5, -1.0, 1.0)
    return np.asarray(parts.T @ signs)


def summed(index: NDArray[np.intp], values: Floats, size: int) -> Floats:
    """Sums of the rows of `values` with each index: size by columns."""
    return np.stack([total(index, column, size) for column in values.T], axis=1)


def total(index: NDArray[np.intp], values: Floats, size: int) -> Floats:
    """Sums of the values with each index."""
    return np.asarray(np.bincount(index, values, size), dtype=np.float64)
