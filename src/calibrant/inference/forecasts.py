"""Where outcomes lie in their predicted distributions, and the named tests of z-scores, PIT and moments."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtrc, kolmogorov, ndtr, ndtri, stdtr

from calibrant.data.forecasts import Distribution, Forecast, Gaussian, Quantiles, Samples
from calibrant.data.validation import fail
from calibrant.estimators import regression_common as common
from calibrant.estimators.regression_coverage import pit_curve
from calibrant.estimators.regression_spread import mean_squared_z
from calibrant.inference.forecast_intervals import LogMeanSquare, nearest_division
from calibrant.inference.sample import row_clusters
from calibrant.numerics.arrays import Floats
from calibrant.numerics.random_draws import generator
from calibrant.numerics.rows import mean_and_error
from calibrant.results.estimate import Component, Significance
from calibrant.table.binning import Cut, EqualMass

Places = NDArray[np.intp]

#: Normal scores end here. Derived: the normal density is 0 in double precision beyond 38.6.
_FARTHEST = 38.0

#: The third and fourth Hermite polynomials are constant beyond: the evidence of one row is bounded.
#: Test: tests/inference/test_forecasts_places.py::test_scores_of_skewness_and_tails_are_constant_beyond_three.
_CLIP = 3.0

#: The mean over a part of [0, 1] less likely than this is the score at its inner end.
#: Derived: differences of integrals are exact to 1e-16, and so their quotient by this to 1e-7.
_THIN = 1e-9

#: Fewer effective clusters are too few to test.
#: Test: tests/inference/test_forecast_tests.py::test_too_few_clusters_are_not_tested.
FEWEST_CLUSTERS = 12


class Basis(NamedTuple):
    """Four scores of a place, of mean 0: at the normal score z, and integrated over F up to z."""

    at: Callable[[Floats], Floats]
    integral: Callable[[Floats], Floats]

    def mean(self, low: Floats, high: Floats, mass: Floats) -> Floats:
        """Mean scores between two normal scores of which `mass` is the probability."""
        thin = mass < _THIN
        mean = (self.integral(high) - self.integral(low)) / np.where(thin, 1.0, mass)[..., None]
        if thin.any():
            mean[thin] = self.at(np.where(np.abs(low) < np.abs(high), low, high)[thin])
        return mean


def _density(z: Floats) -> Floats:
    return np.asarray(np.exp(-0.5 * z * z) / np.sqrt(2 * np.pi))


def _clipped_integrals(z: Floats) -> tuple[Floats, Floats]:
    """Integrals up to z of the third and fourth Hermite polynomials at z clipped, by the normal distribution."""
    c, inner = _CLIP, np.clip(z, -_CLIP, _CLIP)
    below, above = ndtr(np.minimum(z, -c)), ndtr(np.maximum(z, c)) - ndtr(c)
    ends = (c * c - 1) * _density(np.array(c)), (c**3 - 3 * c) * _density(np.array(c))
    third = (c**3 - 3 * c) * (above - below) - (inner**2 - 1) * _density(inner) + ends[0]
    fourth = (c**4 - 6 * c * c + 3) * (above + below) - (inner**3 - 3 * inner) * _density(inner) - ends[1]
    return third, fourth


def _mean_fourth() -> float:
    """The mean of the fourth polynomial, which is not 0 after clipping."""
    return float(_clipped_integrals(np.array(_FARTHEST))[1])


def _hermite(z: Floats) -> Floats:
    z = np.clip(z, -_FARTHEST, _FARTHEST)
    c = np.clip(z, -_CLIP, _CLIP)
    return np.stack([z, z * z - 1, c**3 - 3 * c, c**4 - 6 * c * c + 3 - _mean_fourth()], axis=-1)


def _hermite_integral(z: Floats) -> Floats:
    z = np.clip(z, -_FARTHEST, _FARTHEST)
    third, fourth = _clipped_integrals(z)
    return np.stack([-_density(z), -z * _density(z), third, fourth - _mean_fourth() * ndtr(z)], axis=-1)


#: Signs with which cosines are positive where outcomes are high, far out, skewed to the right, in the tails.
#: Derived: cos(k pi u) falls at u = 1/2 for k = 1, and is largest at the ends for k = 2 and 4.
_SIGN = np.array([-1.0, 1.0, -1.0, 1.0])


def _cosine(z: Floats) -> Floats:
    one = np.cos(np.pi * ndtr(z))
    two = 2 * one * one - 1
    return _SIGN * np.sqrt(2) * np.stack([one, two, one * (2 * two - 1), 2 * two * two - 1], axis=-1)


def _cosine_integral(z: Floats) -> Floats:
    k = np.pi * np.arange(1, 5)
    return np.asarray(_SIGN * np.sqrt(2) * np.sin(np.multiply.outer(ndtr(z), k)) / k)


#: Hermite polynomials of the normal score z: z and z² - 1, and the third and fourth at z clipped.
HERMITE = Basis(_hermite, _hermite_integral)
#: Cosines of F(y): bounded, and symmetric about 0 under calibration.
COSINES = Basis(_cosine, _cosine_integral)


@dataclass(frozen=True, eq=False)
class Points:
    """Normal scores z of continuous distributions."""

    z: Floats

    def scores(self, basis: Basis) -> Floats:
        """Of each row."""
        return basis.at(self.z)

    @property
    def middle(self) -> Floats:
        """A normal score of each row."""
        return self.z

    def scores_at(self, basis: Basis, z: Floats, rows: slice | Places) -> Floats:
        """Of rows whose place had the normal score `z`, in the last axis."""
        return basis.at(z)


@dataclass(frozen=True, eq=False)
class Cells:
    """Cells between `edges`; `inside` is that of each row, or how it is divided; about `bins` tell the shape."""

    edges: Floats
    inside: NDArray[Any]
    bins: int | None = None

    @property
    def chance(self) -> Floats:
        """The probability of each cell."""
        return np.diff(self.edges)

    def of_cells(self, basis: Basis) -> Floats:
        """The mean scores of the cells."""
        z = normal_score(self.edges)
        return basis.mean(z[:-1], z[1:], self.chance)

    def scores(self, basis: Basis) -> Floats:
        """Of each row."""
        each = self.of_cells(basis)
        return each[self.inside] if self.inside.ndim == 1 else np.asarray(self.inside @ each)

    @property
    def middle(self) -> Floats:
        """The normal score of the middle of the cell."""
        middle = (self.edges[1:] + self.edges[:-1]) / 2
        return normal_score(middle[self.inside] if self.inside.ndim == 1 else self.inside @ middle)

    def scores_at(self, basis: Basis, z: Floats, rows: slice | Places) -> Floats:
        """Of rows whose place had the normal score `z`, in the last axis."""
        return self.of_cells(basis)[np.searchsorted(normal_score(self.edges[1:-1]), z)]


class Ends(NamedTuple):
    """Parts of [0, 1]: the normal scores of both ends, and the probability between them."""

    low: Floats
    high: Floats
    mass: Floats


@dataclass(frozen=True, eq=False)
class Jumps:
    """Jumps of F; those of outcomes that may occur have probabilities `chance`. At `edges` the shape is looked at."""

    own: Ends
    chance: Floats
    possible: Callable[[slice | Places], Ends]
    edges: Floats

    def scores(self, basis: Basis) -> Floats:
        """Of each row."""
        return basis.mean(*self.own)

    @property
    def middle(self) -> Floats:
        """The normal score of the middle of the jump."""
        return normal_score((ndtr(self.own.low) + ndtr(self.own.high)) / 2)

    def scores_at(self, basis: Basis, z: Floats, rows: slice | Places) -> Floats:
        """Of rows whose place had the normal score `z`, in the last axis."""
        each = basis.mean(*self.possible(rows))
        choice = np.searchsorted(normal_score(np.cumsum(self.chance)[:-1]), z)
        return each[np.arange(each.shape[0]), choice]


Placement = Points | Cells | Jumps


def normal_score(u: Floats) -> Floats:
    """The normal quantile, within +-38."""
    return np.asarray(np.clip(ndtri(u), -_FARTHEST, _FARTHEST))


class Placed(NamedTuple):
    """Places of outcomes, the width of each predicted distribution, and the share of rows that tie with quantiles."""

    places: Placement
    width: Floats
    ties: float = 0.0


def placed(data: Forecast, *, bins: int) -> Placed:
    """Places of the outcomes of any forecast; for the shape of jumps [0, 1] is divided into this many `bins`."""
    if isinstance(data, Quantiles):
        return _between_quantiles(data)
    if isinstance(data, Samples):
        return _among_draws(data, bins)
    if isinstance(data, Gaussian):
        return Placed(Points(np.clip(data.z(), -_FARTHEST, _FARTHEST)), data.std.astype(np.float64).ravel())
    if not isinstance(data, Distribution):
        fail(f"The test of forecasts needs predicted distributions, not {data!r}.", TypeError)
    if data.discrete:
        return _at_counts(data, bins)
    below, above = data.pit()[1], _upper(data, data.y_true).ravel()
    z = np.where(below < 0.5, normal_score(below), -normal_score(above))
    return Placed(Points(z), data.quantile(0.75) - data.quantile(0.25))


def _between_quantiles(data: Quantiles) -> Placed:
    y, values = data.y_true[:, None], data.values
    edges = np.concatenate([[0.0], data.levels, [1.0]])
    low, high = (values < y).sum(axis=1), (values <= y).sum(axis=1)
    tied = low < high
    inside = nearest_division(low, high, np.diff(edges)) if tied.any() else low
    width = (values[:, -1] - values[:, 0]).astype(np.float64)
    return Placed(Cells(edges, inside), width, float(tied.mean()))


def _among_draws(data: Samples, bins: int) -> Placed:
    """Ranks of outcomes; where pooled values are equal, the ranks they share. The width is symmetric in y and draws."""
    pooled = np.sort(np.concatenate([data.y_true[:, None], data.draws], axis=1).astype(np.float64), axis=1)
    size = pooled.shape[1]
    quarter = (size - 1) // 4
    width = pooled[:, size - 1 - quarter] - pooled[:, quarter]
    low, high = ((side(data.draws, data.y_true[:, None])).sum(axis=1) for side in (np.less, np.less_equal))
    edges = np.arange(size + 1) / size
    if not (np.diff(pooled, axis=1) == 0).any():
        return Placed(Cells(edges, low, None if size <= 12 else bins + 1), width)

    def possible(rows: slice | Places) -> Ends:
        new = np.diff(pooled[rows], axis=1, prepend=-np.inf) > 0
        place = np.arange(size)
        first = np.maximum.accumulate(np.where(new, place, 0), axis=1)
        ends = np.concatenate([new[:, 1:], np.ones((len(new), 1), dtype=bool)], axis=1)
        after = np.minimum.accumulate(np.where(ends, place + 1, size)[:, ::-1], axis=1)[:, ::-1]
        return ranks(first, after)

    def ranks(first: Places, after: Places) -> Ends:
        at = normal_score(edges)
        return Ends(at[first], at[after], (after - first) / size)

    cells = edges if size <= 12 else np.linspace(0, 1, bins + 1)
    return Placed(Jumps(ranks(low, high + 1), np.full(size, 1 / size), possible, cells), width)


def _at_counts(data: Distribution, bins: int) -> Placed:
    """Jumps at counts; other outcomes are quantiles at random levels, one in each cell of a grid of normal scores."""
    step = 0.1 if len(data) <= 2000 else 0.5  # of many rows, the errors of a coarse grid average out
    levels = np.concatenate([[0.0], ndtr(np.arange(-4.05, 4.06, step)), [1.0]])
    chance = np.diff(levels)
    shift = generator(0, "levels of counts").random((len(chance), data.y_true.size))
    at = np.stack([data.quantiles_at(levels[j] + chance[j] * shift[j]) for j in range(len(chance))], axis=1)
    jumps = [_jump(data, column.reshape(data.y_true.shape)) for column in at.T]
    low, high, mass = (np.stack(columns, axis=1) for columns in zip(*jumps, strict=True))

    def possible(rows: slice | Places) -> Ends:
        return Ends(low[rows], high[rows], mass[rows])

    return Placed(Jumps(_jump(data, data.y_true), chance, possible, np.linspace(0, 1, bins + 1)), data.std.ravel())


def _jump(data: Distribution, y: NDArray[Any]) -> Ends:
    """The jump of F at y, from the tail that is nearer."""
    mass = np.asarray(data.dist.pmf(y), dtype=np.float64).ravel()
    below, above = np.asarray(data.dist.cdf(y), dtype=np.float64).ravel(), _upper(data, y).ravel()
    upper = below > 0.5
    low = np.where(upper, -normal_score(np.minimum(above + mass, 1.0)), normal_score(np.maximum(below - mass, 0.0)))
    high = np.where(upper, -normal_score(above), normal_score(below))
    return Ends(np.minimum(low, high), high, mass)


def _upper(data: Distribution, y: NDArray[Any]) -> Floats:
    """1 - F(y), with all its digits where the distribution offers them."""
    method = getattr(data.dist, "sf", None) or getattr(data.dist, "ccdf", None)
    found = 1 - np.asarray(data.dist.cdf(y)) if method is None else method(y)
    return np.broadcast_to(np.asarray(found, dtype=np.float64), np.shape(y))


def width_code(width: Floats) -> Floats:
    """The number of the group of each width: fifths, or thirds below 100 rows; all 0 where widths are equal."""
    from scipy.stats import rankdata

    size = len(width)
    if not np.isfinite(width).all() or np.ptp(width) <= 1e-9 * np.abs(width).max(initial=0.0):
        return np.zeros(size)
    groups = 5 if size >= 100 else 3
    return np.asarray(np.floor(rankdata(width) / (size + 1) * groups))


def order_p_value(*columns: Floats) -> float:
    """P-value of no rank correlation between neighbours in any of the columns (Ljung-Box, Bonferroni)."""
    from scipy.stats import rankdata

    size, found = len(columns[0]), []
    lags = np.arange(1, int(np.clip(size // 20, 1, 10)) + 1)
    for column in columns:
        rank = rankdata(column) - (size + 1) / 2
        total = max(float(rank @ rank), 1e-300)
        squares = np.array([float(rank[k:] @ rank[:-k]) / total for k in lags]) ** 2
        found.append(float(chdtrc(len(lags), size * (size + 2) * float((squares / (size - lags)).sum()))))
    return min(1.0, len(found) * min(found))


class EffectiveClusters(NamedTuple):
    """The number of independent units, and why they are too few to test; "" where they are enough."""

    effective: float
    reason: str


def too_few_clusters(weight: Floats, cluster: Places | None) -> EffectiveClusters:
    """Kish's number of clusters of this total weight, or of rows; at least 12 clusters can be tested."""
    mass = weight if cluster is None else np.bincount(cluster, weight)
    effective = float(mass.sum() ** 2 / (mass @ mass))
    few = cluster is not None and effective < FEWEST_CLUSTERS
    words = f"{effective:.3g} effective clusters are too few to test; at least {FEWEST_CLUSTERS} are needed"
    return EffectiveClusters(effective, words if few else "")


