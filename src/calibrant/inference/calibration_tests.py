"""`calibration_test`, the classical tests (Spiegelhalter, Hosmer-Lemeshow, ...), and the score test of clusters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, Unpack, get_args

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtrc, fdtrc, ndtr

from calibrant.data import validation
from calibrant.data.forecasts import Forecast
from calibrant.data.judged import Judged
from calibrant.data.predictions import Binary, Column, Columns, Multiclass, Predictions, binary
from calibrant.data.validation import fail
from calibrant.estimators.validation_study import joint_fit, recalibration_line
from calibrant.inference.forecast_tests import ForecastTest
from calibrant.inference.forecasts import MeanSquaredZ, Moments, PitUniformity, SpreadChiSquare
from calibrant.inference.groupings import Grouping
from calibrant.inference.learned_bounds import LearnedTest
from calibrant.inference.multiclass_tests import VectorTest
from calibrant.inference.multiplicity import first_rank
from calibrant.inference.multiscale import LIMIT, MultiScale
from calibrant.inference.sample import LEAST_CLUSTERS, Sample, cluster_labels, require_clusters
from calibrant.numerics.arrays import Floats, log_odds
from calibrant.numerics.cells import PooledCells
from calibrant.numerics.random_draws import generator
from calibrant.numerics.rows import design_effects
from calibrant.pu.binned_inference import PUScore
from calibrant.results.estimate import Significance
from calibrant.results.target import takes_columns
from calibrant.table.binning import Cut, EqualMass
from calibrant.table.bintable import BinTable, Data, binned
from calibrant.table.task import Unlabeled, task_of


@dataclass(frozen=True)
class Spiegelhalter:
    r"""Test of the Brier score against its expectation under calibration; z is standard normal if calibrated.

    .. math:: z = \frac{\sum (y - p)(1 - 2p)}{\sqrt{\sum (1 - 2p)^2 p(1-p)}}

    It has no power against errors at p = 1/2. With weights, the sums are weighted by w and w².

    References
    ----------
    Spiegelhalter (1986), Probabilistic prediction in patient management and clinical trials.

    Examples
    --------
    >>> import calibrant as cal
    >>> cal.calibration_test([0, 1] * 100, [0.2, 0.9] * 100, method=Spiegelhalter())
    <Spiegelhalter z: statistic -5.893, p = 3.803e-09, n=200>
    """

    def test(self, data: Predictions | BinTable) -> Significance:
        """Two-sided."""
        table = Sample.of(data, needed_by="Spiegelhalter").table
        p = table.predicted_mean
        total = float((1 - 2 * p) @ (table.observed - table.predicted))
        variance = float((1 - 2 * p) ** 2 * p * (1 - p) @ table.weight_squares)
        z = total / np.sqrt(variance) if variance > 0 else (0.0 if abs(total) < 1e-12 else np.inf)
        return Significance(float(z), float(2 * ndtr(-abs(z))), method="Spiegelhalter z", n=table.n)


@dataclass(frozen=True)
class HosmerLemeshow:
    r"""Chi-square test over bins: :math:`\sum_k n_k (\bar y_k - \bar p_k)^2 / \bar p_k(1-\bar p_k)`.

    For models that were not fitted on these rows, so with as many degrees of freedom as bins (two fewer for a model
    tested on its training rows: ``ddof=2``). Needs at least a few expected events per bin; `MultiScale` does not.

    References
    ----------
    Hosmer, Lemeshow (1980), Goodness of fit tests for the multiple logistic regression model.

    Examples
    --------
    >>> import numpy as np
    >>> import calibrant as cal
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(1000)
    >>> data = cal.Binary(rng.random(1000) < 0.5 + 0.6 * (p - 0.5), p)
    >>> cal.calibration_test(data, method=cal.inference.HosmerLemeshow()).p_value < 0.05
    True
    """

    bins: Cut | int = EqualMass(10)
    ddof: int = 0

    def test(self, data: Predictions | BinTable) -> Significance:
        """Large values are evidence against calibration."""
        table, words = binned(data, None, self.bins)
        some = table.filled()
        p = some.predicted_mean
        variance = p * (1 - p) / some.effective_count
        gap = some.observed_mean - p
        with np.errstate(divide="ignore", invalid="ignore"):
            terms = np.where(gap == 0, 0.0, gap**2 / variance)
        freedom = max(len(some) - self.ddof, 1)
        statistic = float(terms.sum())
        p_value = float(chdtrc(freedom, statistic)) if np.isfinite(statistic) else 0.0
        return Significance(statistic, p_value, method=f"Hosmer-Lemeshow, {words}, {freedom} df", n=table.n)


@dataclass(frozen=True)
class KolmogorovSmirnov(validation.Simulated):
    r"""Largest running gap, :math:`\max_t |\sum_{p_i \le t} w_i (y_i - p_i)| / W`, with a simulated null distribution.

    References
    ----------
    Gupta et al. (2021), Calibration of Neural Networks using Splines; Tygert (2023) for the test.

    Examples
    --------
    >>> import numpy as np
    >>> import calibrant as cal
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(1000)
    >>> data = cal.Binary(rng.random(1000) < 0.5 + 0.6 * (p - 0.5), p)
    >>> cal.calibration_test(data, method=cal.inference.KolmogorovSmirnov()).p_value < 0.05
    True
    """

    draws: int = 999
    seed: int = 0

    def test(self, data: Predictions | BinTable) -> Significance:
        """The rank of the largest gap among those of the simulated samples."""
        cells = Sample.of(data, needed_by="KolmogorovSmirnov").pooled(512)
        drawn = _drawn(cells, self.draws, self.seed)
        running = np.abs(np.cumsum((drawn - cells.predicted) * cells.share, axis=1)).max(axis=1)
        return Significance(float(running[0]), first_rank(running), method=repr(self), n=cells.n, draws=self.draws)


@dataclass(frozen=True)
class KernelTest(validation.Simulated):
    r"""Squared kernel calibration error with the Laplace kernel, with a simulated null distribution.

    .. math:: \sum_{i, j} r_i r_j\, e^{-|p_i - p_j| / h}, \qquad r = w(y - p)

    The bandwidth h is by default the median distance between scores. Pairs of a row with itself are included: under the
    null hypothesis their expectation is a constant.

    References
    ----------
    Widmann, Lindsten, Zachariah (2019), Calibration tests in multi-class classification.

    Examples
    --------
    >>> import numpy as np
    >>> import calibrant as cal
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(1000)
    >>> data = cal.Binary(rng.random(1000) < 0.5 + 0.6 * (p - 0.5), p)
    >>> cal.calibration_test(data, method=cal.inference.KernelTest()).p_value < 0.05
    True
    """

    bandwidth: float | None = None
    draws: int = 999
    seed: int = 0

    def test(self, data: Predictions | BinTable) -> Significance:
        """The rank of the statistic among those of the simulated samples."""
        cells = Sample.of(data, needed_by="KernelTest").pooled(256)
        distance = np.abs(cells.predicted[:, None] - cells.predicted)
        width = _median_distance(distance, cells.share) if self.bandwidth is None else self.bandwidth
        kernel = np.exp(-distance / width) if width > 0 else np.ones_like(distance)
        residual = (_drawn(cells, self.draws, self.seed) - cells.predicted) * cells.share
        values = np.einsum("rc,rc->r", residual @ kernel, residual)
        return Significance(float(values[0]), first_rank(values), method=repr(self), n=cells.n, draws=self.draws)


@dataclass(frozen=True)
class Cox:
    r"""Joint test that the logistic regression of the outcomes on the log-odds has slope 1 and intercept 0.

    .. math:: \operatorname{logit} P(Y = 1) = a + b \operatorname{logit} p

    by the likelihood ratio, with two degrees of freedom. The result has a and b in ``details`` ("intercept", "slope");
    their intervals are those of `calibrant.calibration_intercept` and `calibrant.calibration_slope`. Scores of exactly
    0 and 1 carry no information about a and b and are left out; if one of them is wrong, which is impossible under
    calibration, the p-value is 0.

    References
    ----------
    Cox (1958), Two further applications of a model for binary regression; Miller, Hui, Tierney (1991).

    Examples
    --------
    >>> import calibrant as cal
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=5000)
    >>> data = cal.Binary(rng.random(5000) < 1 / (1 + np.exp(-x)), 1 / (1 + np.exp(-2 * x)))  # twice too confident
    >>> found = Cox().test(data)
    >>> round(found.details["slope"], 1), found.p_value < 0.001
    (0.5, True)
    """

    def test(self, data: Predictions | BinTable) -> Significance:
        """Likelihood ratio against chi square with two degrees of freedom."""
        table = Sample.of(data, needed_by="Cox").table
        p = table.predicted_mean
        inside = (p > 0) & (p < 1)
        if np.any((p <= 0) & (table.observed > 0)) or np.any((p >= 1) & (table.observed < table.weight)):
            return Significance(np.inf, 0.0, method="Cox slope and intercept", n=table.n)
        if not inside.any():
            return Significance(0.0, 1.0, method="Cox slope and intercept", n=table.n)
        line, _ = recalibration_line(table)
        a, b = joint_fit(line)
        gain = max(line.loss(0.0, 1.0) - line.smallest_loss(), 0.0)
        words = f"Cox intercept {a:.3g} and slope {b:.3g}"
        details = {"intercept": a, "slope": b}
        return Significance(2 * gain, float(chdtrc(2, 2 * gain)), method=words, n=table.n, details=details)


def _drawn(cells: PooledCells, size: int, seed: int) -> Floats:
    """The observed outcomes, then simulated ones of a calibrated model, one sample per row."""
    drawn = cells.outcomes(np.clip(cells.predicted, 0.0, 1.0), size, generator(seed, "classical tests"))
    return np.concatenate([cells.observed[None], drawn.T])


def _median_distance(distance: Floats, share: Floats) -> float:
    pairs = np.outer(share, share).ravel()
    order = np.argsort(distance, axis=None)
    at = int(np.searchsorted(np.cumsum(pairs[order]), pairs.sum() / 2))
    return float(distance.ravel()[order[min(at, len(order) - 1)]])


@dataclass(frozen=True, eq=False)
class ClusteredRows:
    """The rows (by number) in the order of their clusters, without those of weight 0; sorted once for all groupings."""

    row: NDArray[np.intp]
    cluster: NDArray[np.intp]
    p: Floats
    y: NDArray[np.int8]
    weight: Floats
    odds: Floats

    @classmethod
    def of(cls, data: Binary) -> ClusteredRows:
        """From rows with a group."""
        cluster = cluster_labels(data, len(data))
        row = np.argsort(cluster, kind="stable")
        if data.weight is not None:
            row = row[data.weight[row] > 0]
        p = data.y_prob[row].astype(np.float64)
        weight = np.ones(len(row)) if data.weight is None else data.weight[row].astype(np.float64)
        return cls(row, cluster[row], p, data.y_true[row], weight, np.clip(log_odds(p), -LIMIT, LIMIT))

    def sums(self, grouping: Grouping | None = None) -> ClusterSums:
        """The sums of every group, all of whose rows may not have weight 0; without a grouping, of all rows."""
        index = np.zeros(len(self.row), np.intp) if grouping is None else grouping.index[self.row]
        groups = 1 if grouping is None else len(grouping.names)
        order = np.argsort(index.astype(np.min_scalar_type(groups)), kind="stable")  # few bytes are sorted by counting
        group, cluster = index[order], self.cluster[order]
        if grouping is not None:
            grouping.require_all(np.bincount(group, minlength=groups) > 0)
        p, weight, odds = (column[order] for column in (self.p, self.weight, self.odds))
        odds, columns = _centred(odds, group)
        score, noise = weight * (self.y[order] - p), weight**2 * p * (1 - p)
        first, pair, reach = _firsts(group), _firsts(group, cluster), np.sqrt(noise)
        size, most = np.add.reduceat(weight, pair), np.add.reduceat(reach, pair)
        scores = _sums_from(pair, score, score * odds)
        products = _sums_from(pair, score**2, score * reach, noise, noise**2)
        covariance = _matrices(*_sums_from(first, noise, noise * odds, noise * odds**2))
        return ClusterSums(group[pair], scores, size, most, products, columns, covariance)


@dataclass(frozen=True, eq=False)
class ClusterSums:
    r"""Sums over the rows of each cluster in each group, groups one after the other.

    `scores` are of :math:`a_i = w_i (y_i - p_i)`, and of that times the log odds about their mean in the group; `size`
    of :math:`w_i`; `reach` of :math:`b_i = w_i \sqrt{p_i (1 - p_i)}`; `products` of :math:`a_i^2, a_i b_i, b_i^2,
    b_i^4`. `columns` is 1 for groups whose scores are all the same, else 2; `noise` is the covariance of independent
    outcomes.
    """

    group: NDArray[np.intp]
    scores: Floats
    size: Floats
    reach: Floats
    products: Floats
    columns: NDArray[np.intp]
    noise: Floats

    @property
    def clusters(self) -> NDArray[np.intp]:
        """The number of clusters of each group."""
        return np.bincount(self.group, minlength=len(self.columns))

    @property
    def few(self) -> NDArray[np.bool_]:
        """Which groups have too few clusters to know the spread between them."""
        return self.clusters < LEAST_CLUSTERS

    @property
    def gap(self) -> Floats:
        """Mean prediction less mean outcome of each group."""
        return -self._by_group(self.scores[0]) / self._by_group(self.size)

    @property
    def design_effect(self) -> Floats:
        """By how much the variance of calibrated outcomes is that of independent ones, as alike as rows look."""
        return design_effects(self.products, self.reach, self.group, len(self.columns))

    @property
    def gap_error(self) -> Floats:
        """The standard error of the gap of each group; of few clusters, that of the most dependent outcomes."""
        clusters, own = self.clusters, self.scores[0] + self.gap[self.group] * self.size
        between = self._by_group(own**2) * clusters / np.maximum(clusters - 1, 1)
        by_model = self.noise[:, 0, 0] * self.design_effect
        variance = np.where(self.few, self._by_group(self.reach**2), np.maximum(between, by_model))
        return np.sqrt(variance) / self._by_group(self.size)

    def score_tests(self) -> tuple[Floats, Floats]:
        """Statistic and p-value of `ClusteredScore` for each group; NaN where there are too few clusters."""
        first, second = self.scores
        total = np.stack([self._by_group(one) for one in self.scores], axis=1)
        squares = _matrices(*(self._by_group(one) for one in (first**2, first * second, second**2)))
        share = np.einsum("gi,gij,gj->g", total, np.linalg.pinv(squares, hermitian=True), total) / self.clusters
        rank = np.asarray(np.linalg.matrix_rank(squares, hermitian=True))
        statistic = (self.clusters - rank) / np.maximum(rank, 1) * share / np.maximum(1 - share, 1e-300)
        p = fdtrc(np.maximum(rank, 1), np.maximum(self._carrying() - rank, 1.0), np.maximum(statistic, 0.0))
        p = np.where(rank == 0, 1.0, np.maximum(p, self._p_values_of_model(total)))
        return np.where(self.few, np.nan, statistic), np.where(self.few, np.nan, p)

    def _carrying(self) -> Floats:
        """The number of clusters that carry the variance of the sums, in the column where they are fewest."""
        squares = self.scores**2
        second = np.stack([self._by_group(one) for one in squares])
        fourth = np.stack([self._by_group(one) for one in squares**2])
        return np.divide(second**2, fourth, out=np.full_like(second, np.inf), where=fourth > 0).min(axis=0)

    def _p_values_of_model(self, total: Floats) -> Floats:
        """Of the same scores with the variance of calibrated outcomes; 0 where that leaves no room for them at all."""
        possible = np.asarray(np.linalg.matrix_rank(self.noise, hermitian=True)) >= self.columns
        matrix = np.where(possible[:, None, None], self.noise, np.eye(2))
        matrix[:, 1, 1] += self.columns == 1
        square = np.einsum("gi,gi->g", total, np.linalg.solve(matrix, total[:, :, None])[:, :, 0])
        return np.where(possible, chdtrc(self.columns, square / self.design_effect), 0.0)

    def _by_group(self, values: Floats) -> Floats:
        return np.bincount(self.group, values, len(self.columns)).astype(np.float64, copy=False)


def _sums_from(first: NDArray[np.intp], *columns: Floats) -> Floats:
    return np.stack([np.add.reduceat(column, first) for column in columns])


def _firsts(*columns: NDArray[np.intp]) -> NDArray[np.intp]:
    """Where one of the columns changes, from the first row on."""
    new = np.ones(len(columns[0]), dtype=np.bool_)
    new[1:] = np.any([column[1:] != column[:-1] for column in columns], axis=0)
    return np.flatnonzero(new)


def _centred(odds: Floats, group: NDArray[np.intp]) -> tuple[Floats, NDArray[np.intp]]:
    """Log odds about their mean in the group, nearly independent of a constant; 0, and one column, if all are equal."""
    first = _firsts(group)
    mean = np.add.reduceat(odds, first) / np.bincount(group)
    varies = np.maximum.reduceat(odds, first) > np.minimum.reduceat(odds, first)
    return np.where(varies[group], odds - mean[group], 0.0), 1 + varies.astype(np.intp)


def _matrices(first: Floats, both: Floats, second: Floats) -> Floats:
    return np.stack([first, both, both, second], axis=1).reshape(-1, 2, 2)


@dataclass(frozen=True)
class ClusteredScore:
    r"""Score test that intercept and slope are 0 and 1, with the variance between clusters.

    With :math:`s_c = \sum_{i \in c} w_i (y_i - p_i)(1, \operatorname{logit} p_i)` of each of G clusters,

    .. math:: F = \frac{G - 2}{2}\,\frac{t / G}{1 - t / G}, \qquad
              t = \Bigl(\sum_c s_c\Bigr)^\top \Bigl(\sum_c s_c s_c^\top\Bigr)^{-1} \Bigl(\sum_c s_c\Bigr)

    which is Hotelling's statistic that the mean of the :math:`s_c` is zero, referred to the F distribution with 2 and
    K - 2 degrees of freedom, K being the number of clusters that carry the variance,
    :math:`(\sum_c s_c^2)^2 / \sum_c s_c^4`, as in `ProfileLikelihood`. Rows of a cluster may depend on each other in
    any way. Where all scores are the same, only the total is tested (Student's t).

    If events are few, they lie in few clusters, and the sums of the other clusters hardly vary. So the p-value is at
    least that of the chi-square of the same scores with the variance of calibrated outcomes,
    :math:`D \sum_i b_i^2 x_i x_i^\top` with :math:`b_i = w_i \sqrt{p_i (1 - p_i)}` and x the two columns. The design
    effect D lies between that of independent rows and that of perfectly dependent ones, depending on how alike the
    residuals :math:`a_i = w_i (y_i - p_i)` of a cluster are:

    .. math:: D = 1 + \rho \Bigl(\frac{\sum_c (\sum_{i \in c} b_i)^2}{\sum_i b_i^2} - 1\Bigr), \qquad
              1 - \rho = \frac{\sum_c \bigl(\sum a_i^2 - (\sum a_i b_i)^2 / \sum b_i^2\bigr)}
                            {\sum_c \sum a_i^2 \bigl(1 - \sum b_i^4 / (\sum b_i^2)^2\bigr)}

    Ten clusters without any event thus count as ten rows, not as hundreds: all rows of a cluster may share one outcome.

    Notes
    -----
    In 216 calibrated worlds with 8 to 300 equal or uneven clusters, 3 to 50 % events, and rows of a cluster that share
    5 % to all of their luck, 500 samples each, 0.5 % were rejected at 5 % on average and 4.0 % at most. With the G - 2
    degrees of freedom of Hotelling and no lower bound of the p-value it was 15 % on average and 87 % at most
    (reproduce/results/clustered_tests.csv).

    References
    ----------
    Hotelling (1931), The generalization of Student's ratio; Cox (1958), Two further applications of a model for binary
    regression; Liang, Zeger (1986), Longitudinal data analysis using generalized linear models.

    Examples
    --------
    >>> import numpy as np
    >>> import calibrant as cal
    >>> rng = np.random.default_rng(0)
    >>> patient = np.repeat(np.arange(200), 10)
    >>> p = np.repeat(rng.uniform(0.1, 0.9, 200), 10)
    >>> same = np.repeat(rng.random(200), 10)  # every patient has one outcome, ten times
    >>> ClusteredScore().test(cal.Binary(same < p, p, group=patient)).p_value > 0.05
    True
    >>> cal.calibration_test(cal.Binary(same < p, p)).p_value < 0.05  # as if there were 2000 patients
    True
    """

    def test(self, data: Binary) -> Significance:
        """Large values of F are evidence against calibration."""
        if data.group is None:
            fail("ClusteredScore needs rows with a group; for independent rows use the default of calibration_test.")
        sums = ClusteredRows.of(data).sums()
        clusters, columns = int(sums.clusters[0]), int(sums.columns[0])
        require_clusters(clusters, needed_by="ClusteredScore")
        statistic, p_value = (float(column[0]) for column in sums.score_tests())
        details = {"clusters": clusters, "columns": columns}
        return Significance(statistic, p_value, method="Clustered score test", n=len(data), details=details)


OfOutcomes = MultiScale | KolmogorovSmirnov | Spiegelhalter | HosmerLemeshow | KernelTest | Cox | ClusteredScore
OfForecasts = ForecastTest | Moments | MeanSquaredZ | PitUniformity | SpreadChiSquare
OfClasses = VectorTest | LearnedTest
TestMethod = OfOutcomes | OfForecasts | OfClasses | PUScore

#: What each method tests.
_METHODS: dict[str, Any] = {
    "outcomes": OfOutcomes,
    "multiclass data": OfClasses,
    "distributions": OfForecasts,
    "positive-unlabeled data": PUScore,
}


#: Tests that are asked for by name.
TestName = Literal["multiscale", "kolmogorov-smirnov", "spiegelhalter", "hosmer-lemeshow", "kernel", "cox"]
_TESTS = (MultiScale, KolmogorovSmirnov, Spiegelhalter, HosmerLemeshow, KernelTest, Cox)
_NAMED: dict[str, type[OfOutcomes]] = dict(zip(get_args(TestName), _TESTS, strict=True))


@takes_columns
def calibration_test(
    data: Data = None, y_prob: Column = None, *, method: TestMethod | TestName | None = None, **columns: Unpack[Columns]
) -> Significance:
    """Test of the hypothesis that the model is calibrated; a small p-value is evidence against it.

    Parameters
    ----------
    data : Binary, Multiclass, Judged, Gaussian, Quantiles, Samples, PositiveUnlabeled, BinTable, or y_true
        Rows must be independent. For binary data and forecasts a `group` names the rows that depend on each other; the
        outputs of one row of a forecast may also be dependent. For multiclass data this tests the whole vector;
        ``data.top_label()`` tests the confidence alone, and `by_class` each class. Judged data have one test, of
        level, slope and shape. With plain arrays, `y_prob` comes next.
    method : "multiscale", "spiegelhalter", "cox", ..., or one of the classes below, optional
        - binary outcomes: `MultiScale` (default), `KolmogorovSmirnov`, `Spiegelhalter`, `HosmerLemeshow`, `KernelTest`,
          `Cox`; with a group, `MultiScale` (default) or `ClusteredScore`;
        - multiclass data: `VectorTest` (default), `LearnedTest`;
        - forecasts: `ForecastTest` (default), `Moments`, `MeanSquaredZ`, `PitUniformity`, `SpreadChiSquare`;
        - positive-unlabeled data: `calibrant.pu.PUScore`.

    Examples
    --------
    >>> import numpy as np
    >>> import calibrant as cal
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(2000)
    >>> calibration_test(rng.random(2000) < p, p).p_value > 0.05
    True
    >>> calibration_test(cal.Binary(rng.random(2000) < p**1.2, p)).p_value < 0.01
    True
    """
    data = data if isinstance(data, BinTable) else binary(data, y_prob)
    if isinstance(data, Judged):
        from calibrant.inference.judged import judged_test

        if method is not None:
            fail(f"Judged data have one test; leave out method={method!r}.", TypeError)
        return judged_test(data)
    chosen: Any = _default(data) if method is None else method
    chosen = _NAMED[chosen]() if isinstance(chosen, str) and chosen in _NAMED else chosen
    if not isinstance(chosen, TestMethod):
        names = ", ".join(map(repr, _NAMED))
        fail(f"method must be {names}, or MultiScale(), Spiegelhalter(), ..., got {method!r}.", TypeError)
    wanted = next(kind for kind, methods in _METHODS.items() if isinstance(chosen, methods))
    if wanted != _kind(data) and not (isinstance(data, BinTable) and wanted != "multiclass data"):
        fail(f"{type(chosen).__name__} tests {wanted}, but {data!r} holds {_kind(data)}.", TypeError)
    _require_independent(data, chosen)
    given: Any = data
    return chosen.test(given)


def _require_independent(data: Predictions | BinTable, chosen: TestMethod) -> None:
    """Tests for groups allow for the dependence of rows with one; those of forecasts also for that of outputs."""
    if isinstance(chosen, ForecastTest | Moments):
        return
    needs = f"{type(chosen).__name__} needs independent rows"
    if getattr(data, "group", None) is not None and not isinstance(chosen, MultiScale | ClusteredScore):
        fail(f"{needs}, but these have a group; {_instead(data)}.")
    outputs = len(data.outputs) if isinstance(data, Forecast) else 1
    if outputs > 1:
        fail(f"{needs}, but each row has {outputs} outputs, which may depend on each other; {_instead(data)}.")


def _instead(data: Predictions | BinTable) -> str:
    """What dependent rows can be tested with."""
    if isinstance(data, Binary | Forecast):
        return f"use {type(_default(data)).__name__}()"
    return "take one row per group"


def _kind(data: Predictions | BinTable) -> str:
    if isinstance(task_of(data), Unlabeled):
        return "positive-unlabeled data"
    if isinstance(data, Multiclass):
        return "multiclass data"
    return "distributions" if isinstance(data, Forecast) else "outcomes"


def _default(data: Predictions | BinTable) -> TestMethod:
    classes = {"multiclass data": VectorTest, "distributions": ForecastTest, "positive-unlabeled data": PUScore}
    return classes.get(_kind(data), MultiScale)()
