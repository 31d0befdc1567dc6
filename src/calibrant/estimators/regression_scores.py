"""Proper scores of predicted distributions, their losses row by row, and their reference scores.

A score alone does not say whether a forecaster is calibrated, but each predicted distribution implies the score to be
expected if it is right. ``details["null"]`` is that expectation: in closed form for Gaussian predictions, by outcomes
simulated from the predicted distributions otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Unpack

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betaln, erf, ndtri

from calibrant.data import validation
from calibrant.data.forecasts import Distribution, Forecast, Gaussian, Quantiles, Samples
from calibrant.data.predictions import Column, Columns
from calibrant.data.validation import fail
from calibrant.estimators import regression_common as common
from calibrant.estimators.proper_scores import infinite_rows, log_provenance
from calibrant.estimators.regression_common import ForecastData
from calibrant.numerics.arrays import Floats
from calibrant.numerics.random_draws import generator
from calibrant.numerics.rows import effective_n
from calibrant.results.estimate import Estimate
from calibrant.results.target import estimates


def nll_losses(task: Forecast, *, floor: float = 0.0) -> Floats:
    """Minus the log density at each outcome; zero where the weight is."""
    losses = log_loss_of(task, floor)(task.y_true)
    weight = task.flat_weight
    return losses if weight is None else np.where(weight > 0, losses, 0.0)


def crps_losses(task: Forecast) -> Floats:
    """CRPS of each outcome."""
    if isinstance(task, Gaussian):
        return gaussian_crps(task.z()) * task.std.ravel()
    if isinstance(task, Samples):
        return fair_crps(task)
    return crps_of(task)(task.y_true.ravel())


def pinball_losses(task: Forecast, *, levels: ArrayLike | None = None) -> Floats:
    """Pinball loss of each outcome, averaged over the levels."""
    y = task.y_true.ravel()
    return np.mean([pinball_loss(y - task.quantile(level), level) for level in pinball_levels(task, levels)], axis=0)


def interval_score_losses(task: Forecast, *, nominal: float = 0.9) -> Floats:
    """Winkler's score of each outcome."""
    return winkler_loss(task.y_true.ravel(), *common.central_interval(task, nominal), 1 - nominal)


@estimates("mean score", losses=nll_losses)
def nll(
    data: ForecastData = None,
    mean: Column = None,
    std: Column = None,
    *,
    floor: float = 0.0,
    **columns: Unpack[Columns],
) -> Estimate:
    r"""Negative log likelihood per outcome (logarithmic score).

    .. math:: -\frac1W\sum_i w_i \log \max(f_i(y_i), \varepsilon)

    where f_i is the predicted density (or probability mass) and :math:`\varepsilon` is `floor`. The sum over rows in
    the paper is n times this. Needs a density: `Gaussian`, or a `Distribution` with ``logpdf`` (or ``logpmf``).

    Parameters
    ----------
    data : Gaussian, Distribution, or y_true (then `mean` and `std`)
    floor : float, at least 0
        Densities are raised to at least this. By default nothing is raised, and an outcome outside the support of its
        distribution makes the mean infinite; ``details`` then counts these outcomes and names the first.

    References
    ----------
    Levi et al. (2022), eq. 10; Good (1952).

    Examples
    --------
    >>> nll([0.0], [0.0], [1.0])
    <NLL 0.9189, n=1, mean>
    """
    task = common.forecast(data, mean, std)
    if not 0 <= floor < np.inf:
        fail(f"floor must be a number of at least 0, got {floor!r}.", ValueError)
    losses = nll_losses(task, floor=floor)
    infinite = infinite_rows(losses)
    first = int(infinite[0]) // (task.y_true.size // len(task)) if len(infinite) else None
    method, details = log_provenance("mean", floor, infinite=len(infinite), first=first)
    if isinstance(task, Gaussian) and floor == 0:
        null = _entropy(task)
    else:
        null = simulated_reference(task, log_loss_of(task, floor))
    value = common.mean_of(losses, task.flat_weight)
    return common.finished(task, value, "NLL", method, null, lambda output: nll(output, floor=floor), **details)