@dataclass(frozen=True)
class MeanSquaredZ:
    r"""Robust test that the mean of :math:`z^2 = (y-\mu)^2/\sigma^2` is 1.

    With :math:`L = \log\overline{z^2}` and its standard error :math:`\mathrm{se} = \sqrt{(\kappa-1)/(N-1)}` from the
    kurtosis κ of the z-scores, the statistic is L / se, referred to the normal distribution. A sample of heavy-tailed
    errors often lacks the large ones; then both L and its standard error are too small. A negative L is therefore
    raised by what may be missing (see `LogScale`), at most to zero.

    Examples
    --------
    >>> import calibrant as cal
    >>> y = np.random.default_rng(0).normal(size=1000)
    >>> cal.calibration_test(cal.Gaussian(y, np.zeros(1000), np.full(1000, 2.0)), method=MeanSquaredZ()).method
    'mean z^2 = 0.2391'
    """

    def test(self, data: common.ForecastData) -> Significance:
        """Two-sided."""
        value = mean_squared_z(data)
        perfect = float(np.log(value.details["null"]["mean"]))  # 0 but for ensembles, whose spread is itself uncertain
        z = LogMeanSquare.of(common.table_or_forecast(data, None, None), needed_by="MeanSquaredZ").statistic(perfect)
        return Significance(z, float(2 * ndtr(-abs(z))), method=f"mean z^2 = {float(value):.4g}", n=value.n)


