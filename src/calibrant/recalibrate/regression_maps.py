"""Maps of predicted distributions: of the spread (one factor, isotonic, bins, spline), and of the quantiles.

Quantiles are changed by an isotonic map of the distribution function, or by conformal prediction.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from calibrant.data import validation
from calibrant.data.forecasts import Distribution, Forecast, Gaussian, Quantiles, Samples
from calibrant.data.validation import InvalidPredictions, fail
from calibrant.estimators.regression_common import mean_of, ratio_variance, table_kurtosis
from calibrant.estimators.regression_scores import fair_crps, gaussian_crps
from calibrant.numerics.arrays import Floats
from calibrant.numerics.isotonic import pool_adjacent_violators
from calibrant.recalibrate.regression_base import (
    OutputRecalibrator,
    Remapped,
    SpreadRecalibrator,
    Stretched,
    as_distribution,
    center_of,
    spread_of,
)
from calibrant.table.binning import Cut, Distinct, EqualMass
from calibrant.table.bintable import BinTable

Criterion = Literal["nll", "crps", "mad"]

#: A single row that carries more than this part of the sum of z^2 decides the factor by itself.
#: Test: tests/recalibrate/test_regression_maps.py::test_a_row_that_carries_a_tenth_of_the_squares_is_warned_of.
CARRIED_BY_ONE = 0.1
#: The median of |Z| for a standard normal Z.
#: Derived: the quantile of the standard normal distribution at 3/4.
NORMAL_MAD = 0.6744897501960817


@dataclass(kw_only=True, eq=False, repr=False)
class StdScaling(SpreadRecalibrator):
    r"""STD scaling: every spread times one factor s, the regression sibling of temperature scaling.

    Parameters
    ----------
    criterion : {"nll", "crps", "mad"}
        What s minimises on the recalibration set. The negative log likelihood has the closed form
        :math:`s^2 = \overline{z^2}` for Gaussian forecasts (and this moment form is used for ensembles); for a
        `Distribution` it is minimised over s. One tiny sigma can blow it up, and a warning says so. The CRPS, and
        the median of abs(z) over that of a standard normal ("mad"), withstand such rows.

    Attributes
    ----------
    scale_ : array of shape (d,)
        The factor of each output.

    References
    ----------
    Levi, Gispan, Giladi, Fetaya (2022), eq. 10-12 (the minus in eq. 12 is a misprint; with it nothing is minimal).

    Examples
    --------
    >>> StdScaling().fit([[0.0, 1.0], [0.0, 1.0]], [2.0, -2.0]).transform([[5.0, 0.5]])
    array([[5., 1.]])
    """

    criterion: Criterion = "nll"

    @property
    def scale_(self) -> Floats:
        """The factor of each output."""
        return np.array([learnt["scale"] for learnt in self.outputs_])

    def _fit_output(self, task: Forecast) -> dict[str, Any]:
        if self.criterion not in ("nll", "crps", "mad"):
            fail(f"criterion must be 'nll', 'crps' or 'mad', got {self.criterion!r}.", ValueError)
        if self.criterion == "nll" and isinstance(task, Distribution):
            return {"scale": _likeliest_factor(task)}
        rows = task.rows()
        z, weight = np.sqrt(rows.observed / rows.predicted), rows.weight
        if not z.any():
            fail("All errors are zero: no spread would be small enough.", ValueError)
        if self.criterion == "mad":
            return {"scale": _weighted_median(z, weight) / NORMAL_MAD}
        moment = float(np.sqrt(mean_of(z**2, weight)))
        if self.criterion == "nll":
            _warn_if_carried_by_one(z, rows.key, weight)
            return {"scale": moment}
        start = _weighted_median(z, weight) / NORMAL_MAD or moment
        if isinstance(task, Samples):
            return {"scale": _minimiser(lambda s: mean_of(fair_crps(_scaled_draws(task, s)), weight), start)}
        std = rows.key
        return {"scale": _minimiser(lambda s: mean_of(s * std * gaussian_crps(z / s), weight), start)}

    def _factor(self, learnt: dict[str, Any], std: Floats) -> Floats:
        return np.full(len(std), learnt["scale"])


class VarianceIsotonic(SpreadRecalibrator):
    """Isotonic regression of the squared error on the predicted spread.

    Levels are joined by straight lines between the blocks, and go on unchanged beyond the first and the last. Many
    rows come to share a spread; bins that part such ties would depend on the order of the rows, which is why `ence`
    never splits them.

    Examples
    --------
    >>> fixed = VarianceIsotonic().fit([[0, 1.0], [0, 2.0], [0, 3.0]], [2.0, 2.0, 4.0])
    >>> fixed.transform([[0, 0.5], [0, 3.0]])
    array([[0., 2.],
           [0., 4.]])
    """

    def _fit_output(self, task: Forecast) -> dict[str, Any]:
        cells = BinTable.of(task, Distinct()).filled()
        starts, weight, observed = pool_adjacent_violators(cells.weight, cells.observed)
        level = observed / weight
        if not level.any():
            fail("All errors are zero: no spread would be small enough.", ValueError)
        level = np.maximum(level, level[level > 0].min())
        ends = np.append(starts[1:], len(cells)) - 1
        at = np.stack([cells.low[starts], cells.high[ends]], axis=1).ravel()
        keep = np.ones(len(at), dtype=bool)
        keep[1::2] = starts != ends
        return {"at": at[keep], "variance": np.repeat(level, 2)[keep]}

    def _factor(self, learnt: dict[str, Any], std: Floats) -> Floats:
        return np.sqrt(np.interp(std, learnt["at"], learnt["variance"])) / std


@dataclass(kw_only=True, eq=False, repr=False)
class VarianceHistogram(SpreadRecalibrator):
    """Histogram binning of the spread: each bin's spread becomes its root mean square error.

    Parameters
    ----------
    bins : Binning
        How to cut the predicted standard deviations.
    scaling : bool
        Multiply the spreads of a bin by RMSE / RMV instead of replacing them, so that they stay apart.

    References
    ----------
    Levi et al. (2022), section 3.1; Pernot (2023) scales bin by bin, by the variance of z.

    Examples
    --------
    >>> import calibrant as cal
    >>> fixed = VarianceHistogram(bins=cal.EqualMass(1)).fit([[0, 1.0], [0, 3.0]], [1.0, -1.0])
    >>> fixed.transform([[0, 2.0]])
    array([[0., 1.]])
    """

    bins: Cut | int = EqualMass(20)
    scaling: bool = False

    def _fit_output(self, task: Forecast) -> dict[str, Any]:
        table = BinTable.of(task, self.bins).filled()
        error = table.observed_mean
        if not error.any():
            fail("All errors are zero: no spread would be small enough.", ValueError)
        error = np.maximum(error, error[error > 0].min())
        return {"inner": table.high[:-1], "variance": error, "ratio": error / table.predicted_mean}

    def _factor(self, learnt: dict[str, Any], std: Floats) -> Floats:
        index = np.searchsorted(learnt["inner"], std, side="left")
        return np.sqrt(learnt["ratio"][index]) if self.scaling else np.sqrt(learnt["variance"][index]) / std


@dataclass(kw_only=True, eq=False, repr=False)
class SpreadSpline(SpreadRecalibrator):
    r"""A smooth map of the logarithm of the spread, fitted by likelihood.

    .. math:: \log \sigma' = \log \sigma + b(\log \sigma)

    with b a cubic spline whose second differences are penalised: a large penalty leaves a power law, of which STD
    scaling is the case of exponent 1. The penalty minimises AIC with the dispersion of the squared errors. The fit
    runs on bins of equal mass, so its cost beyond one sort does not grow with the rows.

    Parameters
    ----------
    knots : int
        Number of spline coefficients.
    bins : int
        Number of bins the rows are pooled into first.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> std = rng.uniform(0.5, 2, 5000)
    >>> y = std**2 * rng.normal(size=5000)
    >>> SpreadSpline().fit(np.column_stack([0 * std, std]), y).transform([[0.0, 1.5]]).round(1)
    array([[0. , 2.2]])
    """

    knots: int = 12
    bins: int = 200

    def _fit_output(self, task: Forecast) -> dict[str, Any]:
        table = BinTable.of(task, EqualMass(min(self.bins, max(1, len(task) // 10)))).filled()
        x = np.log(table.predicted_mean) / 2
        ratio = np.maximum(table.observed_mean / table.predicted_mean, 1e-12)
        precision = 1 / np.maximum(ratio_variance(table, table_kurtosis(table)), 1e-12)
        low, high = float(x[0]), float(x[-1])
        if len(x) < 4 or high - low < 1e-9:
            level = np.log(max(float(np.average(ratio, weights=table.weight)), 1e-300)) / 2
            return {"at": np.array([low, low + 1]), "shift": np.array([level, level])}
        basis = _spline_basis((x - low) / (high - low), self.knots)
        coefficients = _penalised_gamma(basis, ratio, precision)
        at = np.linspace(0, 1, 513)
        return {"at": low + at * (high - low), "shift": _spline_basis(at, self.knots) @ coefficients / 2}

    def _factor(self, learnt: dict[str, Any], std: Floats) -> Floats:
        return np.exp(np.interp(np.log(std), learnt["at"], learnt["shift"]))


def _spline_basis(x: Floats, size: int) -> Floats:
    """Cubic B-splines on [0, 1] with equally spaced knots."""
    from scipy.interpolate import BSpline

    knots = np.arange(-3, size + 1) * (1 / (size - 3))
    return BSpline.design_matrix(np.clip(x, 0, 1 - 1e-12), knots, 3).toarray()


def _penalised_gamma(basis: Floats, ratio: Floats, precision: Floats) -> Floats:
    """Coefficients of log E[ratio] with the penalty of the lowest AIC; gamma deviance, log link."""
    from scipy.linalg import cho_factor, cho_solve

    second = np.diff(np.eye(basis.shape[1]), n=2, axis=0)
    penalty = second.T @ second
    information = basis.T @ (precision[:, None] * basis)
    best, chosen = np.inf, np.zeros(basis.shape[1])
    b = np.full(basis.shape[1], np.log(np.average(ratio, weights=precision)))
    size = float(np.trace(information)) / basis.shape[1]
    for strength in 10.0 ** np.arange(4, -5, -1.0):
        hessian = information + size * strength * penalty + 1e-9 * size * np.eye(len(b))
        solve = cho_factor(hessian)
        for _ in range(50):  # Fisher scoring: the weights of a gamma model with log link do not change
            eta = basis @ b
            step = cho_solve(solve, basis.T @ (precision * (ratio * np.exp(-eta) - 1)) - size * strength * penalty @ b)
            b = b + step / max(1.0, float(np.abs(step).max()))
            if np.abs(step).max() < 1e-9:
                break
        eta = basis @ b
        deviance = 2 * float(precision @ (ratio * np.exp(-eta) - 1 + eta - np.log(ratio)))
        freedom = float(np.trace(cho_solve(solve, information)))
        if deviance + 2 * freedom < best:
            best, chosen = deviance + 2 * freedom, b
    return chosen


def _likeliest_factor(task: Distribution) -> float:
    """The factor about the centre that minimises the negative log likelihood."""
    if task.discrete:
        message = "A distribution of counts cannot be stretched: its likelihood is that of whole numbers."
        raise validation.UnsupportedPredictions(message)
    center, y = center_of(task), task.y_true
    typical = float(np.median(np.abs(y - center) / np.maximum(task.quantile(0.75) - task.quantile(0.25), 1e-300)))
    start = max(2 * typical, 1e-12)
    return _minimiser(lambda s: -mean_of(Stretched(task.dist, center, s).logpdf(y), task.weight), start)


def _minimiser(loss: Any, start: float) -> float:
    """The factor of lowest loss, by Brent's method on its logarithm."""
    from scipy.optimize import minimize_scalar

    def of_log(t: float) -> float:
        return float(loss(float(np.exp(t))))

    middle = float(np.log(start))
    bracket: tuple[float, ...] = (middle - 1, middle, middle + 1)
    if of_log(middle) >= min(of_log(middle - 1), of_log(middle + 1)):  # one row that carries all may be far away
        bracket = (middle - 1, middle + 1)  # from which the search goes downhill
    return float(np.exp(minimize_scalar(of_log, bracket=bracket, tol=1e-10).x))


