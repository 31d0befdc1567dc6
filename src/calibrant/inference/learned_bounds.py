"""Lower bounds and tests of the calibration error from maps that were fitted to other rows."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from scipy.special import ndtri

from calibrant.data import validation
from calibrant.data.predictions import Multiclass, Predictions
from calibrant.data.validation import fail
from calibrant.estimators.cross_fitting import CrossFitted, Norm, multiclass_rows, recalibrated, size_bound
from calibrant.estimators.variational import variational_error
from calibrant.estimators.variational_engine import MIXED, SplitSampleBound
from calibrant.inference.multiplicity import first_rank, rank_p_values
from calibrant.numerics.arrays import Floats
from calibrant.numerics.confidence_limits import betting_lower_bound
from calibrant.numerics.random_draws import categorical_draws, generator
from calibrant.numerics.rows import all_alike, mean_and_error
from calibrant.results.estimate import Interval, Significance
from calibrant.results.target import Target
from calibrant.table.bintable import BinTable

#: Rows per part below which the first map has too little to learn from.
#: Test: tests/inference/test_learned_bounds.py::test_too_few_rows_and_other_tasks_are_refused.
_FEWEST = 4


def judged_parts(data: Multiclass, *, parts: int, seed: int, needed_by: str) -> Iterator[CrossFitted]:
    """For each part but the first: its rows with their probabilities by the default map fitted on the parts before."""
    if not isinstance(data, Multiclass):
        fail(f"{needed_by} needs Multiclass predictions, not {data!r}.")
    n = len(data) if data.weight is None else int(np.count_nonzero(data.weight))
    if n < _FEWEST * parts:
        fail(f"{needed_by} divides the rows into {parts} parts and needs {_FEWEST * parts} of them, got {n}.")
    rows = multiclass_rows(data, [1.0] * parts, [seed, parts])
    for part in range(1, parts):
        so_far = rows.take(rows.fold <= part)
        fitted = recalibrated(so_far, None, targets=[part])
        judged = fitted.take(fitted.fold == part)
        yield replace(judged, n=len(judged.weight))


_WHY = "a lower bound only: no upper bound of the error of whole vectors holds without assumptions on its form"


@dataclass(frozen=True)
class SequentialBound:
    r"""Lower confidence bound of the calibration error of whole vectors, in any norm.

    Rows are divided at random into parts. A map is fitted on the parts before part j and gives the rows of part j their
    contributions to the variational estimate (see `variational_error`). Given the earlier parts, their mean is at most
    the true error, whatever the map, so that all parts but the first bound it together:

    - exact (the default for independent rows without weights): the betting bound of Waudby-Smith and Ramdas, whose
      wealth is a supermartingale; it holds for every number of rows;
    - otherwise: mean - z standard errors, asymptotically valid without any inflation; rows of one group count as one.

    Compared with `SplitLowerBound` it judges four fifths of the rows instead of half of them.

    Parameters
    ----------
    exact : bool, optional
        By default wherever rows are independent and have no weights.
    parts : int
    seed : int
        Decides the parts.

    References
    ----------
    Waudby-Smith, Ramdas (2024), Estimating means of bounded random variables by betting. Berta, Braun, Holzmüller,
    Bach, Jordan (2026), A Variational Estimator for Calibration Errors.

    Examples
    --------
    >>> import calibrant as cal
    >>> rng = np.random.default_rng(0)
    >>> p = rng.dirichlet([1, 1, 1], 2000)
    >>> y = (rng.random((2000, 1)) > np.cumsum(p, axis=1)).sum(axis=1)
    >>> sharper = p**3 / (p**3).sum(axis=1, keepdims=True)  # the true error is 0.42
    >>> found = cal.interval(cal.variational_error, cal.Multiclass(y, sharper))
    >>> found.interval.side, bool(0.3 < found.interval.low < 0.42)
    ('lower', True)
    """

    serves: ClassVar[str] = "classes"
    quantity: ClassVar[str] = "true error"

    exact: bool | None = None
    parts: int = 5
    seed: int = 0

    def __post_init__(self) -> None:
        validation.seed(self.seed)
        validation.whole("parts", self.parts, minimum=2)

    def interval(self, data: Multiclass, *, norm: Norm = 1, level: float = 0.95) -> Interval:
        """The one-sided interval above the bound."""
        plain = data.group is None and data.weight is None
        exact = plain if self.exact is None else self.exact
        if exact and not plain:
            fail(
                "The exact bound needs independent rows without weights; use SequentialBound(exact=False).", ValueError
            )
        if norm == "squared":  # E d^2 >= (E d)^2, and contributions to E d have far less spread
            root = self.interval(data, norm=2, level=level)
            return replace(root, low=root.low**2, target=Target("true error", "squared", "vector"))
        judged = list(judged_parts(data, parts=self.parts, seed=self.seed, needed_by="SequentialBound"))
        size = float(-np.log(MIXED)) if norm == "kl" else size_bound(norm, judged[0].columns)
        if size is None:
            fail("SequentialBound needs bounded contributions: give the Distance a `bound`.", ValueError)
        values = [np.clip(_contributions(part, norm), -size, size) for part in judged]
        if exact:  # rows of one part in random order, since those of a file may be sorted
            rng = generator(self.seed, "order of bets")
            bets = np.concatenate([rng.permutation(part) for part in values])
            low = (2 * betting_lower_bound((bets + size) / (2 * size), 1 - level) - 1) * size
        else:
            clusters = [part.cluster for part in judged if part.cluster is not None]
            weight = np.concatenate([part.weight for part in judged])
            mean, error = mean_and_error(np.concatenate(values), weight, np.concatenate(clusters) if clusters else None)
            low = mean - float(ndtri(level)) * error
        how = "exact for any n" if exact else "approximate: many rows (or clusters)"
        unit = "rows" if data.group is None else "clusters"
        words, target = f"independent {unit}; {how}; {_WHY}", Target("true error", norm, "vector")
        return Interval(max(low, 0.0), math.inf, level, repr(self), side="lower", assumption=words, target=target)


def _contributions(rows: CrossFitted, norm: Norm) -> Floats:
    """Of each row; with "kl" the map is mixed with the predictions, so that no loss is unbounded."""
    if norm == "kl":
        rows = replace(rows, recalibrated=(1 - MIXED) * rows.fitted + MIXED * rows.predicted)
    return rows.contributions(norm)


@dataclass(frozen=True)
class LearnedTest(validation.Simulated):
    r"""Exact test of whole vectors: does a map that was fitted on some rows predict others better?

    Rows are divided at random into parts. A map g is fitted on all parts before part j and judged there by

    .. math:: T_j = \sum_{i \in j} \log\frac{g_{y_i}(p_i)}{p_{i,y_i}},

    whose null distribution is simulated by drawing labels from the predictions. Given the earlier parts its rank is
    uniform, so the normal scores of the ranks, summed with weights :math:`\sqrt{n_j}`, are ranked once more: an exact
    p-value, whatever the map. It has more power than `VectorTest` against interactions of classes, and less elsewhere.

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
        super().__post_init__()
        validation.whole("parts", self.parts, minimum=2)

    def test(self, data: Multiclass) -> Significance:
        """The p-value; the statistic is the standardised sum of normal scores."""
        if getattr(data, "group", None) is not None or not all_alike(data.weight):
            fail("LearnedTest needs independent rows of equal weight: it draws their labels one by one.")
        rng = generator(self.seed, "labels of a learned test")
        scores, squares = np.zeros(self.draws + 1), 0
        for part in judged_parts(data, parts=self.parts, seed=self.seed, needed_by="LearnedTest"):
            # labels that were called impossible count as an enormous gain, not an infinite one
            gain = np.log(np.maximum(part.fitted, 1e-300)) - np.log(np.maximum(part.predicted, 1e-300))
            lines = np.column_stack([part.observed.astype(np.intp), categorical_draws(part.predicted, self.draws, rng)])
            total = np.take_along_axis(gain, lines, axis=1).sum(axis=0)
            single = rank_p_values(total[:, None])[:, 0] * (len(total) / (len(total) + 1))
            scores += np.sqrt(part.n) * ndtri(1 - single)
            squares += part.n
        statistic = float(scores[0] / np.sqrt(squares))
        return Significance(statistic, first_rank(scores), method=repr(self), n=len(data), draws=self.draws)


