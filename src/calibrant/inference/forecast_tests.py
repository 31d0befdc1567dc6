"""The default test of predicted distributions: bias, spread, skewness, tails, shape, and dependence on their width."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, partial
from typing import Any, Literal, NamedTuple

import numpy as np
from scipy.special import gammainc, gammaincc, log_ndtr, logsumexp, ndtr

from calibrant.data import validation
from calibrant.data.forecasts import Forecast
from calibrant.data.validation import fail
from calibrant.inference import forecasts
from calibrant.inference.forecasts import Places
from calibrant.inference.sample import row_clusters, sums_by
from calibrant.numerics.arrays import Floats
from calibrant.numerics.random_draws import generator, normal_draws
from calibrant.numerics.rows import all_alike, effective_n, weighted_rows
from calibrant.results.estimate import Component, Significance

#: The components, with their shares of the level; where some are absent, the others share theirs.
#: Test: tests/inference/test_forecast_tests.py::test_shares_of_the_level.
SHARES = {
    "bias": 0.35,
    "spread": 0.31,
    "skewness": 0.07,
    "tails": 0.06,
    "shape": 0.04,
    "spread by width": 0.12,
    "bias by width": 0.05,
}
_NAMES = tuple(SHARES)
_SHAPE = _NAMES.index("shape")

#: Components are combined by the mean of p to this power, so that several which are small count for more than one.
#: Test: tests/inference/test_forecast_tests.py::test_two_faults_are_stronger_evidence_than_one.
_POWER = -0.8

#: A score is used if at least this part of its variance is not that of the scores before it.
#: Test: tests/inference/test_forecast_tests.py::test_few_levels_have_fewer_components.
_NEW = 0.05

#: With fewer effective rows than this, only the tails of bias and spread are known far beyond the simulated samples.
#: Test: tests/inference/test_forecast_tests.py::test_few_rows_are_seldom_beyond_all_samples.
_FEW = 100

#: Classes of weights in which samples are simulated.
#: Test: tests/inference/test_forecast_tests.py::test_weights_keep_the_tails_of_weighted_sums.
_WEIGHTS = 8

#: With more effective clusters than this, changes of sign alone are a valid reference.
#: Test: tests/inference/test_forecast_tests.py::test_many_clusters_need_no_simulated_dependence.
_MANY_CLUSTERS = 200

#: P-value of the order of rows below which neighbours are called dependent.
#: Test: tests/inference/test_forecast_tests.py::test_a_warning_names_neighbours_that_depend_on_each_other.
_ORDER = 0.01

_WORDS = {
    "bias": ("too low", "too high"),
    "spread": ("too narrow", "too wide"),
    "skewness": ("too little skewed to the right", "too much skewed to the right"),
    "tails": ("tails too light", "tails too heavy"),
    "spread by width": (
        "wide forecasts too narrow relative to narrow ones",
        "wide forecasts too wide relative to narrow ones",
    ),
    "bias by width": (
        "wide forecasts too low relative to narrow ones",
        "wide forecasts too high relative to narrow ones",
    ),
}


def component_in_words(component: Component) -> str:
    """What a component of the test of forecasts says of them.

    >>> component_in_words(Component("spread", 0.001, 0.25, -1)), component_in_words(Component("shape", 0.001))
    ('too narrow', 'wrong shape')
    """
    if component.direction == 0:
        return "wrong shape"
    return _WORDS[component.name][component.direction > 0]


@dataclass(frozen=True)
class ForecastTest(validation.Simulated):
    r"""Test of predicted distributions that combines seven components into one p-value of exact level.

    Every forecast states the probability that its outcome lies in each part of its distribution: between two quantiles,
    at a rank among draws, at the normal score :math:`z = \Phi^{-1}(F(y))`. Scores of that place have mean 0 and
    variance 1 under calibration: z (*bias*), :math:`(z^2 - 1)/\sqrt2` (*spread*), and the Hermite polynomials of degree
    three and four, constant beyond 3 standard deviations (*skewness*, *tails*); over cells these scores are replaced by
    their means. They are made orthogonal in this order; a score of which less than 5 % is left, because there are few
    levels, is not used. The *shape* is the chi-square of counts in cells. *Spread by width* and *bias by width*
    multiply the scores of spread and of bias by the number of the fifth to which the predicted width belongs (thirds
    below 100 rows).

    Each sum has a p-value :math:`p_k` from its simulated law under calibration, and a share :math:`w_k` of the level:
    bias 0.35, spread 0.31, spread by width 0.12, skewness 0.07, tails 0.06, bias by width 0.05, shape 0.04. The p-value
    is the rank of :math:`\sum_k w_k p_k^{-0.8}` (a mean of e-values) among those of samples simulated from the
    forecasts; beyond all of these it is :math:`\min_k p_k / w_k` (Bonferroni), below 100 rows of bias and spread alone,
    by the gamma distributions with their skewness (Pearson III). `decided` is the component with the
    strongest evidence among those that reject by themselves, if it also stands out against the variance of its own
    scores in the sample; otherwise it is the shape.

    Equal draws share the mean score of their ranks, and counts that of their jump of F. Where outcomes equal quantiles,
    F(y) is not known: rows are divided over the possible cells such that counts come as near as possible to the
    expected ones, which never rejects too often but has little power for small counts.

    **Clusters** (`group`, or several outputs per row): the scores are :math:`\sqrt2\cos(k\pi F(y))`, k = 1 ... 4, also
    times the width for k = 1, 2, and their sums over clusters are compared with sums of random sign, and with samples
    of a normal copula with the correlation found within clusters, and with one standard error more. The p-value is the
    largest of these. Fewer than 12 effective clusters, :math:`(\sum n_c)^2 / \sum n_c^2`, are too few: p is NaN.

    Without clusters `details["order_p"]` is the p-value of a test that neighbouring rows are independent, from the rank
    correlations of z and `abs(z)` up to ten rows apart (Ljung-Box); below 0.01 `details["warning"]` says so.

    Parameters
    ----------
    draws : int
        Number of simulated samples; for clusters a quarter of this.
    seed : int

    References
    ----------
    Neyman (1937), Smooth test for goodness of fit; Vovk, Wang (2021), E-values, for the mean; Talagrand, Vautard,
    Strauss (1997), Evaluation of probabilistic prediction systems, for ranks. Level and power:
    reproduce/results/forecast_tests.md.

    Examples
    --------
    >>> import calibrant as cal
    >>> rng = np.random.default_rng(0)
    >>> levels = [0.05, 0.5, 0.95]
    >>> found = cal.calibration_test(cal.Quantiles(1.3 * rng.normal(size=300), levels, [[-1.645, 0, 1.645]] * 300))
    >>> found.p_value < 0.001, found.decided.name, component_in_words(found.decided)
    (True, 'spread', 'too narrow')
    """

    draws: int = 3999
    seed: int = 0

    def test(self, data: Forecast) -> Significance:
        """The p-value with its components; the statistic is the smallest of their p-values over their shares."""
        if not isinstance(data, Forecast):
            fail(f"ForecastTest needs the rows of predicted distributions, not {data!r}.", TypeError)
        if data.weight is not None and not data.weight.all():
            data = data.take(weighted_rows(data.weight))
        size = data.y_true.size
        weight = np.ones(size) if data.flat_weight is None else data.flat_weight / data.flat_weight.max()
        weight = weight * np.sqrt(size / (weight @ weight))
        cluster = row_clusters(data, size)
        found = forecasts.placed(data, bins=_bins(effective_n(weight, size)))
        if cluster is not None and len(np.unique(cluster)) < size:
            tested = _of_clusters(found, weight, cluster, self)
        else:
            tested = _of_rows(found, weight, self)
        details = dict(tested.details)
        if found.ties:
            words = f"outcomes equal quantiles in {100 * found.ties:.3g} % of rows, where F(y) is known only roughly"
            details |= {"tied": found.ties, "ties": f"{words}; draws or the distribution itself would say more"}
        if data.group is None:
            details |= _order(found.places.middle.reshape(len(data), -1))
        return replace(tested, n=len(data), details=details)


def _bins(rows: float) -> int:
    """Bins of the shape of continuous distributions and of many draws."""
    return int(np.clip(rows // 10, 4, 10))


def _order(z: Floats) -> dict[str, Any]:
    """Whether neighbours in the given order depend on each other; several outputs of a row are averaged."""
    if len(z) < 20:
        return {}
    p = forecasts.order_p_value(z.mean(axis=1), np.abs(z).mean(axis=1))
    if p >= _ORDER:
        return {"order_p": p}
    words = (
        "neighbouring rows depend on each other, but the test assumes independent rows: "
        "pass group= with blocks of rows at least as long as the dependence"
    )
    return {"order_p": p, "warning": words}


class _Null(NamedTuple):
    """The law of the components under calibration, from simulated sums and their covariance.

    The sums are of 4 scores, of 2 scores times the width, and of counts in bins less their means. `turn` makes the
    scores uncorrelated; of each component `kept` the quantiles are known, and of each sample the `evidence`.
    """

    covariance: Floats
    turn: Floats
    kept: Places
    share: Floats
    quantiles: Floats
    evidence: Floats
    skewness: Floats

    @classmethod
    def of(cls, simulated: Floats, covariance: Floats) -> _Null:
        """From sums of simulated samples, one per line."""
        turn = _orthogonal(covariance[:4, :4])
        statistics = _statistics(simulated, covariance, turn)
        kept = np.flatnonzero(np.isfinite(statistics).all(axis=0) & (np.ptp(statistics, axis=0) > 1e-9))
        share = np.array(list(SHARES.values()))[kept]
        quantiles = _quantiles(statistics[:, kept], kept == _SHAPE)
        skewness = (statistics[:, kept] ** 3).mean(axis=0)
        made = cls(covariance, turn, kept, share / max(float(share.sum()), 1e-9), quantiles, np.zeros(0), skewness)
        return made._replace(evidence=made.together(made.log_p(statistics)))

    def together(self, log_p: Floats) -> Floats:
        """The logarithm of the mean of the p-values to a negative power: a multiple of a mean of e-values."""
        return np.asarray(logsumexp(_POWER * log_p, b=self.share, axis=-1)) if len(self.kept) else log_p.sum(axis=-1)

    def log_p(self, statistics: Floats) -> Floats:
        """Logarithms of normal p-values; each side is scaled by its quantile among the simulated samples."""
        low, middle, high = self.quantiles
        apart, shape = statistics[..., self.kept] - middle, self.kept == _SHAPE
        scale = np.where(apart > 0, np.maximum(high - middle, 1e-9), np.maximum(middle - low, 1e-9)) / 1.96
        z = np.where(shape, np.maximum(apart / scale, 0.0), np.abs(apart / scale))
        return np.asarray(log_ndtr(-z) + np.where(shape, 0.0, np.log(2.0)))

    def beyond(self, observed: Floats, smallest: float, rows: float) -> float:
        """A p-value of what is beyond all samples, where that of Bonferroni would be `smallest`."""
        if rows >= _FEW:
            return smallest
        some = self.kept < 2
        skewness = np.maximum(np.abs(self.skewness[some]), 1e-3)
        toward = observed[self.kept[some]] * np.sign(self.skewness[some])
        shape = 4 / skewness**2
        at = np.maximum(shape + toward * np.sqrt(shape), 0.0)
        p = 2 * np.where(toward > 0, gammaincc(shape, at), gammainc(shape, at)) / self.share[some]
        return max(float(p.min(initial=1.0)), smallest)


class _Strata(NamedTuple):
    """Rows with the same width code and about the same weight."""

    size: tuple[int, ...]
    width: tuple[float, ...]
    weight: tuple[float, ...]


def _of_rows(found: forecasts.Placed, weight: Floats, method: ForecastTest) -> Significance:
    """The test of independent rows."""
    code, places = forecasts.width_code(found.width), found.places
    width, scores = _centred(code, weight), places.scores(forecasts.HERMITE)
    if isinstance(places, forecasts.Jumps):
        counts, null = _of_jumps(places, width, weight, method)
    else:
        counts, null = _of_counts(places, _strata(code, width, weight), weight, method)
    sums = np.concatenate([weight @ scores, (weight * width) @ scores[:, :2], counts])
    rows = scores @ null.turn.T
    by_width = _own_t((weight * width)[:, None] * rows[:, :2])
    against = np.concatenate([_own_t(weight[:, None] * rows), [np.inf], by_width[::-1]])
    observed = _statistics(sums, null.covariance, null.turn)
    made = partial(Significance, method=repr(method), n=len(weight))
    return _combined(observed, null, against, effective_n(weight, len(weight)), made)


def _centred(code: Floats, weight: Floats) -> Floats:
    """The width code less its mean, so that slopes are uncorrelated with sums; of mean square 1 where it varies."""
    square = weight**2
    code = code - float(square @ code) / float(square.sum())
    spread = float(np.sqrt(square @ code**2 / square.sum()))
    return code / spread if spread > 1e-9 else np.zeros(len(code))


def _own_t(rows: Floats) -> Floats:
    """Sums of columns over their standard errors in the sample."""
    spread = np.sqrt(((rows - rows.mean(axis=0)) ** 2).sum(axis=0))
    return np.abs(rows.sum(axis=0)) / np.maximum(spread, 1e-12)


def _of_counts(
    places: forecasts.Points | forecasts.Cells, strata: _Strata, weight: Floats, method: ForecastTest
) -> tuple[Floats, _Null]:
    """Counts less their means in cells that all rows share, and their law; continuous distributions have fine cells."""
    rows = effective_n(weight, len(weight))
    if isinstance(places, forecasts.Points):
        bins = _bins(rows)
        edges, cell_bin = _fine_cells(bins)
        own = np.bincount(np.minimum((ndtr(places.z) * bins).astype(np.intp), bins - 1), weight, minlength=bins)
    else:
        edges, cell_bin = places.edges, _joined(places.chance, rows, places.bins)
        if places.inside.ndim == 1:
            inside = np.bincount(places.inside, weight, minlength=len(cell_bin))
        else:
            inside = weight @ places.inside
        own = np.bincount(cell_bin, inside)
    expected = np.bincount(cell_bin, np.diff(edges))
    cells = tuple(edges.tolist()), tuple(cell_bin.tolist())
    return own - weight.sum() * expected, _null_of_counts(strata, *cells, method.draws, method.seed)


def _fine_cells(bins: int) -> tuple[Floats, Places]:
    """Cells of 0.08 standard deviations, and the bin of [0, 1] that each lies in."""
    z = np.unique(np.concatenate([forecasts.normal_score(np.arange(1, bins) / bins), np.arange(-4, 4.001, 0.08)]))
    edges = np.concatenate([[0.0], ndtr(z), [1.0]])
    return edges, ((edges[1:] + edges[:-1]) / 2 * bins).astype(np.intp)


def _joined(chance: Floats, rows: float, most: int | None) -> Places:
    """Bins of whole cells: neighbours are joined until two rows are expected, and there are at most about `most`."""
    least = max(2 / rows, 0.0 if most is None else 0.999 / most) - 1e-12
    number, now, inside = np.zeros(len(chance), np.intp), 0, 0.0
    for i, share in enumerate(chance):
        number[i] = now
        inside += share
        if inside >= least and i < len(chance) - 1:
            now, inside = now + 1, 0.0
    if inside < least and now > 0:
        number[number == now] = now - 1
    return number


def _strata(code: Floats, width: Floats, weight: Floats) -> _Strata:
    """Rows by width and weight; of many weights, classes with equal fourth moments and their root mean squares.

    The few rows with large weights decide how heavy the tails of a weighted sum are, and are nearly alone in theirs.
    """
    number = np.zeros(len(weight), np.intp)
    if not all_alike(weight):
        values, place, rows = np.unique(weight, return_inverse=True, return_counts=True)
        fourth = rows * values**4
        number = ((np.cumsum(fourth) - fourth / 2) / fourth.sum() * _WEIGHTS).astype(np.intp)[place.reshape(-1)]
    which = _WEIGHTS * code.astype(np.intp) + number
    size = np.bincount(which)
    some = size > 0
    at, square = (np.bincount(which, column)[some] / size[some] for column in (width, weight**2))
    return _Strata(tuple(size[some].tolist()), tuple(at.tolist()), tuple(np.sqrt(square).tolist()))


@lru_cache(maxsize=32)
def _null_of_counts(
    strata: _Strata, edges: tuple[float, ...], cell_bin: tuple[int, ...], draws: int, seed: int
) -> _Null:
    """Of samples drawn from the forecasts: counts in cells are multinomial in each stratum."""
    rng = generator(seed, "counts of forecasts")
    chance = np.diff(edges)
    scores = forecasts.Cells(np.array(edges), np.zeros(0, np.intp)).of_cells(forecasts.HERMITE)
    bins = np.eye(cell_bin[-1] + 1)[list(cell_bin)]
    bins = bins - chance @ bins
    if len(chance) > 200:
        chance, scores, bins = _fewer_cells(chance, scores, bins)
    columns = scores.shape[1] + 2 + bins.shape[1]
    simulated, covariance = np.zeros((draws, columns)), np.zeros((columns, columns))
    for size, width, weight in zip(*strata, strict=True):
        each = weight * np.concatenate([scores, width * scores[:, :2], bins], axis=1)
        simulated += rng.multinomial(size, chance / chance.sum(), draws) @ each
        covariance += size * (each.T * chance) @ each
    return _Null.of(simulated, covariance)


def _fewer_cells(chance: Floats, scores: Floats, bins: Floats) -> tuple[Floats, Floats, Floats]:
    """Neighbouring ranks among many draws joined where their normal scores differ by less than 0.08."""
    middle = np.cumsum(chance) - chance / 2
    key = np.stack([np.round(forecasts.normal_score(middle) / 0.08), bins.argmax(axis=1)], axis=1)
    _, which = np.unique(key, axis=0, return_inverse=True)
    joined = np.eye(which.max() + 1)[which.reshape(-1)].T * chance
    total = joined.sum(axis=1)
    return total, joined @ scores / total[:, None], joined @ bins / total[:, None]


def _of_jumps(places: forecasts.Jumps, width: Floats, weight: Floats, method: ForecastTest) -> tuple[Floats, _Null]:
    """The same of rows with jumps of their own, drawn row by row; of many rows the sums are normal."""
    rng = generator(method.seed, "jumps of forecasts")
    observed = weight @ _jump_columns(places.own, places.edges, width)[:, 6:]
    columns, many = len(observed) + 6, len(weight) > 2000
    simulated, covariance = np.zeros((method.draws, columns)), np.zeros((columns, columns))
    bounds = np.cumsum(places.chance)[:-1]
    step = max(1, (1 << 16) // len(places.chance))
    for start in range(0, len(weight), step):
        rows = slice(start, start + step)
        possible = places.possible(rows)
        each = _jump_columns(possible, places.edges, width[rows, None])
        each -= np.einsum("j,rjk->rk", places.chance, each)[:, None]  # 0 but for the rounding of a grid
        each *= weight[rows, None, None]
        covariance += np.einsum("j,rjk,rjl->kl", places.chance, each, each, optimize=True)
        for own in () if many else each:
            simulated += own[np.searchsorted(bounds, rng.random(method.draws))]
    if many:
        simulated = normal_draws(covariance, method.draws, rng)
    return observed - weight.sum() * np.diff(places.edges), _Null.of(simulated, covariance)


def _jump_columns(ends: Any, edges: Floats, width: Floats) -> Floats:
    """Scores, scores times the width, and the parts of a jump that lie in each bin."""
    scores = forecasts.HERMITE.mean(*ends)
    low, high = ndtr(ends.low), ndtr(ends.high)
    apart = np.maximum(high - low, 1e-12)
    low = np.minimum(low, 1 - apart)
    inside = [
        np.clip(((low + apart)[..., None] - edges[:-1]) / np.diff(edges), 0, 1),
        np.clip((low[..., None] - edges[:-1]) / np.diff(edges), 0, 1),
    ]
    parts = (inside[0] - inside[1]) * np.diff(edges) / apart[..., None]
    return np.concatenate([scores, width[..., None] * scores[..., :2], parts], axis=-1)


def _quantiles(statistics: Floats, simulated: Any) -> Floats:
    """Quantiles at 2.5, 50 and 97.5 %, of statistics of mean 0 and variance 1 by their skewness (Cornish, Fisher).

    The expansion increases in the quantile up to 1.96 only for a skewness of at most 3 / 1.96, which sums of a
    few rows exceed.
    """
    skewness = np.clip((statistics**3).mean(axis=0), -3 / 1.96, 3 / 1.96)
    normal = np.array([[-1.96], [0.0], [1.96]])
    expanded = normal + (normal**2 - 1) * skewness / 6
    return np.where(simulated, np.quantile(statistics, (0.025, 0.5, 0.975), axis=0), expanded)


def _orthogonal(covariance: Floats) -> Floats:
    """Combinations of four scores (rows) of variance 1 that are uncorrelated, in their order; 0 where little is new."""
    turn = np.zeros((4, 4))
    least = max(1e-3 * float(covariance[0, 0]), 1e-9 * float(np.diag(covariance).max()))
    for k in range(4):
        row = np.eye(4)[k]
        for before in turn[:k]:
            row = row - float(row @ covariance @ before) * before
        new = float(row @ covariance @ row)
        if new > _NEW * covariance[k, k] and new > least:
            turn[k] = row / np.sqrt(new)
    return turn


def _statistics(sums: Floats, covariance: Floats, turn: Floats) -> Floats:
    """The components in the order of their names; NaN for those that these forecasts do not have."""
    own = np.where(turn.any(axis=1), sums[..., :4] @ turn.T, np.nan)
    slopes = sums[..., 4:6] @ turn[:2, :2].T
    spread = np.sqrt(np.maximum(np.diag(turn[:2, :2] @ covariance[4:6, 4:6] @ turn[:2, :2].T), 0.0))
    slopes = np.where(spread > 1e-6, slopes / np.maximum(spread, 1e-6), np.nan)
    unit = np.sqrt(np.maximum(np.diag(covariance)[6:], 1e-12))
    values, vectors = np.linalg.eigh(covariance[6:, 6:] / np.outer(unit, unit))
    some = values > 1e-4
    freedom = max(int(some.sum()), 1)
    square = ((sums[..., 6:] / unit @ vectors[:, some]) ** 2 / values[some]).sum(axis=-1)
    ninth = 2 / (9 * freedom)
    shape = (np.cbrt(square / freedom) - (1 - ninth)) / np.sqrt(ninth)  # Wilson and Hilferty
    return np.concatenate([own, shape[..., None], slopes[..., ::-1]], axis=-1)


def _combined(
    observed: Floats, null: _Null, against: Floats, rows: float, made: Callable[..., Significance]
) -> Significance:
    """The ranked evidence; the component that decided rejects and stands out `against` the sample, or is the shape."""
    kept, share, draws = null.kept, null.share, len(null.evidence)
    if not len(kept):
        return made(1.0, 1.0, draws=draws)
    logs = null.log_p(observed)
    adjusted = logs - np.log(share)
    smallest = min(max(float(np.exp(adjusted.min())), float(np.finfo(np.float64).tiny)), 1.0)
    beyond = int((null.evidence >= null.together(logs) - 1e-9).sum())
    p_value = (1 + beyond) / (draws + 1) if beyond else min(1 / (draws + 1), null.beyond(observed, smallest, rows))
    sign = np.where(kept == _SHAPE, 0, -np.sign(observed[kept])).astype(int)
    parts = zip(kept, np.exp(logs), share, sign, strict=True)
    found = tuple(Component(_NAMES[k], float(p), float(w), _direction(s)) for k, p, w, s in parts)
    rejects = adjusted <= np.log(0.05)
    named, shape = rejects & (kept != _SHAPE) & (against[kept] > 1.96), rejects & (kept == _SHAPE)
    some = named if named.any() else shape if shape.any() else kept >= 0
    decided = found[int(np.argmin(np.where(some, adjusted, np.inf)))]
    return made(smallest, p_value, draws=draws, components=found, decided=decided)


def _direction(sign: int) -> Literal[-1, 0, 1]:
    return 1 if sign > 0 else -1 if sign < 0 else 0


def _of_clusters(found: forecasts.Placed, weight: Floats, cluster: Places, method: ForecastTest) -> Significance:
    """The test of clusters: the larger p-value of changed signs and of simulated dependence."""
    few = forecasts.too_few_clusters(weight, cluster)
    if few.reason:
        return Significance(np.nan, np.nan, method=repr(method), n=len(weight), details=few._asdict())
    effective, details = few.effective, {"effective": few.effective}
    width = _centred(forecasts.width_code(found.width), weight)
    dependent = _Dependent(found.places, width, weight, cluster, effective)
    if not len(dependent.kept):
        return Significance(1.0, 1.0, method=repr(method), n=len(weight), details=details)
    draws = max((method.draws + 1) // 4 - 1, 199)
    observed, references = dependent.statistics(dependent.sums), [dependent.flipped(draws, method.seed)]
    if effective <= _MANY_CLUSTERS:
        simulations = int(np.clip(2e6 // len(weight), 199, draws))
        references += [dependent.simulated(rho, simulations, method.seed) for rho in dependent.correlations()]
    ranked = [_ranked(observed, one) for one in references]
    p_value = max(together for together, _ in ranked)
    each = np.max([alone for _, alone in ranked], axis=0)
    kept = dependent.kept
    names = [("bias", "spread", "skewness", "tails", "bias by width", "spread by width")[k] for k in kept]
    parts = zip(names, each, observed, strict=True)
    made = tuple(Component(name, float(p), 1 / len(kept), _direction(-int(np.sign(t)))) for name, p, t in parts)
    decided = made[int(np.lexsort((-np.abs(observed), each))[0])]
    tested = partial(Significance, float(np.abs(observed).max()), p_value, method=repr(method), n=len(weight))
    return tested(details=details, draws=draws, components=made, decided=decided)


def _ranked(observed: Floats, simulated: Floats) -> tuple[float, Floats]:
    """The p-value of the largest component and of each, every direction scaled by its own simulated quantile."""
    low, middle, high = np.quantile(simulated, (0.05, 0.5, 0.95), axis=0)

    def scaled(values: Floats) -> Floats:
        apart = values - middle
        return np.where(apart > 0, apart / np.maximum(high - middle, 1e-9), -apart / np.maximum(middle - low, 1e-9))

    own, others = scaled(observed) - 1e-9, scaled(simulated)
    together = (1 + int((others.max(axis=1) >= own.max()).sum())) / (len(simulated) + 1)
    return together, (1 + (others >= own).sum(axis=0)) / (len(simulated) + 1)


@dataclass(frozen=True, eq=False)
class _Dependent:
    """Rows in clusters: cosines of F(y), also times the width, summed over each cluster."""

    places: forecasts.Placement
    width: Floats
    weight: Floats
    cluster: Places
    effective: float

    @cached_property
    def kept(self) -> Places:
        """The columns that there are: no widths where all are alike, no scores that few cells do not tell apart."""
        scores = self.places.scores(forecasts.COSINES)
        new = np.abs(_orthogonal(scores.T @ scores)).sum(axis=1) > 0
        some = np.sqrt((self.sums**2).sum(axis=0)) > 1e-9 * len(self.weight)
        return np.flatnonzero(some & np.concatenate([new, new[:2]]))

    @cached_property
    def sums(self) -> Floats:
        """One line per cluster."""
        columns = self._columns(self.places.scores(forecasts.COSINES), np.arange(len(self.weight)))
        return sums_by(self.cluster, columns)

    def _columns(self, scores: Floats, rows: Places) -> Floats:
        scores = scores * self.weight[rows, None]
        return np.concatenate([scores, self.width[rows, None] * scores[..., :2]], axis=-1)

    def statistics(self, sums: Floats) -> Floats:
        """Totals over the root of the sums of squares over clusters, of the columns that are kept."""
        sums = sums[..., self.kept]
        return np.asarray(sums.sum(axis=-2) / np.maximum(np.sqrt((sums**2).sum(axis=-2)), 1e-12))

    def flipped(self, draws: int, seed: int) -> Floats:
        """Statistics after random changes of the signs of whole clusters."""
        rng = generator(seed, "signs of clusters of forecasts")
        sums = self.sums[:, self.kept]
        sums = sums / np.sqrt((sums**2).sum(axis=0))
        step = max(1, (1 << 22) // len(sums))
        sizes = [min(step, draws - start) for start in range(0, draws, step)]
        return np.concatenate([(2.0 * rng.integers(0, 2, (size, len(sums))) - 1) @ sums for size in sizes])

    def correlations(self) -> tuple[float, ...]:
        """Of a normal copula within clusters: what the bias or the spread scores show, and one standard error more."""
        square = float(self.weight @ self.weight)
        mass = np.bincount(self.cluster, self.weight)
        pairs = float(mass @ mass) - square
        if pairs <= 1e-9 * square:
            return (0.0,)
        rho, within, variance = self._attenuation()
        sums, often, high = self.sums, float(mass @ mass) / square, []
        best = 0.0
        for k in (0, 1):
            alone = variance[k] * square
            own = float(np.clip((sums[:, k] @ sums[:, k] - alone) / (variance[k] * pairs), 0, 1))
            best = max(best, float(np.interp(own, within[k], rho)))
            error = np.sqrt(2 / self.effective) * (own + (1 - own) / often)
            high.append(float(np.interp(own + error, within[k], rho)))
        return tuple(sorted({best, max(best, min(high[0], 0.99))}))

    def _attenuation(self) -> tuple[Floats, Floats, Floats]:
        """Correlations of the copula, those of the bias and spread scores that go with them, and their variances."""
        rng = generator(0, "attenuation by cells")
        rows = np.unique(np.linspace(0, len(self.weight) - 1, 64).astype(np.intp))
        a, b = rng.standard_normal((2, 4000 // len(rows) + 1, len(rows)))
        a, b = np.concatenate([a, a, -a, -a]), np.concatenate([b, -b, b, -b])
        one = self.places.scores_at(forecasts.COSINES, a, rows)[..., :2]
        variance = np.maximum((one**2).mean(axis=(0, 1)), 1e-9)
        rho = np.array([*np.arange(10) / 10, 0.95, 0.99])
        other = (self.places.scores_at(forecasts.COSINES, r * a + np.sqrt(1 - r * r) * b, rows)[..., :2] for r in rho)
        within = np.stack([(one * two).mean(axis=(0, 1)) / variance for two in other])
        return rho, np.maximum.accumulate(within, axis=0).T, variance

    def simulated(self, rho: float, draws: int, seed: int) -> Floats:
        """Statistics of samples in which normal scores have the correlation `rho` within clusters."""
        rng = generator(seed, "dependence within clusters")
        clusters = int(self.cluster.max()) + 1
        common = np.sqrt(rho) * rng.standard_normal((draws, clusters))
        order = np.argsort(self.cluster, kind="stable")
        total = np.zeros((draws, clusters, 6))
        for rows in np.array_split(order, max(1, draws * len(order) // (1 << 18))):
            here = self.cluster[rows]
            z = common[:, here] + np.sqrt(1 - rho) * rng.standard_normal((draws, len(rows)))
            columns = self._columns(self.places.scores_at(forecasts.COSINES, z, rows), rows)
            first = np.flatnonzero(np.diff(here, prepend=-1))
            total[:, here[first]] += np.add.reduceat(columns, first, axis=1)
        return self.statistics(total)