@dataclass(frozen=True)
class PitUniformity:
    r"""Kolmogorov-Smirnov test that the probability integral transforms F(y) are uniform.

    With weights, n is Kish's effective sample size. For draws, quantiles and counts the transforms are known only up to
    an interval, over which they are spread; the test is then conservative.

    Examples
    --------
    >>> import calibrant as cal
    >>> y = np.random.default_rng(0).normal(size=1000)
    >>> sharp, wide = (cal.Gaussian(y, np.zeros(1000), np.full(1000, sd)) for sd in (1.0, 2.0))
    >>> PitUniformity().test(sharp).p_value > 0.05, PitUniformity().test(wide).p_value < 0.001
    (True, True)
    """

    def test(self, data: common.ForecastData) -> Significance:
        """Large values are evidence against calibration."""
        task: Any = common.forecast(data, None, None)
        curve = pit_curve(task)
        root = np.sqrt(curve.size)
        distance = curve.distance(np.inf)
        p_value = float(kolmogorov(distance * (root + 0.12 + 0.11 / root)))  # Stephens' correction for small n
        return Significance(distance, p_value, method="PIT uniformity (Kolmogorov-Smirnov)", n=task.y_true.size)


@dataclass(frozen=True)
class SpreadChiSquare:
    r"""Chi-square test that the errors match the predicted spread in every bin of the spread.

    .. math:: \sum_k \frac{(\mathrm{MSE}_k / \mathrm{MV}_k - 1)^2}{v_k} \sim \chi^2_K, \qquad
              v_k = (\kappa - 1)\,\overline{\sigma^4}_k / (n_k\,\mathrm{MV}_k^2)

    The ratio is taken to the power one third, where it is nearly normal (Wilson and Hilferty), and κ is the kurtosis of
    the errors.

    Examples
    --------
    >>> import numpy as np
    >>> import calibrant as cal
    >>> rng = np.random.default_rng(0)
    >>> std = rng.uniform(0.5, 1.5, 1000)
    >>> data = cal.Gaussian(std * rng.normal(size=1000), np.zeros(1000), 0.8 * std)
    >>> cal.calibration_test(data, method=cal.inference.SpreadChiSquare()).p_value < 0.05
    True
    """

    bins: Cut | int = EqualMass(10)

    def test(self, data: common.ForecastData) -> Significance:
        """Large values are evidence against calibration."""
        table, words = common.spread_table(data, None, None, self.bins, needed_by="SpreadChiSquare")
        some = table.filled()
        variance = common.ratio_variance(some, max(common.table_kurtosis(table), 1 + 1e-9))
        ratio = some.observed_mean / some.predicted_mean
        z = (np.cbrt(ratio) - (1 - variance / 9)) / np.sqrt(variance / 9)
        statistic = float(z @ z)
        p_value = float(chdtrc(len(some), statistic))
        return Significance(statistic, p_value, method=f"spread chi square, {words}", n=table.n)


