"""Maps of the predicted spread: one factor, an isotonic curve, bins, a spline."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from calibrant.data.distributions import Distribution
from calibrant.data.forecasts import Forecast, Samples
from calibrant.estimators.regression_common import mean_of, ratio_variance, table_kurtosis
from calibrant.estimators.score_references import fair_crps, gaussian_crps
from calibrant.numerics.arrays import Floats
from calibrant.numerics.isotonic import pool_adjacent_violators
from calibrant.recalibrate.regression_base import SpreadRecalibrator
from calibrant.recalibrate.transformed_distributions import Stretched, center_of
from calibrant.table.binning import Cut, Distinct, EqualMass
from calibrant.table.bintable import BinTable

Criterion = Literal["nll", "crps", "mad"]

#: A single row that carries more than this part of the sum of z^2 decides the factor by itself.
CARRIED_BY_ONE = 0.1
#: The median of |Z| for a standard normal Z.
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
            message = f"criterion must be 'nll', 'crps' or 'mad', got {self.criterion!r}."
            raise ValueError(message)
        if self.criterion == "nll" and isinstance(task, Distribution):
            return {"scale": _likeliest_factor(task)}
        rows = task.rows()
        z, weight = np.sqrt(rows.observed / rows.predicted), rows.weight
        if not z.any():
            message = "All errors are zero: no spread would be small enough."
            raise ValueError(message)
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
            message = "All errors are zero: no spread would be small enough."
            raise ValueError(message)
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
            message = "All errors are zero: no spread would be small enough."
            raise ValueError(message)
        error = np.maximum(error, error[error > 0].min())
        return {"inner": table.high[:-1], "variance": error, "ratio": error / table.predicted_mean}

    def _factor(self, learnt: dict[str, Any], std: Floats) -> Floats:
        index = np.searchsorted(learnt["inner"], std, side="left")
        if self.scaling:
            return np.sqrt(learnt["ratio"][index])
        return np.sqrt(learnt["variance"][index]) / std


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

    step = 1 / (size - 3)
    knots = np.arange(-3, size + 1) * step
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
    center, y = center_of(task), task.y_true
    typical = float(np.median(np.abs(y - center) / np.maximum(task.quantile(0.75) - task.quantile(0.25), 1e-300)))

    def loss(s: float) -> float:
        return -mean_of(Stretched(task.dist, center, s).logpdf(y), task.weight)

    return _minimiser(loss, max(2 * typical, 1e-12))


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
            "z-scores that sets the factor; "
            "criterion='crps' or 'mad' withstands such rows.",
            stacklevel=4,
        )
