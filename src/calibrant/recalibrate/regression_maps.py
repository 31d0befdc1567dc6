"""Maps of predicted distributions: of the spread (one factor, isotonic, bins, spline), ensembles, and probabilities.

Maps of quantiles are in `regression_quantiles`.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, Literal, cast

import numpy as np
from scipy.interpolate import BSpline
from scipy.linalg import cho_factor, cho_solve
from scipy.optimize import minimize_scalar

from calibrant.data import validation
from calibrant.data.forecasts import Distribution, Forecast, Samples
from calibrant.data.validation import fail
from calibrant.estimators import regression_common as common
from calibrant.estimators.regression_scores import gaussian_crps
from calibrant.numerics.arrays import Floats
from calibrant.numerics.smoothers import pool_adjacent_violators
from calibrant.recalibrate import regression_base as base
from calibrant.recalibrate.nonparametric import block_ends
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
class StdScaling(base.SpreadRecalibrator):
    r"""STD scaling: every spread times one factor s, the counterpart of temperature scaling for regression.

    Parameters
    ----------
    criterion : {"nll", "crps", "mad"}
        What s minimises on the recalibration set. The negative log likelihood has the closed form
        :math:`s^2 = \overline{z^2}` for Gaussian forecasts; for a `Distribution` it is minimised over s. One tiny
        sigma can blow it up, and a warning says so. The CRPS, and the median of abs(z) over that of a standard normal
        ("mad"), withstand such rows. Ensembles have "nll" only, which is `ExchangeableStretch` without its shift: it
        withstands such rows too, and is 1 unless the draws clearly need a stretch.

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
        if isinstance(task, Samples):
            if self.criterion != "nll":
                fail(
                    f"criterion={self.criterion!r} is not for ensembles: draws stretched about their mean are no "
                    "longer independent, so that the CRPS favours wrong factors; use 'nll', whose terms are bounded.",
                    ValueError,
                )
            return {"scale": ExchangeableStretch(shift=False)._fit_output(task)["stretch"]}
        if self.criterion == "nll" and isinstance(task, Distribution):
            return {"scale": _likeliest_factor(task)}
        rows = task.rows()
        z, weight = np.sqrt(rows.observed / rows.predicted), rows.weight
        if not z.any():
            fail("All errors are zero: no spread would be small enough.", ValueError)
        if self.criterion == "mad":
            return {"scale": _weighted_median(z, weight) / NORMAL_MAD}
        moment = float(np.sqrt(common.mean_of(z**2, weight)))
        if self.criterion == "nll":
            _warn_if_carried_by_one(z, rows.key, weight)
            return {"scale": moment}
        start = _weighted_median(z, weight) / NORMAL_MAD or moment
        std = rows.key
        return {"scale": _minimiser(lambda s: common.mean_of(s * std * gaussian_crps(z / s), weight), start)}

    def _factor(self, learnt: dict[str, Any], std: Floats) -> Floats:
        return np.full(len(std), learnt["scale"])


#: Squared t-value below which a map of ensembles changes nothing; above it a change counts by 1 - (this / t²)².
#: Test: tests/recalibrate/test_regression_maps.py::test_a_change_of_an_ensemble_must_stand_out.
STANDS_OUT = 4.0

#: Mean skewness of the draws beyond which their ranks set the stretch.
#: Test: tests/recalibrate/test_regression_maps.py::test_skewed_draws_are_stretched_by_their_ranks.
SKEWED = 0.25


