"""The default recalibration of forecasts: an average of maps that starts from no change.

What maps change is averaged, not what they predict: the logarithm of each spread, or each quantile.
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from calibrant.data import validation
from calibrant.data.forecasts import Forecast, Gaussian, Quantiles, Samples
from calibrant.data.validation import InvalidPredictions, fail
from calibrant.estimators.regression_common import pooled_squares
from calibrant.numerics.arrays import Codes, Floats
from calibrant.numerics.random_draws import fold_of_rows
from calibrant.recalibrate.model_averaging import held_out_estimate, mean_and_error, posterior_weights, prior_weights
from calibrant.recalibrate.regression_base import ForecastRecalibrator, OutputRecalibrator, spread_of, stretched
from calibrant.recalibrate.regression_maps import ExchangeableStretch, SpreadSpline, StdScaling
from calibrant.recalibrate.regression_quantiles import Conformal, GroupShift
from calibrant.results.estimate import Estimate

#: A curve of the spread is tried from this many rows on: with 200 rows of heavy tails it did more harm than good.
#: Test: tests/recalibrate/test_regression_auto.py::test_a_curve_of_the_spread_needs_five_hundred_rows.
_CURVE_ROWS = 500


@dataclass(kw_only=True, eq=False, repr=False)
class AutoForecast(OutputRecalibrator):
    r"""The recommended recalibration of forecasts: an average of maps, with a prior weight on no change.

    Each candidate is fitted on all folds but one and scored on that one. It counts by its prior weight (0.3 for no
    change, the others share the rest) times its cross-validated likelihood, and what the candidates change is averaged,
    each fitted to all rows:

    .. math:: \log s(\sigma) = \sum_m w_m \log s_m(\sigma), \qquad s_m^2 = \frac{5 + n \hat s_m^2}{5 + n}, \qquad
              w_m \propto \pi_m \exp\Bigl(-\tfrac{1}{\varphi}\sum_i L\bigl(y_i, s_m^{(-i)}\bigr)\Bigr)

    where s multiplies the predicted spread (which counts like five additional rows), L is the Dawid-Sebastiani score
    :math:`\log s\sigma + z^2/2s^2` (for a Gaussian forecast the negative log likelihood), and φ, at least 1, the
    dispersion of z², so that the few rows in heavy tails do not count as many. Forecasts keep their kind: Gaussian ones
    and distributions are stretched about their centre. `Quantiles` are shifted by the average shift, weighted by the
    pinball loss (the likelihood of Laplace distributions of the best common scale).

    Ensembles (`Samples`) are shifted and stretched about their mean, judged by the logarithmic score of Student's
    distribution with m - 1 degrees of freedom about the mean of the m draws: for exchangeable values of any
    distribution this score is best without a change, unlike the CRPS of stretched draws or the score of a normal
    distribution.

    **Never certain without evidence.** n rows never multiply a spread, or the distance of a quantile from the middle
    one, by less than :math:`1/\sqrt{n+1}`.

    Parameters
    ----------
    candidates : sequence of ForecastRecalibrator, optional
        Maps that keep the kind of forecast. By default `StdScaling` and, from 500 rows on, `SpreadSpline`; for
        `Quantiles` `Conformal`, and for `Samples` `ExchangeableStretch`. ``[Conformal(), GroupShift()]`` also repairs
        quantiles by group; then `group` names groups, not clusters of dependent rows.
    folds : int
    seed : int
        Of the folds.

    Attributes
    ----------
    results_ : list of dict
        One row per output and candidate: `output`, `name`, cross-validated `loss` with `loss_se`, `gain` over no change
        with `gain_se`, and `weight` in the result.
    left_out_ : list of dict
        Candidates that were not tried, or could not be fitted: `output`, `name` and `reason`.
    gain_, gain_se_ : float
        Cross-validated gain of the result: see `expected_gain`.
    outputs_ : list of dict
        The fitted `maps` of each output and their `weights`.

    References
    ----------
    Dawid, Sebastiani (1999), Coherent Dispersion Criteria for Optimal Experimental Design. Hoeting, Madigan, Raftery,
    Volinsky (1999), Bayesian Model Averaging.

    Examples
    --------
    >>> import calibrant as cal
    >>> z = np.random.default_rng(0).normal(size=500)
    >>> auto = AutoForecast().fit(cal.Gaussian(2 * z, 0 * z, 0 * z + 1))  # errors twice the predicted spread
    >>> auto.transform([[0.0, 1.0]]).round(1)
    array([[0., 2.]])
    >>> auto.expected_gain().interval.low > 0.5
    True
    """

    candidates: Sequence[ForecastRecalibrator] | None = field(default=None, kw_only=False)
    folds: int = 5
    seed: int = 0

    def expected_gain(self, *, level: float = 0.95) -> Estimate:
        r"""How much less loss a new row has after the map than before, by cross-validation of the whole procedure.

        The mean over outputs. The variance of the mean is at least what it would be if the forecasts before or after
        the map were true, and is multiplied by :math:`1 + F/(F - 1)` for F folds, which share most of their rows.

        References
        ----------
        Nadeau, Bengio (2003), Inference for the Generalization Error.
        """
        check_is_fitted(self)
        name, n = f"Gain in {self.loss_}", round(self.weight_)
        return held_out_estimate(self.gain_, self.gain_se_, name=name, folds=self.folds, n=n, level=level)

    def _fit(self, task: Forecast) -> None:
        if self.folds < 2:
            validation.fail(f"folds must be at least 2, got {self.folds!r}.", ValueError)
        self.quantile_levels_ = task.levels if isinstance(task, Quantiles) else None
        self.weight_ = float(len(task) if task.weight is None else task.weight.sum())
        self.results_: list[dict[str, Any]] = []
        self.left_out_: list[dict[str, Any]] = []
        gains: list[tuple[float, float]] = []
        self.outputs_ = []
        for number, changes in enumerate(map(changes_of, task.outputs)):
            self.loss_ = changes.loss_name
            self.outputs_.append(self._averaged(changes, number, gains))
        mean, error = np.array(gains).T
        self.gain_ = float(mean.mean())
        self.gain_se_ = float(np.sqrt(np.mean(error**2)) * np.sqrt(1 + self.folds / (self.folds - 1)))

    def _fit_output(self, task: Forecast) -> dict[str, Any]:
        return self._averaged(changes_of(task), 0, [])

    def _averaged(self, changes: Changes, output: int, gains: list[tuple[float, float]]) -> dict[str, Any]:
        """Maps of one output and their weights; notes results, what is left out, and the gain."""
        fold = fold_of_rows(len(changes), [1] * self.folds, seed=validation.seed(self.seed))
        held_out, names, maps = [changes.none], ["no change"], []
        for template in self._templates(changes, output):
            try:
                held_out.append(_changed_out_of_fold(template, changes, fold))
                maps.append(clone(template).fit(changes.task))
                names.append(repr(template))
            except (ValueError, InvalidPredictions) as error:
                self.left_out_.append({"output": output, "name": repr(template), "reason": str(error)})
        weight = _weights(changes, held_out)
        losses = [changes.losses(change) for change in held_out]
        for name, own, share in zip(names, losses, weight, strict=True):
            mean, mean_se = mean_and_error(own, changes.mass)
            gain, gain_se = mean_and_error(losses[0] - own, changes.mass)
            row = {"loss": mean, "loss_se": mean_se, "gain": gain, "gain_se": gain_se, "weight": float(share)}
            self.results_.append({"output": output, "name": name, **row})
        gains.append(self._gain(changes, held_out, fold))
        return {"maps": maps, "weights": weight[1:]}

    def _templates(self, changes: Changes, output: int) -> list[ForecastRecalibrator]:
        if self.candidates is not None:
            return list(self.candidates)
        if isinstance(changes.task, Quantiles):
            return [Conformal()]
        if isinstance(changes.task, Samples):
            return [ExchangeableStretch()]
        if len(changes) >= _CURVE_ROWS:
            return [StdScaling(), SpreadSpline()]
        reason = f"a curve of the spread is tried from {_CURVE_ROWS} rows on, here are {len(changes):,}"
        self.left_out_.append({"output": output, "name": repr(SpreadSpline()), "reason": reason})
        return [StdScaling()]

    def _gain(self, changes: Changes, held_out: list[Floats], fold: Codes) -> tuple[float, float]:
        """Mean gain and its error of the average whose weights were found without the rows of each fold."""
        mixed = changes.none
        for number in np.unique(fold):
            here, rest = np.flatnonzero(fold == number), np.flatnonzero(fold != number)
            weight = np.eye(1, len(held_out))[0]
            if len(rest):
                weight = _weights(changes.take(rest), [change[rest] for change in held_out])
            mixed[here] = sum(share * change[here] for share, change in zip(weight, held_out, strict=True))
        mixed = changes.bounded(mixed, self.weight_)
        gain, error = mean_and_error(changes.losses(changes.none) - changes.losses(mixed), changes.mass)
        return gain, max(error, changes.error_if_true(mixed))

    def _transform(self, task: Forecast) -> Forecast:
        levels = task.levels if isinstance(task, Quantiles) else None
        if not np.array_equal(levels, self.quantile_levels_):  # type: ignore[arg-type]
            fitted = "forecasts with a spread" if self.quantile_levels_ is None else f"levels {self.quantile_levels_}"
            fail(f"AutoForecast was fitted to {fitted}; got {type(task).__name__} with levels {levels}.")
        parts = []
        for learnt, output in zip(self.outputs_, task.outputs, strict=True):
            changes = changes_of(output)
            mixed = changes.none
            for share, fitted_map in zip(learnt["weights"], learnt["maps"], strict=True):
                mixed = mixed + share * changes.of(fitted_map, self.weight_)
            parts.append(changes.bounded(mixed, self.weight_))
        if isinstance(task, Quantiles):
            kept: dict[str, Any] = {"weight": task.weight, "group": task.group}
            return Quantiles(task.y_true, task.levels, task.values + parts[0], sort=True, **kept)
        if isinstance(task, Samples):
            return stretched(task, np.exp(parts[0][:, 0]), parts[0][:, 1])
        return stretched(task, np.exp(parts[0][:, 0] if task.y_true.ndim == 1 else np.hstack(parts)))

    def _try(self) -> None:
        maps = [one for learnt in self.outputs_ for one in learnt["maps"]]
        if any(isinstance(one, ExchangeableStretch) for one in maps):
            self._transform(Samples([0.0, 0.0], [[-1.0, 1.0], [0.0, 1e3]]))
        elif self.quantile_levels_ is None:
            super()._try()
        else:
            values = np.tile(np.arange(len(self.quantile_levels_), dtype=np.float64), (2, 1))
            group = next((np.repeat(one.groups_[:1], 2) for one in maps if isinstance(one, GroupShift)), None)
            self._transform(Quantiles(values[:, 0], self.quantile_levels_, values, group=group))


def _changed_out_of_fold(template: ForecastRecalibrator, changes: Changes, fold: Codes) -> Floats:
    """What the map changes in each fold when it is fitted to the others."""
    changed = changes.none
    for number in np.unique(fold):
        rest = np.flatnonzero(fold != number)
        if len(rest):  # else a single row: there is nothing to learn from
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # the fit to all rows warns
                inner = clone(template).fit(changes.take(rest).task)
            here = np.flatnonzero(fold == number)
            changed[here] = changes.take(here).of(inner, float(changes.mass[rest].sum()))
    return changed


def _weights(changes: Changes, held_out: list[Floats]) -> Floats:
    return posterior_weights(prior_weights(len(held_out)), changes.log_likelihoods(held_out))


#: Rows that the predicted variance counts for.
#: Test: tests/recalibrate/test_regression_auto.py::test_weights_and_losses_are_the_formula_written_out.
PRIOR_ROWS = 5.0


class Changes(ABC):
    """Forecasts of one output, and changes of them that can be averaged: arrays (n, width), zero for none."""

    task: Gaussian | Quantiles | Samples
    loss_name: str
    width = 1

    def __len__(self) -> int:
        return len(self.task)

    @property
    def mass(self) -> Floats:
        """How many rows each counts for."""
        return np.ones(len(self)) if self.task.weight is None else self.task.weight

    @property
    def none(self) -> Floats:
        """No change."""
        return np.zeros((len(self), self.width))

    def take(self, rows: Codes) -> Changes:
        """Some of the rows."""
        return changes_of(self.task.take(rows))

    @abstractmethod
    def of(self, fitted: ForecastRecalibrator, n: float) -> Floats:
        """What a map changes that was fitted to n rows, drawn towards no change if these are few."""

    @abstractmethod
    def losses(self, change: Floats) -> Floats:
        """Loss of each row after a change."""

    @abstractmethod
    def log_likelihoods(self, changes: Sequence[Floats]) -> Floats:
        """Logarithms of how likely the outcomes are after each of several changes."""

    @abstractmethod
    def bounded(self, change: Floats, n: float) -> Floats:
        """The change, kept from more certainty than n rows can give."""

    @abstractmethod
    def error_if_true(self, change: Floats) -> float:
        """Standard error of the mean gain if the forecasts before or after the change were true, the larger."""


class SpreadChanges(Changes):
    r"""Logarithms of factors of the spread, judged by the Dawid–Sebastiani score :math:`\log s\sigma + z^2/2s^2`.

    It is proper for the mean and the spread of any distribution, and the negative log likelihood of a Gaussian one.
    """

    loss_name = "Dawid-Sebastiani score"

    def __init__(self, task: Forecast) -> None:
        mean = task.mean  # type: ignore[attr-defined]  # spread_of refuses what has none
        self.task: Gaussian = Gaussian(task.y_true, mean, spread_of(task), weight=task.weight)

    def of(self, fitted: ForecastRecalibrator, n: float) -> Floats:
        """The variance is the mean of that of the map, for n rows, and the predicted one, for five."""
        ratio = (fitted.transform(self.task).std / self.task.std) ** 2
        return 0.5 * np.log((PRIOR_ROWS + n * ratio) / (PRIOR_ROWS + n))[:, None]

    def losses(self, change: Floats) -> Floats:
        """Loss of each row after a change."""
        return np.log(self.task.std) + change[:, 0] + 0.5 * self._squares * np.exp(-2 * change[:, 0])

    def log_likelihoods(self, changes: Sequence[Floats]) -> Floats:
        """Divided by the dispersion of z² after the best change, which heavy tails raise above that of a normal one."""
        losses = np.array([self.losses(change) @ self.mass for change in changes])
        best = changes[int(np.argmin(losses))]
        squares, share = self._squares * np.exp(-2 * best[:, 0]), self.mass / self.mass.sum()
        mean = float(squares @ share)
        kurtosis = float(squares**2 @ share) / mean**2 if mean > 0 else 3.0
        return -losses / max((kurtosis - 1) / 2, 1.0)

    def bounded(self, change: Floats, n: float) -> Floats:
        """The change, kept from more certainty than n rows can give."""
        return np.maximum(change, -0.5 * np.log(n + 1))

    def error_if_true(self, change: Floats) -> float:
        """Standard error of the mean gain if the forecasts before or after the change were true, the larger."""
        ratio = np.exp(2 * change[:, 0])
        variance = 0.5 * np.maximum((1 - 1 / ratio) ** 2, (ratio - 1) ** 2)
        return float(np.sqrt(variance @ self.mass) / self.mass.sum())

    @property
    def _squares(self) -> Floats:
        return np.asarray((self.task.error() / self.task.std) ** 2, dtype=np.float64)


class EnsembleChanges(Changes):
    r"""Logarithms of the stretch c of draws about their mean, and shifts a in units of their standard deviation s.

    They are judged by the logarithmic score of Student's distribution with m - 1 degrees of freedom,

    .. math:: \log cs + \tfrac m2 \log\Bigl(1 + \frac{t^2}{m-1}\Bigr), \qquad
              t = \frac{y - \bar x - as}{cs\sqrt{1 + 1/m}}

    whose derivative in log c is :math:`1 - D_c^2`, see `calibrant.scale_factor`: on average 0 at c = 1 for
    exchangeable values of any distribution.
    """

    loss_name = "Student log score"
    width = 2

    def __init__(self, task: Samples) -> None:
        draws = task.draws.astype(np.float64, copy=False)
        self.task: Samples = task
        self._spread = draws.std(axis=1, ddof=1)
        validation.require(
            "draws", task.draws, self._spread > 0, "must not be all alike in a row: their spread is zero"
        )
        self._error = (task.y_true - task.mean) / self._spread

    def of(self, fitted: ForecastRecalibrator, n: float) -> Floats:
        """As for other spreads, the variance is the mean of that of the map, for n rows, and its own, for five."""
        fixed = fitted.transform(self.task)
        ratio = (fixed.std / self.task.std) ** 2
        factor = 0.5 * np.log((PRIOR_ROWS + n * ratio) / (PRIOR_ROWS + n))
        return np.column_stack([factor, (fixed.mean - self.task.mean) / self._spread])

    def losses(self, change: Floats) -> Floats:
        """Loss of each row after a change."""
        size = self.task.draws.shape[1]
        return np.log(self._spread) + change[:, 0] + size / 2 * np.log1p(self._squares(change) / (size - 1))

    def log_likelihoods(self, changes: Sequence[Floats]) -> Floats:
        """Divided by the dispersion of D² after the best change, where it is more than that of normal draws."""
        losses = np.array([self.losses(change) @ self.mass for change in changes])
        squares = pooled_squares(self._squares(changes[int(np.argmin(losses))]), self.task.draws.shape[1])
        share = self.mass / self.mass.sum()
        variance = float(share @ (squares - share @ squares) ** 2)
        return -losses / max(variance / self._normal_variance, 1.0)

    def bounded(self, change: Floats, n: float) -> Floats:
        """The change, kept from more certainty than n rows can give."""
        return np.column_stack([np.maximum(change[:, 0], -0.5 * np.log(n + 1)), change[:, 1]])

    def error_if_true(self, change: Floats) -> float:
        """Of small changes, whose gains have the variance of D² and of D times their squares."""
        variance = self._normal_variance * change[:, 0] ** 2 + change[:, 1] ** 2
        return float(np.sqrt(variance @ self.mass) / self.mass.sum())

    @property
    def _normal_variance(self) -> float:
        """Of D² of normal draws: D²/m has a beta distribution with parameters 1/2 and (m - 1)/2."""
        size = self.task.draws.shape[1]
        return 2 * (size - 1) / (size + 2)

    def _squares(self, change: Floats) -> Floats:
        """The squares of t."""
        size = self.task.draws.shape[1]
        return np.asarray((self._error - change[:, 1]) ** 2 * np.exp(-2 * change[:, 0]) * (size / (size + 1)))


class QuantileChanges(Changes):
    """Shifts of quantiles, judged by the mean pinball loss of their levels."""

    loss_name = "pinball loss"

    def __init__(self, task: Quantiles) -> None:
        self.task: Quantiles = task
        self.width = len(task.levels)

    def of(self, fitted: ForecastRecalibrator, n: float) -> Floats:
        """Shifts as they are: levels that few rows cannot tell are refused by the maps themselves."""
        return np.asarray(fitted.transform(self.task).values - self.task.values, dtype=np.float64)

    def losses(self, change: Floats) -> Floats:
        """Loss of each row after a change."""
        gap = self.task.y_true[:, None] - (self.task.values + change)
        return np.asarray(np.maximum(self.task.levels * gap, (self.task.levels - 1) * gap).mean(axis=1))

    def log_likelihoods(self, changes: Sequence[Floats]) -> Floats:
        """Those of asymmetric Laplace distributions whose common scale is the best one of each change."""
        total = float(self.mass.sum())
        means = np.array([self.losses(change) @ self.mass / total for change in changes])
        return -total * np.log(np.maximum(means, np.finfo(np.float64).tiny))

    def bounded(self, change: Floats, n: float) -> Floats:
        """Distances from the middle quantile do not shrink below 1/sqrt(n + 1) of what was predicted."""
        middle = int(np.argmin(np.abs(self.task.levels - 0.5)))
        before, after = self.task.values, self.task.values + change
        least = (before - before[:, [middle]]) / np.sqrt(n + 1)
        distance = after - after[:, [middle]]
        above = np.arange(len(self.task.levels)) > middle
        kept = np.where(above, np.maximum(distance, least), np.minimum(distance, least))
        return np.asarray(after[:, [middle]] + kept - before)

    def error_if_true(self, change: Floats) -> float:
        """Quantiles alone do not say how far beyond them outcomes fall."""
        return 0.0


def changes_of(task: Forecast) -> Changes:
    """The changes of forecasts of one output."""
    if isinstance(task, Samples):
        return EnsembleChanges(task)
    return QuantileChanges(task) if isinstance(task, Quantiles) else SpreadChanges(task)