@dataclass(frozen=True)
class Moments:
    r"""Test of predicted means and standard deviations alone, for forecasts that claim no more than these.

    With :math:`z = (y - \mu) / \sigma`, three statements are tested, each with the variance found in the sample:
    mean z is 0 (*bias*, Student's test), mean :math:`z^2` is 1 (*spread*, `MeanSquaredZ`), and :math:`z^2` does not
    depend on the predicted width (*spread by width*: the covariance with the number of its fifth). Their shares of the
    level are 0.4, 0.4 and 0.2, and the p-value is :math:`\min_k p_k / w_k` (Bonferroni). For draws, mean and standard
    deviation are those of all m + 1 values of a row, outcome included: then both means are right for draws of any law.
    Clusters are units; fewer than 12 effective ones are too few, and p is NaN.

    Examples
    --------
    >>> import calibrant as cal
    >>> rng = np.random.default_rng(0)
    >>> heavy = cal.Gaussian(rng.standard_t(5, 1000) * 0.6**0.5, np.zeros(1000), np.ones(1000))
    >>> cal.calibration_test(heavy).p_value < 0.05, cal.calibration_test(heavy, method=Moments()).p_value > 0.05
    (True, True)
    """

    def test(self, data: common.ForecastData) -> Significance:
        """The statistic is the smallest p-value over its share."""
        claimed = _claimed(common.forecast(data, None, None))
        z = claimed.z()
        weight = np.ones(len(z)) if claimed.flat_weight is None else claimed.flat_weight
        clusters = row_clusters(claimed, len(z))
        few = too_few_clusters(weight, clusters)
        if few.reason:
            return Significance(np.nan, np.nan, method=repr(self), n=len(claimed), details=few._asdict())
        statistics = {"bias": _ratio(z, weight, clusters)}
        table = common.table_or_forecast(claimed, None, None)
        statistics["spread"] = LogMeanSquare.of(table, needed_by="Moments").statistic()
        code = width_code(claimed.std.astype(np.float64).ravel())
        if np.ptp(code) > 0:
            squares = z**2 / float(weight @ z**2 / weight.sum()) - 1
            code = code - float(weight @ code) / weight.sum()
            statistics["spread by width"] = _ratio(code * squares, weight, clusters)
        shares = {"bias": 0.4, "spread": 0.4, "spread by width": 0.2}
        total, freedom = sum(shares[name] for name in statistics), few.effective - 1
        made = tuple(
            Component(name, float(2 * stdtr(freedom, -abs(t))), shares[name] / total, -1 if t > 0 else 1)
            for name, t in statistics.items()
        )
        decided = min(made, key=lambda one: one.p_value / one.share)
        smallest = min(decided.p_value / decided.share, 1.0)
        return Significance(smallest, smallest, method=repr(self), n=len(claimed), components=made, decided=decided)


def _ratio(values: Floats, weight: Floats, clusters: Any) -> float:
    """A mean over its standard error."""
    mean, error = mean_and_error(values, weight, clusters)
    return mean / error if error > 0 else float(np.copysign(np.inf, mean)) if mean else 0.0


def _claimed(data: Any) -> Gaussian:
    """The predicted means and standard deviations; of draws, those of all values of a row."""
    if isinstance(data, Gaussian):
        return data
    if isinstance(data, Samples):
        pooled = np.concatenate([data.y_true[:, None], data.draws], axis=1).astype(np.float64)
        mean, std = pooled.mean(axis=1), pooled.std(axis=1)
    elif isinstance(data, Distribution):
        mean, std = data.mean, data.std
    else:
        fail(f"Moments needs predicted means and standard deviations, not {data!r}.", TypeError)
    return Gaussian.borrowing(data.y_true, mean, std, weight=data.weight, group=data.group)