@dataclass(kw_only=True, eq=False, repr=False)
class ExchangeableStretch(base.OutputRecalibrator):
    r"""Shift and stretch of an ensemble about its own mean, which leave a calibrated ensemble calibrated.

    .. math:: x_j \mapsto \bar x + a s + c\,(x_j - \bar x)

    with :math:`\bar x` and s the mean and standard deviation of the m draws of a row. With
    :math:`D = (y - M)/S`, M and S being those of outcome and draws together after the change, c solves
    :math:`\overline{D^2} = 1` (see `calibrant.scale_factor`) and a :math:`\overline D = 0`: for exchangeable values of
    any distribution these are true at a = 0 and c = 1, however few the draws. A mean square of z-scores, or a CRPS of
    stretched draws, is not minimal there. Each change then counts by :math:`1 - (4/t^2)^2`, and not at all below
    :math:`t^2 = 4`, with t that of the mean of D, and for c the larger of that of the mean of :math:`D^2` and of the
    spread of the ranks.

    Parameters
    ----------
    shift : bool
        Whether a is fitted; else it is 0.
    equation : {"auto", "moments", "ranks"}
        "ranks" chooses c such that the ranks of the outcome among the draws have the spread of uniform ones, which is
        better if the draws are skewed; "auto" does so if they are.

    Attributes
    ----------
    outputs_ : list of dict
        The `shift` a and the `stretch` c.

    Notes
    -----
    The stretched ensemble has uniform ranks if the draws are normal. The outcome of skewed draws is not exchangeable
    with them after any stretch about the mean of a few: coverage is then right, and ranks nearly so.

    Examples
    --------
    >>> import calibrant as cal, numpy as np
    >>> rng = np.random.default_rng(0)
    >>> y, draws = rng.normal(size=2000), 0.7 * rng.normal(size=(2000, 5))
    >>> fixed = ExchangeableStretch().fit(cal.Samples(y, draws))
    >>> fixed.outputs_[0]["shift"], round(fixed.outputs_[0]["stretch"], 1)
    (0.0, 1.3)
    >>> ExchangeableStretch().fit(cal.Samples(rng.normal(size=2000), rng.normal(size=(2000, 5)))).outputs_
    [{'shift': 0.0, 'stretch': 1.0}]
    """

    shift: bool = True
    equation: Literal["auto", "moments", "ranks"] = "auto"

    def _require_kind(self, task: Forecast) -> None:
        if not isinstance(task, Samples):
            message = f"ExchangeableStretch is for ensembles (Samples), not {type(task).__name__}."
            raise validation.UnsupportedPredictions(message)

    def _fit_output(self, task: Forecast) -> dict[str, Any]:
        if self.equation not in ("auto", "moments", "ranks"):
            fail(f"equation must be 'auto', 'moments' or 'ranks', got {self.equation!r}.", ValueError)
        data = cast(Samples, task)  # all else is refused before
        validation.require("draws", data.draws, data.std > 0, "must not be all alike in a row: their spread is zero")
        by_ranks = self.equation == "ranks" or (self.equation == "auto" and _skewed(data))
        solve = _rank_stretch if by_ranks else common.stretch_factor
        shift, factor = 0.0, solve(data)
        if not factor > 0:
            fail("All errors are zero: no spread would be small enough.", ValueError)
        weight = stands_out(_t_value(base.stretched(data, factor).z(), data.weight)) if self.shift else 0.0
        if weight > 0:
            for _ in range(4):  # alternating: the mean hardly depends on the stretch
                shift += _shift_step(base.stretched(data, factor, shift))
                factor = solve(base.stretched(data, 1.0, shift))
            shift *= weight
            factor = solve(base.stretched(data, 1.0, shift))
        moved = base.stretched(data, 1.0, shift)
        evidence = abs(_t_value(common.rank_scores(moved)[:, 1], data.weight, spread=1.0))
        if not by_ranks:
            squares = common.pooled_squares(common.squared_t(moved), data.draws.shape[1])
            evidence = max(evidence, abs(_t_value(squares - 1, data.weight)))
        return {"shift": float(shift), "stretch": float(factor ** stands_out(evidence))}

    def _transform(self, task: Forecast) -> Forecast:
        self._require_kind(task)
        return base.stretched(task, self.outputs_[0]["stretch"], self.outputs_[0]["shift"])

    def _try(self) -> None:
        self._transform(Samples([0.0, 0.0], [[-1.0, 1.0], [0.0, 1e3]]))


def stands_out(t: float) -> float:
    """How much a change counts: 0 up to t² = 4, and nearly 1 far beyond."""
    return 1 - (STANDS_OUT / t**2) ** 2 if t**2 > STANDS_OUT else 0.0


def _t_value(values: Floats, weight: Floats | None, *, spread: float | None = None) -> float:
    """The mean over its standard error, with weights that add up to their effective number."""
    mean = common.mean_of(values, weight)
    error = float(np.sqrt(common.mean_of((values - mean) ** 2, weight))) if spread is None else spread
    size = len(values) if weight is None else float(weight.sum())
    return mean * float(np.sqrt(size)) / error if error > 0 else 0.0


def _shift_step(task: Samples) -> float:
    """By how many standard deviations of the draws to move them for the mean of D to vanish, nearly."""
    size, mean = task.draws.shape[1], common.mean_of(task.z(), task.weight)
    within = task.draws.astype(np.float64, copy=False).std(axis=1, ddof=1)
    return mean * float(np.median(task.pooled()[1] / within)) * (size + 1) / size


def _skewed(task: Samples) -> bool:
    """Whether the draws, whatever the outcomes, are skewed."""
    away = task.draws - task.mean[:, None]
    skewness = (away**3).mean(axis=1) / (away**2).mean(axis=1) ** 1.5
    return abs(common.mean_of(skewness, task.weight)) > SKEWED


def _rank_stretch(task: Samples) -> float:
    """The stretch under which the ranks of the outcome have mean spread score 0; it moves in steps, so by halving."""
    low, high = np.log(1e-3), np.log(1e3)
    for _ in range(40):
        middle = (low + high) / 2
        wide = common.mean_of(common.rank_scores(base.stretched(task, float(np.exp(middle))))[:, 1], task.weight) > 0
        low, high = (middle, high) if wide else (low, middle)
    return float(np.exp((low + high) / 2))