def _scaled_draws(task: Samples, factor: float) -> Samples:
    center = task.mean[:, None]
    return Samples(task.y_true, center + factor * (task.draws - center))


def _weighted_median(values: Floats, weight: Floats | None) -> float:
    if weight is None:
        return float(np.median(values))
    order = np.argsort(values)
    running = np.cumsum(weight[order])
    return float(values[order][np.searchsorted(running, running[-1] / 2)])


def _warn_if_carried_by_one(z: Floats, std: Floats, weight: Floats | None) -> None:
    squares = z**2 if weight is None else weight * z**2
    share = float(squares.max() / squares.sum())
    if len(z) >= 50 and share > CARRIED_BY_ONE:
        row = np.argmax(squares)
        warnings.warn(
            f"The row with std = {std[row]:.3g} and |z| = {z[row]:.3g} alone carries {share:.0%} of the sum of squared "
            "z-scores that sets the factor; criterion='crps' or 'mad' withstands such rows.",
            stacklevel=4,
        )


@dataclass(kw_only=True, eq=False, repr=False)
class CdfIsotonic(OutputRecalibrator):
    r"""Kuleshov's recalibration: the new distribution function is R(F(y)), with R isotonic.

    The points to fit are :math:`(F_t(y_t), \hat P(F_t(y_t)))`, and P̂, the share of recalibration rows with a smaller
    transform, rises by itself: R is their empirical distribution function, joined by straight lines. It makes any
    forecast pass `quantile_error`, also one whose spread is noise: it multiplies all spreads by the same factor and
    changes their common shape, so it helps `ence` no more than `StdScaling` does.

    Parameters
    ----------
    nodes : int
        R is kept at this many of its points at most (equally spaced in probability).

    Attributes
    ----------
    outputs_ : list of dict
        The points ``u`` and ``p`` of R per output.

    References
    ----------
    Kuleshov, Fenner, Ermon (2018), Algorithm 1; Levi et al. (2022), section 2, for its limits.

    Examples
    --------
    >>> import calibrant as cal, numpy as np
    >>> z = np.random.default_rng(0).normal(size=4000)
    >>> data = cal.Gaussian(2 * z, 0 * z, 0 * z + 1)
    >>> fixed = CdfIsotonic().fit(data).transform(data)
    >>> cal.quantile_error(data).value > 0.1, cal.quantile_error(fixed).value < 0.001
    (True, True)
    """

    nodes: int = 4096

    def _fit_output(self, task: Forecast) -> dict[str, Any]:
        u = as_distribution(task).pit()[1]
        order = np.argsort(u)
        weight = np.ones(len(u)) if task.weight is None else task.weight[order]
        running = np.cumsum(weight)
        u, place = u[order], (running - weight / 2) / running[-1]
        if len(u) > self.nodes:
            kept = (np.arange(self.nodes) + 0.5) / self.nodes
            u, place = np.interp(kept, place, u), kept
        inside = (u > 0) & (u < 1)
        u, first = np.unique(u[inside], return_index=True)
        place = place[inside]
        ends = np.append(first[1:], len(place)) - 1
        middle = (place[first] + place[ends]) / 2  # ties share the middle of their jump
        return {"u": np.concatenate([[0.0], u, [1.0]]), "p": np.concatenate([[0.0], middle, [1.0]])}

    def _transform(self, task: Forecast) -> Distribution:
        maps = [(learnt["u"], learnt["p"]) for learnt in self.outputs_]
        dist = Remapped(as_distribution(task).dist, maps)
        return Distribution(task.y_true, dist, weight=task.weight, group=task.group)