@estimates("mean score", losses=crps_losses)
def crps(data: ForecastData = None, mean: Column = None, std: Column = None, **columns: Unpack[Columns]) -> Estimate:
    r"""Continuous ranked probability score, CRPS, in units of the target.

    .. math:: \frac1W \sum_i w_i \int \bigl(F_i(x) - \mathbf 1\{y_i \le x\}\bigr)^2 dx

    Gaussian: closed form. Draws: the fair version, unbiased for the distribution behind the ensemble,
    :math:`\frac1m\sum_j\lvert x_j - y\rvert - \frac{1}{m(m-1)}\sum_{j<k}\lvert x_j - x_k\rvert`. Quantiles: twice the
    pinball loss, each level standing for the levels nearest to it. Distribution: Gauss-Legendre on both sides of F(y);
    for counts, the sum over them.

    References
    ----------
    Gneiting and Raftery (2007), Strictly Proper Scoring Rules; Ferro (2014) for the fair version.

    Examples
    --------
    >>> crps([0.0], [0.0], [1.0])
    <CRPS 0.2337, n=1, mean>
    """
    task = common.forecast(data, mean, std)
    if isinstance(task, Gaussian):
        null, method = gaussian_reference(task, gaussian_crps, 1 / np.sqrt(np.pi)), "mean"
    elif isinstance(task, Samples):
        null, method = exchanged_reference(task, fair_crps), "fair"
    else:
        null = simulated_reference(task, crps_of(task))
        exact = isinstance(task, Distribution) and task.discrete
        method = f"{len(task.levels)} quantiles" if isinstance(task, Quantiles) else ("sum" if exact else "quadrature")
    value = common.mean_of(crps_losses(task), task.flat_weight)
    return common.finished(task, value, "CRPS", method, null, crps)


@estimates("mean score", losses=pinball_losses)
def pinball(
    data: ForecastData = None,
    mean: Column = None,
    std: Column = None,
    *,
    levels: ArrayLike | None = None,
    **columns: Unpack[Columns],
) -> Estimate:
    r"""Pinball (quantile, check) loss, averaged over levels: :math:`(\tau - \mathbf 1\{y < q_\tau\})(y - q_\tau)`.

    `levels` are by default those of `Quantiles`, and 0.1 to 0.9 for the rest. ``details["by_level"]`` holds each
    level's loss.

    References
    ----------
    Koenker and Bassett (1978), Regression Quantiles.

    Examples
    --------
    >>> pinball([1.0], [0.0], [1.0], levels=[0.5])
    <Pinball loss 0.5, n=1, mean over 1 level>
    """
    task = common.forecast(data, mean, std)
    at = pinball_levels(task, levels)
    y, weight = task.y_true.ravel(), task.flat_weight
    single = [common.mean_of(pinball_loss(y - task.quantile(level), level), weight) for level in at]
    if isinstance(task, Gaussian):
        place = ndtri(at)
        expected = float(np.mean(np.exp(-(place**2) / 2)) / np.sqrt(2 * np.pi))
        null = gaussian_reference(task, lambda z: pinball_loss(z[:, None] - place, at).mean(axis=1), expected)
    else:
        null = quantile_reference(
            task, at, lambda y, q: np.mean([pinball_loss(y - q[k], at[k]) for k in range(len(at))], 0)
        )
    value, method = float(np.mean(single)), f"mean over {len(at)} level{'s' if len(at) > 1 else ''}"
    each, by_level = partial(pinball, levels=at), dict(zip(at.tolist(), single, strict=True))
    return common.finished(task, value, "Pinball loss", method, null, each, by_level=by_level)