class VarianceIsotonic(base.SpreadRecalibrator):
    """Isotonic regression of the squared error on the predicted spread.

    Levels are joined by straight lines between the blocks, and go on unchanged beyond the first and the last. Many rows
    end up with the same spread; bins that split such ties would depend on the order of the rows, which is why `ence`
    never splits them.

    Examples
    --------
    >>> fixed = VarianceIsotonic().fit([[0, 1.0], [0, 2.0], [0, 3.0]], [2.0, 2.0, 4.0])
    >>> fixed.transform([[0, 0.5], [0, 3.0]])
    array([[0., 2.],
           [0., 4.]])
    """

    def _fit_output(self, task: Forecast) -> dict[str, Any]:
        cells = BinTable.of(common.moments(task), Distinct()).filled()
        starts, weight, observed = pool_adjacent_violators(cells.weight, cells.observed)
        level = observed / weight
        if not level.any():
            fail("All errors are zero: no spread would be small enough.", ValueError)
        level = np.maximum(level, level[level > 0].min())
        at, variance = block_ends(cells.low, starts, level)
        return {"at": at, "variance": variance}

    def _factor(self, learnt: dict[str, Any], std: Floats) -> Floats:
        return np.sqrt(np.interp(std, learnt["at"], learnt["variance"])) / std


@dataclass(kw_only=True, eq=False, repr=False)
class VarianceHistogram(base.SpreadRecalibrator):
    """Histogram binning of the spread: each bin's spread becomes its root mean square error.

    Parameters
    ----------
    bins : Binning
        How to cut the predicted standard deviations.
    scaling : bool
        Multiply the spreads of a bin by RMSE / RMV instead of replacing them, so that different spreads stay different.

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
        table = BinTable.of(common.moments(task), self.bins).filled()
        error = table.observed_mean
        if not error.any():
            fail("All errors are zero: no spread would be small enough.", ValueError)
        error = np.maximum(error, error[error > 0].min())
        return {"inner": table.high[:-1], "variance": error, "ratio": error / table.predicted_mean}

    def _factor(self, learnt: dict[str, Any], std: Floats) -> Floats:
        index = np.searchsorted(learnt["inner"], std, side="left")
        return np.sqrt(learnt["ratio"][index]) if self.scaling else np.sqrt(learnt["variance"][index]) / std


@dataclass(kw_only=True, eq=False, repr=False)
class SpreadSpline(base.SpreadRecalibrator):
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
        table = BinTable.of(common.moments(task), EqualMass(min(self.bins, max(1, len(task) // 10)))).filled()
        x = np.log(table.predicted_mean) / 2
        ratio = np.maximum(table.observed_mean / table.predicted_mean, 1e-12)
        precision = 1 / np.maximum(common.ratio_variance(table, common.table_kurtosis(table)), 1e-12)
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
    knots = np.arange(-3, size + 1) * (1 / (size - 3))
    return BSpline.design_matrix(np.clip(x, 0, 1 - 1e-12), knots, 3).toarray()


def _penalised_gamma(basis: Floats, ratio: Floats, precision: Floats) -> Floats:
    """Coefficients of log E[ratio] with the penalty of the lowest AIC; gamma deviance, log link."""
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
    center, y = base.center_of(task), task.y_true
    typical = float(np.median(np.abs(y - center) / np.maximum(task.quantile(0.75) - task.quantile(0.25), 1e-300)))
    start = max(2 * typical, 1e-12)
    return _minimiser(lambda s: -common.mean_of(base.Stretched(task.dist, center, s).logpdf(y), task.weight), start)


def _minimiser(loss: Any, start: float) -> float:
    """The factor of lowest loss, by Brent's method on its logarithm."""

    def of_log(t: float) -> float:
        return float(loss(float(np.exp(t))))

    middle = float(np.log(start))
    bracket: tuple[float, ...] = (middle - 1, middle, middle + 1)
    if of_log(middle) >= min(of_log(middle - 1), of_log(middle + 1)):  # one row that carries all may be far away
        bracket = (middle - 1, middle + 1)  # from which the search goes downhill
    return float(np.exp(minimize_scalar(of_log, bracket=bracket, tol=1e-10).x))


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
class CdfIsotonic(base.OutputRecalibrator):
    r"""Kuleshov's recalibration: the new distribution function is R(F(y)), with R isotonic.

    The points to fit are :math:`(F_t(y_t), \hat P(F_t(y_t)))`, and P̂, the share of recalibration rows with a smaller
    transform, increases by construction: R is the empirical distribution function of the transforms, joined by straight
    lines. It makes any forecast pass `quantile_error`, also one whose spread is noise: it multiplies all spreads by the
    same factor and changes their common shape, so it helps `ence` no more than `StdScaling` does.

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
        u = base.as_distribution(task).pit()[1]
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
        dist = base.Remapped(base.as_distribution(task).dist, maps)
        return Distribution(task.y_true, dist, weight=task.weight, group=task.group)