@dataclass(kw_only=True, eq=False, repr=False)
class Conformal(OutputRecalibrator):
    r"""Split conformal quantiles: intervals that cover in finite samples, whatever the forecast.

    The quantile of level τ becomes :math:`\mu + \sigma q_\tau`, with q_τ the
    :math:`\lceil (n+1)\tau \rceil`-th smallest (below one half: :math:`\lfloor (n+1)\tau \rfloor`-th) of the n
    recalibration scores :math:`(y-\mu)/\sigma`. For exchangeable rows the interval between levels τ and 1 - τ covers
    at least 1 - 2τ. `Quantiles` are shifted level by level instead (conformalised quantile regression).

    Parameters
    ----------
    levels : sequence of float in (0, 1)
        The quantiles to predict, for forecasts other than `Quantiles`.
    normalised : bool
        Divide the scores by σ. Without, all rows get the same widths (the plain split method).
    symmetric : bool
        Use abs(y - μ), so that intervals are centred; the levels must then pair up as τ and 1 - τ.

    References
    ----------
    Lei, G'Sell, Rinaldo, Tibshirani, Wasserman (2018), Distribution-Free Predictive Inference for Regression; Romano,
    Patterson, Candès (2019), Conformalized Quantile Regression.

    Examples
    --------
    >>> import calibrant as cal, numpy as np
    >>> z = np.random.default_rng(0).normal(size=2000)
    >>> data = cal.Gaussian(3 * z, 0 * z, 0 * z + 1)
    >>> fixed = Conformal(levels=[0.05, 0.95]).fit(data).transform(data)
    >>> fixed, round(cal.coverage(fixed, nominal=0.9), 2)
    (<Quantiles, n=2_000>, 0.9)
    """

    levels: Sequence[float] = (0.05, 0.25, 0.5, 0.75, 0.95)
    normalised: bool = True
    symmetric: bool = False

    def _fit_output(self, task: Forecast) -> dict[str, Any]:
        if isinstance(task, Quantiles):
            gaps = task.y_true[:, None] - task.values
            shift = [_conformal_quantile(gaps[:, [k]].ravel(), tau, task.weight) for k, tau in enumerate(task.levels)]
            return {"levels": task.levels, "score": np.array(shift)}
        levels = np.array([validation.fraction("levels", level) for level in np.sort(np.asarray(self.levels)).tolist()])
        scores = _errors(task) / (spread_of(task) if self.normalised else 1.0)
        if not self.symmetric:
            return {"levels": levels, "score": np.array([_conformal_quantile(scores, t, task.weight) for t in levels])}
        if np.abs(levels + levels[::-1] - 1).max() > 1e-9:
            fail(f"symmetric intervals need levels in pairs t and 1 - t, got {levels.tolist()}.", ValueError)
        size = np.abs(scores)
        half = [0.0 if abs(t - 0.5) < 1e-9 else _conformal_quantile(size, abs(2 * t - 1), task.weight) for t in levels]
        return {"levels": levels, "score": np.sign(levels - 0.5) * half}

    def _try(self) -> None:
        if len(self.outputs_) == 1:
            super()._try()

    def _transform(self, task: Forecast) -> Quantiles:
        if len(self.outputs_) > 1:
            message = "Several outputs: transform them one by one (data.outputs), each with a map of its own."
            raise InvalidPredictions(message)
        learnt = self.outputs_[0]
        kept: dict[str, Any] = {"weight": task.weight, "group": task.group}
        if isinstance(task, Quantiles):
            if not np.array_equal(task.levels, learnt["levels"]):
                message = f"levels must be those of the fit, {learnt['levels'].tolist()}, got {task.levels.tolist()}."
                raise InvalidPredictions(message)
            return Quantiles(task.y_true, task.levels, task.values + learnt["score"], sort=True, **kept)
        std = spread_of(task) if self.normalised else np.ones(len(task))
        values = (task.y_true - _errors(task))[:, None] + std[:, None] * np.sort(learnt["score"])
        return Quantiles(task.y_true, learnt["levels"], values, **kept)