@dataclass(frozen=True)
class SplitLowerBound:
    """A lower bound that assumes only independent rows: `SplitSampleBound` of the variational error.

    A map is fitted on a share `train` of the rows. Its expected gain on the other rows is at most the true error, and a
    lower confidence bound on that mean is valid for every n, model and map.

    Examples
    --------
    >>> import numpy as np
    >>> import calibrant as cal
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(3000)
    >>> found = cal.interval(cal.ece, cal.Binary(rng.random(3000) < p**3, p), method=SplitLowerBound())
    >>> found.interval.side, bool(0.1 < found.interval.low < 0.25)  # the true error is 1/4
    ('lower', True)
    """

    serves: ClassVar[str] = "error"
    any_norm: ClassVar[bool] = True

    train: float = 0.5
    seed: int = 0

    def interval(self, data: Predictions | BinTable, *, norm: Any = 1, level: float = 0.95) -> Interval:
        """The one-sided interval above the bound."""
        if isinstance(data, BinTable):
            fail("SplitLowerBound needs the predictions, not a table: it splits the rows.")
        bound = SplitSampleBound(level=level, train=self.train)
        least = 1 if norm == math.inf and not isinstance(data, Multiclass) else norm  # no gap is above the largest
        found = variational_error(data, norm=least, bound=bound, seed=self.seed).interval
        assert found is not None  # a bound was asked for
        return replace(found, low=max(found.low, 0.0), method=repr(self), target=Target("true error", norm))