@estimates("mean score", losses=interval_score_losses)
def interval_score(
    data: ForecastData = None,
    mean: Column = None,
    std: Column = None,
    *,
    nominal: float = 0.9,
    **columns: Unpack[Columns],
) -> Estimate:
    r"""Winkler's interval score of the central interval [l, u] of nominal coverage c: width plus a penalty for misses.

    .. math:: (u - l) + \frac2\alpha (l - y)_+ + \frac2\alpha (y - u)_+, \qquad \alpha = 1 - c

    Parameters
    ----------
    data : Gaussian, Distribution, Quantiles, Samples, or y_true (then `mean` and `std`)
    nominal : float in (0, 1)
        Nominal coverage c of the central interval.

    References
    ----------
    Winkler (1972); Gneiting and Raftery (2007), eq. 43.

    Examples
    --------
    >>> interval_score([0.0, 3.0], [0.0, 0.0], [1.0, 1.0], nominal=0.5).value
    6.0
    """
    task = common.forecast(data, mean, std)
    nominal = validation.fraction("nominal", nominal)
    missed = 1 - nominal
    if isinstance(task, Gaussian):
        edge = np.array(ndtri((1 + nominal) / 2))
        expected = 4 / missed * float(np.exp(-(edge**2) / 2)) / np.sqrt(2 * np.pi)
        null = gaussian_reference(task, lambda z: winkler_loss(z, -edge, edge, missed), expected)
    else:
        ends = np.array([(1 - nominal) / 2, (1 + nominal) / 2])
        null = quantile_reference(task, ends, lambda y, q: winkler_loss(y, q[0], q[1], missed))
    value = common.mean_of(interval_score_losses(task, nominal=nominal), task.flat_weight)
    each = partial(interval_score, nominal=nominal)
    return common.finished(task, value, "Interval score", f"nominal coverage {nominal:.6g}", null, each)


@estimates("dispersion")
def sharpness(
    data: ForecastData = None, mean: Column = None, std: Column = None, **columns: Unpack[Columns]
) -> Estimate:
    r"""Root mean predicted variance, in units of the target: how concentrated the forecasts are.

    Small is good only where calibration holds; a calibrated forecaster's sharpness is its root mean square error,
    which is the null reference.

    Examples
    --------
    >>> sharpness([0.0, 0.0], [0.0, 0.0], [3.0, 4.0])
    <Sharpness 3.536, n=2, root mean variance>
    """
    task = common.forecast(data, mean, std)
    rows = common.spread_rows(common.moments(task), needed_by="sharpness")
    error = np.sqrt(common.mean_of(rows.observed, rows.weight))
    kurtosis = common.squared_error_kurtosis(rows.observed, rows.weight)
    sd = error * np.sqrt((kurtosis - 1) / 4 / effective_n(rows.weight, len(rows.key)))
    null = common.null_reference(error, sd, "root mean square error", kurtosis=kurtosis)
    value = float(np.sqrt(common.mean_of(rows.predicted, rows.weight)))
    return common.finished(task, value, "Sharpness", "root mean variance", null, sharpness)


def _entropy(task: Gaussian) -> dict[str, Any]:
    """The log score that Gaussian predictions expect: their mean entropy."""
    sigma, weight = task.std.ravel().astype(np.float64, copy=False), task.flat_weight
    kurtosis = common.squared_error_kurtosis(task.z() ** 2, weight)
    mean = common.mean_of(np.log(sigma), weight) + (np.log(2 * np.pi) + 1) / 2
    sd = np.sqrt((kurtosis - 1) / 4 / effective_n(weight, len(sigma)))
    return common.null_reference(mean, sd, "entropy of the predicted distributions", kurtosis=kurtosis)


def covered(task: Forecast, *, nominal: float = 0.9) -> Floats:
    """One for each outcome in its central interval, else zero."""
    low, high = common.central_interval(task, nominal)
    y = task.y_true.ravel()
    return ((low <= y) & (y <= high)).astype(np.float64)


def log_loss_of(task: Forecast, floor: float) -> Callable[[Floats], Floats]:
    """Minus the log of the predicted density, raised to at least `floor`, as a function of the outcomes."""
    loss = _negative_log_density(task)
    return loss if floor == 0 else lambda y: np.minimum(loss(y), -np.log(floor))


