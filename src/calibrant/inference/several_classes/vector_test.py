"""The default test for several classes: is the whole vector of probabilities calibrated?"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from calibrant.data import validation
from calibrant.data.predictions import Multiclass
from calibrant.data.validation import InvalidPredictions
from calibrant.inference.hypothesis_tests.combination import cauchy_rank, rank_p_values
from calibrant.inference.several_classes.vector_looks import WEIGHTS, Layout, gaps_of_labels, statistics
from calibrant.numerics.arrays import Floats, row_blocks
from calibrant.numerics.weights import all_alike
from calibrant.results.estimate import Significance

#: Draws by default, and beyond so many rows.
DRAWS, FEWER_DRAWS, MANY_ROWS = 999, 499, 20_000


@dataclass(frozen=True)
class VectorTest:
    r"""Exact test that whole vectors of class probabilities are calibrated: many statistics combined.

    The hypothesis is :math:`Y_i \mid p_i \sim \mathrm{Cat}(p_i)` for independent rows. Labels are drawn from the
    predicted probabilities, and for the observed and for all drawn labels the same statistics are computed, with
    gaps d = observed - expected, variances v under the hypothesis and :math:`\tilde z` the log probabilities less
    their mean :math:`\sum_k p_k z_k`:

    - confidence: :math:`d_k = \sum_i \tilde z_{ik}(1\{y_i = k\} - p_{ik})` of each class, :math:`d_k^2/v_k` summed over
      classes and of the worst class; and the square of their sum (one temperature for all);
    - surprises: :math:`\sum_i 1/p_{i,y_i}`, the score test of labels that are noisier than predicted;
    - pooled: all n K pairs of a probability and its outcome, in halvings of p and of 1 - p;
    - class frequencies: each class in 1, 2 and 4 bins of its probability, all classes and the worst;
    - rank of the true class (first, second, third, later) in 8 and 32 bins of the top probability;
    - confusion: predicted class against outcome (beyond 128 classes against the rank of the outcome), all pairs and
      the worst.

    Each becomes a p-value by its rank among the draws; these are combined by a weighted
    :math:`\sum_j \omega_j\cot(\pi p_j)`, and the p-value is the rank of that sum. It is exact for every number of rows
    and classes, also where probabilities are 0, and at least 1 / (draws + 1). The single p-values are in ``details``,
    smallest first: they say in what respect predictions and labels disagree, and are not adjusted for their number.

    Parameters
    ----------
    draws : int, optional
        Number of simulated samples; by default 999, and 499 beyond 20,000 rows.
    seed : int

    Notes
    -----
    Errors that only few of many classes have, and interactions between classes, are hard to see for every test at
    moderate size: a large p-value does not prove calibration. `by_class` names the classes; `LearnedTest` has more
    power against interactions. Level and power are in reproduce/results/multiclass.md.

    References
    ----------
    Vaicenavicius, Widmann, Andersson, Lindsten, Roll, Schön (2019), Evaluating model calibration in classification,
    for the hypothesis and consistency resampling. Liu, Xie (2020), Cauchy combination test.

    Examples
    --------
    >>> import calibrant as cal
    >>> rng = np.random.default_rng(0)
    >>> p = rng.dirichlet([1, 1, 1], 1000)
    >>> y = (rng.random((1000, 1)) > np.cumsum(p, axis=1)).sum(axis=1)
    >>> cal.calibration_test(cal.Multiclass(y, p)).p_value > 0.05
    True
    >>> sharper = p**2 / (p**2).sum(axis=1, keepdims=True)
    >>> found = cal.calibration_test(cal.Multiclass(y, sharper))
    >>> found.p_value, found.details["temperature of all classes"]
    (0.001, 0.001)
    """

    draws: int | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        validation.seed(self.seed)
        if self.draws is not None:
            validation.whole("draws", self.draws)

    def test(self, data: Multiclass) -> Significance:
        """The p-value; the statistic is the smallest single p-value."""
        probability, labels = independent_rows(data, needed_by="VectorTest")
        draws = default_draws(len(labels)) if self.draws is None else self.draws
        layout = Layout.of(probability)
        found = statistics(layout, gaps_of_labels(layout, labels, draws, np.random.default_rng(self.seed)))
        names = [name for name in WEIGHTS if name in found]
        single = rank_p_values(np.stack([found[name] for name in names], axis=1))
        p_value = cauchy_rank(single, np.array([WEIGHTS[name] for name in names]))
        details = dict(sorted(zip(names, single[0].tolist(), strict=True), key=lambda look: look[1]))
        return Significance(float(single[0].min()), p_value, method=repr(self), n=len(labels), details=details)


def default_draws(rows: int) -> int:
    """Number of simulated samples where none was asked for."""
    return DRAWS if rows <= MANY_ROWS else FEWER_DRAWS


def independent_rows(data: Multiclass, *, needed_by: str) -> tuple[Floats, NDArray[np.intp]]:
    """Probabilities that sum to 1 and labels, in an order that does not depend on that of the rows.

    Labels are drawn row by row, which is right for independent rows only; weights are refused because the draws would
    answer for the sampled rows and not for the population that the weights stand for.
    """
    if not isinstance(data, Multiclass):
        message = f"{needed_by} needs Multiclass predictions, not {data!r}."
        raise InvalidPredictions(message)
    if data.group is not None:
        message = f"{needed_by} needs independent rows, but these have a group; take one row per group."
        raise InvalidPredictions(message)
    if not all_alike(data.weight):
        message = f"{needed_by} needs rows of equal weight; leave the weights out to test the sampled rows themselves."
        raise InvalidPredictions(message)
    sums = data.y_prob.sum(axis=1, dtype=np.float64)
    order = np.lexsort((data.y_true, *(data.y_prob[:, :4] / sums[:, None]).T[::-1]))
    p = np.empty(data.y_prob.shape)
    for rows in row_blocks(len(p), data.y_prob.shape[1]):
        p[rows] = data.y_prob[order[rows]] / sums[order[rows], None]
    return p, data.y_true[order]
