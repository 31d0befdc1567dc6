"""A test of whole vectors by maps that were learned on other rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calibrant.data import validation
from calibrant.data.predictions import Multiclass
from calibrant.data.validation import InvalidPredictions
from calibrant.inference.hypothesis_tests.combination import rank_p_values
from calibrant.inference.several_classes.sequential_maps import judged_parts, labels_of
from calibrant.numerics.arrays import Floats
from calibrant.numerics.draws import categorical_draws
from calibrant.numerics.weights import all_alike
from calibrant.results.estimate import Significance


@dataclass(frozen=True)
class LearnedTest:
    r"""Exact test of whole vectors: does a map that was fitted on some rows predict others better?

    Rows are divided at random into parts. A map g is fitted on all parts before part j and judged there by

    .. math:: T_j = \sum_{i \in j} \log\frac{g_{y_i}(p_i)}{p_{i,y_i}},

    whose null distribution is drawn with labels from the predictions. Given the earlier parts its rank is uniform, so
    the normal scores of the ranks, summed with weights :math:`\sqrt{n_j}`, are ranked once more: an exact p-value,
    whatever the map. It has more power than `VectorTest` against interactions of classes, and less elsewhere.

    Parameters
    ----------
    draws : int
        Number of simulated samples.
    parts : int
    seed : int
        Decides the parts and the draws.

    References
    ----------
    Howard, Ramdas, McAuliffe, Sekhon (2021), Time-uniform, nonparametric, nonasymptotic confidence sequences, for
    inference given the past.

    Examples
    --------
    >>> import calibrant as cal
    >>> rng = np.random.default_rng(0)
    >>> p = rng.dirichlet([1, 1, 1], 600)
    >>> y = (rng.random((600, 1)) > np.cumsum(p, axis=1)).sum(axis=1)
    >>> sharper = p**3 / (p**3).sum(axis=1, keepdims=True)
    >>> cal.calibration_test(cal.Multiclass(y, sharper), method=LearnedTest(199)).p_value
    0.005
    """

    draws: int = 999
    parts: int = 5
    seed: int = 0

    def __post_init__(self) -> None:
        validation.seed(self.seed)
        validation.whole("draws", self.draws)
        validation.whole("parts", self.parts, minimum=2)

    def test(self, data: Multiclass) -> Significance:
        """The p-value; the statistic is the standardised sum of normal scores."""
        from scipy.special import ndtri

        if getattr(data, "group", None) is not None or not all_alike(data.weight):
            message = "LearnedTest needs independent rows of equal weight: it draws their labels one by one."
            raise InvalidPredictions(message)
        rng = np.random.default_rng(self.seed)
        scores, squares = np.zeros(self.draws + 1), 0
        for part in judged_parts(data, parts=self.parts, seed=self.seed, needed_by="LearnedTest"):
            gain = _log_gain(part.predicted, part.fitted)
            lines = np.column_stack([labels_of(part), categorical_draws(part.predicted, self.draws, rng)])
            total = np.take_along_axis(gain, lines, axis=1).sum(axis=0)
            single = rank_p_values(total[:, None])[:, 0] * (len(total) / (len(total) + 1))
            scores += np.sqrt(part.n) * ndtri(1 - single)
            squares += part.n
        p_value = float(np.mean(scores >= scores[0] - 1e-9 * abs(scores[0])))
        return Significance(float(scores[0] / np.sqrt(squares)), p_value, method=repr(self), n=len(data))


def _log_gain(predicted: Floats, fitted: Floats) -> Floats:
    """Log ratio per class; labels that were called impossible count as an enormous gain, not an infinite one."""
    return np.asarray(np.log(np.maximum(fitted, 1e-300)) - np.log(np.maximum(predicted, 1e-300)))