def crps_of(task: Forecast) -> Callable[[Floats], Floats]:
    """CRPS of quantiles and of distributions, as a function of the outcomes."""
    if isinstance(task, Quantiles):
        middle = np.concatenate([[0.0], (task.levels[1:] + task.levels[:-1]) / 2, [1.0]])
        return lambda y: 2 * (pinball_loss(y[:, None] - task.values, task.levels) @ np.diff(middle))
    if not isinstance(task, Distribution):
        fail(f"crps does not take {type(task).__name__}.", TypeError)
    return crps_of_counts(task) if task.discrete else _quadrature(task)


def pinball_levels(task: Forecast, levels: ArrayLike | None) -> Floats:
    """The levels asked for; by default those of the quantiles, and 0.1 to 0.9 for the rest."""
    if levels is None:
        levels = task.levels if isinstance(task, Quantiles) else np.arange(1, 10) / 10
    return np.array([validation.fraction("levels", level) for level in validation.column("levels", levels).tolist()])


def pinball_loss(gap: Floats, level: Floats | float) -> Floats:
    """Pinball loss of outcomes this far above the quantile."""
    return np.maximum(level * gap, (level - 1) * gap)


def winkler_loss(y: Floats, low: Floats, high: Floats, missed: float) -> Floats:
    """Width of an interval plus the penalty of outcomes beyond it, with `missed` one less its nominal coverage."""
    return (high - low) + 2 / missed * (np.maximum(low - y, 0.0) + np.maximum(y - high, 0.0))


def _negative_log_density(task: Forecast) -> Callable[[Floats], Floats]:
    if isinstance(task, Gaussian):
        mean, sigma = (part.ravel().astype(np.float64, copy=False) for part in (task.mean, task.std))
        return lambda y: np.log(sigma) + ((y.ravel() - mean) / sigma) ** 2 / 2 + np.log(2 * np.pi) / 2
    dist = task.dist if isinstance(task, Distribution) else None
    density = next((getattr(dist, name) for name in ("logpdf", "logpmf") if hasattr(dist, name)), None)
    if density is None:
        message = f"nll needs a density, which {type(task).__name__} lacks here; crps does without."
        raise validation.UnsupportedPredictions(message)
    return lambda y: -np.asarray(density(y.reshape(task.y_true.shape)), dtype=np.float64).ravel()


#: In words how the reference of an ensemble was found.
EXCHANGED = "outcome exchanged with the draws"
#: Number of outcomes to simulate, at least.
#: Derived: the mean of 10,000 is known to 1 % of the standard deviation of one.
SIMULATED = 10_000


def gaussian_reference(task: Gaussian, unit_score: Callable[[Floats], Floats], expected: float) -> dict[str, Any]:
    """Reference of a score that is sigma times a function of z, whose mean for normal z is `expected`."""
    scores = unit_score(ndtri((np.arange(2048) + 0.5) / 2048))
    sigma, weight = task.std.ravel().astype(np.float64, copy=False), task.flat_weight
    size = effective_n(weight, len(sigma))
    largest = float(sigma.max())  # divided out, since squares of extreme units are no numbers
    sd = largest * np.sqrt(scores.var() * common.mean_of((sigma / largest) ** 2, weight) / size)
    return common.null_reference(
        expected * common.mean_of(sigma, weight), sd, "expectation under the predicted distributions"
    )