def _errors(task: Forecast) -> Floats:
    """Outcome minus mean."""
    if isinstance(task, Gaussian):
        return task.error()
    mean: Floats = task.mean  # type: ignore[attr-defined]  # spread_of has refused what has none
    return np.asarray(task.y_true - mean, dtype=np.float64)


def _conformal_quantile(scores: Floats, level: float, weight: Floats | None) -> float:
    """The order statistic that a new exchangeable score stays below with at least this probability.

    Below one half, the one it stays above with at least the complement.
    """
    if level < 0.5:
        return -_conformal_quantile(-scores, 1 - level, weight)
    size = len(scores)
    if weight is None:
        rank = int(np.ceil((size + 1) * level - 1e-9))
        if rank > size:
            message = f"Level {level:g} needs at least {int(np.ceil(level / (1 - level) - 1e-9))} rows, got {size}."
            raise InvalidPredictions(message)
        return float(np.partition(scores, rank - 1)[rank - 1])
    order = np.argsort(scores)
    running = np.cumsum(weight[order]) / (weight.sum() + weight.max())  # the new row may weigh as much as any
    rank = int(np.searchsorted(running, level - 1e-12))
    if rank == size:
        fail(f"Level {level:g} needs more weight than these {size} rows have.")
    return float(scores[order][rank])