def simulated_reference(task: Forecast, score: Callable[[Floats], Floats]) -> dict[str, Any]:
    """Reference of any score, from outcomes simulated from the predicted distribution of each row."""
    rng = generator(0, "reference of a score")
    size = task.y_true.size
    rounds = max(2, -(-SIMULATED // size))
    scores = np.stack([score(_simulated_outcomes(task, rng)) for _ in range(rounds)])
    return _of_scores(scores, task, "simulated outcomes")


def exchanged_reference(task: Samples, score: Callable[[Samples], Floats]) -> dict[str, Any]:
    """Reference of a score of ensembles; see `exchanged_ensembles`."""
    return _of_scores(
        np.stack([score(one) for one in exchanged_ensembles(task)]), task, "outcome exchanged with the draws"
    )


def exchanged_ensembles(task: Samples) -> Iterator[Samples]:
    """Tasks of a perfect forecaster: in each row the outcome changes places with one of all m + 1 values at random."""
    rng = generator(0, "outcomes exchanged with draws")
    values = np.column_stack([task.y_true, task.draws]).astype(np.float64, copy=False)
    rows, size = np.arange(len(task)), values.shape[1]
    for _ in range(max(10, -(-SIMULATED // len(task)))):
        chosen, other = rng.integers(0, size, len(task)), values.copy()
        other[rows, chosen] = values[:, 0]
        yield Samples(values[rows, chosen], other[:, 1:], weight=task.weight)


def quantile_reference(
    task: Forecast, levels: Floats, score: Callable[[Floats, list[Floats]], Floats]
) -> dict[str, Any]:
    """Reference of a score of the outcome and of the quantiles at `levels`."""
    if isinstance(task, Samples):
        return exchanged_reference(task, lambda one: score(one.y_true, [one.quantile(level) for level in levels]))
    quantiles = [task.quantile(level) for level in levels]
    return simulated_reference(task, lambda y: score(y, quantiles))


#: Most counts that a CRPS is a sum over, and values of distribution functions that are kept at once.
#: Derived: 4,096 counts of 1,024 rows are 1 << 22 values, 32 MB.
MOST_COUNTS, AT_ONCE = 4096, 1 << 22


def gaussian_crps(z: Floats) -> Floats:
    r"""CRPS of the standard normal at z: :math:`z(2\Phi(z) - 1) + 2\varphi(z) - 1/\sqrt\pi`."""
    return z * erf(z / np.sqrt(2)) + np.exp(-(z**2) / 2) * np.sqrt(2 / np.pi) - 1 / np.sqrt(np.pi)


def fair_crps(task: Samples) -> Floats:
    """Mean distance of draws and outcome less half the mean distance of two different draws, per row."""
    ordered, y = np.sort(task.draws.astype(np.float64, copy=False), axis=1), task.y_true
    size = ordered.shape[1]
    ranks = 2 * np.arange(1, size + 1) - size - 1
    return np.abs(ordered - y[:, None]).mean(axis=1) - ordered @ (ranks / (size * (size - 1)))


def student_log_losses(task: Samples) -> Floats:
    r"""Negative log likelihood of Student's distribution with ν = m - 1 degrees of freedom about the mean of m draws.

    .. math:: \log\bigl(s\sqrt{1 + \tfrac1m}\bigr) + \log\bigl(\sqrt\nu\,B(\tfrac12, \tfrac\nu2)\bigr)
              + \tfrac m2 \log\Bigl(1 + \frac{t^2}{\nu}\Bigr)

    with t the error over :math:`s\sqrt{1 + 1/m}`. It judges stretched ensembles, whose members are not independent: for
    values that are exchangeable it is best, on average, without a stretch.
    """
    freedom = task.draws.shape[1] - 1
    spread = np.maximum(task.std, 1e-150)
    root = np.hypot(1.0, (task.y_true - task.mean) / spread / np.sqrt(freedom))
    whole = np.log(np.sqrt(freedom)) + betaln(0.5, freedom / 2)
    return np.asarray(np.log(spread) + whole + (freedom + 1) * np.log(root))


def crps_by_quadrature(task: Distribution, *, nodes: int = 48) -> Floats:
    r"""CRPS from quantiles, on both sides of u = F(y).

    .. math:: 2\int_0^u \tau\,(y - q_\tau)\,d\tau + 2\int_u^1 (1-\tau)(q_\tau - y)\,d\tau

    The nodes are denser towards 0 and 1 (fourth power), because of the tails.
    """
    x, w = np.polynomial.legendre.leggauss(nodes)
    part, share = (1 + x) / 2, w / 2
    y, u = task.y_true.astype(np.float64).ravel(), task.pit()[1]
    total = np.zeros(len(y))
    for t, weight in zip(part**4, share * 4 * part**3, strict=True):
        low, high = u * t, (1 - u) * t
        total += weight * u * low * (y - _finite(task.quantiles_at(low), y))
        total += weight * (1 - u) * high * (_finite(task.quantiles_at(1 - high), y) - y)
    return 2 * total


def crps_of_counts(task: Distribution) -> Callable[[Floats], Floats]:
    r"""CRPS of distributions of counts, whose distribution function is constant between them, of the outcomes y.

    .. math:: \sum_k F(k)^2\,|[k, k + 1] \cap (-\infty, y]| + (1 - F(k))^2\,|[k, k + 1] \cap [y, \infty)|

    Distributions over more than `MOST_COUNTS` counts are as good as continuous.
    """
    low, high = (task.quantile(level) for level in (1e-12, 1 - 1e-12))
    wide = ~(high - low < MOST_COUNTS)
    low, high = np.where(wide, 0.0, low), np.where(wide, -1.0, high)
    steps = np.arange(int((high - low).max(initial=-1.0)) + 1, dtype=np.float64)
    at_once = max(AT_ONCE // len(low), 1)
    parts = [steps[first : first + at_once] for first in range(0, len(steps), at_once)]

    def below(part: Floats) -> Floats:
        found = [np.asarray(task.dist.cdf((low + step).reshape(task.y_true.shape))).ravel() for step in part]
        return np.array(found, dtype=np.float64)

    known = [below(parts[0])] if len(parts) == 1 else None  # few enough to be kept for other outcomes

    def score(y: Floats) -> Floats:
        total = np.maximum(low - y, 0.0) + np.maximum(y - high - 1, 0.0)
        for number, part in enumerate(parts):
            f, k = below(part) if known is None else known[number], low + part[:, None]
            share = np.clip(y - k, 0.0, 1.0)
            total += np.where(k <= high, share * f**2 + (1 - share) * (1 - f) ** 2, 0.0).sum(axis=0)
        return np.where(wide, _quadrature(task)(y), total) if wide.any() else total

    return score


def _quadrature(task: Distribution) -> Callable[[Floats], Floats]:
    return lambda y: crps_by_quadrature(Distribution(y.reshape(task.y_true.shape), task.dist))


def _finite(quantiles: Floats, y: Floats) -> Floats:
    """Quantiles are infinite only at levels that round to 0 or 1, whose share vanishes: they count as the outcome."""
    return np.where(np.isfinite(quantiles), quantiles, y)


def _of_scores(scores: Floats, task: Forecast, law: str) -> dict[str, Any]:
    weight = task.flat_weight
    center = common.mean_of(scores.mean(axis=0), weight)
    sd = np.sqrt(common.mean_of(scores.var(axis=0, ddof=1), weight))
    return common.null_reference(center, sd / np.sqrt(effective_n(weight, scores.shape[1])), law)


def _simulated_outcomes(task: Forecast, rng: np.random.Generator) -> Floats:
    """One outcome per row from its predicted distribution, at quantile levels stratified over the rows."""
    size = task.y_true.size
    level = (rng.permutation(size) + rng.random(size)) / size
    if isinstance(task, Gaussian):
        return np.asarray(task.mean.ravel() + ndtri(level) * task.std.ravel(), dtype=np.float64)
    if isinstance(task, Distribution):
        return task.quantiles_at(level)
    if not isinstance(task, Quantiles):
        fail(f"Cannot simulate outcomes of {type(task).__name__}.", TypeError)
    return _between_quantiles(task, level)


def _between_quantiles(task: Quantiles, level: Floats) -> Floats:
    """Quantile function of pieces of normal ones through neighbouring predicted quantiles; the outer pieces go on."""
    levels, level = ndtri(task.levels), ndtri(level)
    values = task.values.astype(np.float64, copy=False)
    if len(levels) == 1:
        return values[:, 0]
    left = np.clip(np.searchsorted(levels, level) - 1, 0, len(levels) - 2)
    rows = np.arange(len(level))
    part = (level - levels[left]) / (levels[left + 1] - levels[left])
    return values[rows, left] + part * (values[rows, left + 1] - values[rows, left])
