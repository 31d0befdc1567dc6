"""Maps of quantiles: conformal prediction, and shifts of each level that may differ between groups of rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.data import validation
from calibrant.data.forecasts import Forecast, Gaussian, Quantiles
from calibrant.data.groups import in_order
from calibrant.data.validation import fail
from calibrant.numerics.arrays import Floats
from calibrant.recalibrate.regression_base import ForecastRecalibrator, OutputRecalibrator, spread_of
from calibrant.recalibrate.regression_maps import stands_out


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
            fail("Several outputs: transform them one by one (data.outputs), each with a map of its own.")
        learnt = self.outputs_[0]
        kept: dict[str, Any] = {"weight": task.weight, "group": task.group}
        if isinstance(task, Quantiles):
            if not np.array_equal(task.levels, learnt["levels"]):
                fail(f"levels must be those of the fit, {learnt['levels'].tolist()}, got {task.levels.tolist()}.")
            return Quantiles(task.y_true, task.levels, task.values + learnt["score"], sort=True, **kept)
        std = spread_of(task) if self.normalised else np.ones(len(task))
        values = (task.y_true - _errors(task))[:, None] + std[:, None] * np.sort(learnt["score"])
        return Quantiles(task.y_true, learnt["levels"], values, **kept)


@dataclass(kw_only=True, eq=False, repr=False)
class GroupShift(ForecastRecalibrator):
    r"""Shifts of each quantile by group (a forecast horizon, a region), shrunk towards what the groups have in common.

    The quantile of level τ of a row of group g becomes :math:`q_\tau + w\,b_{g\tau}`, with w the distance of the row's
    last from its first quantile. In units of w,

    .. math:: b_g = c + \ell_g + \kappa_g\,(o_g - c - \ell_g), \qquad
              \kappa_g = \frac{\tau^2}{\tau^2 + \bar n / n_g}

    where :math:`o_g` is the shift that the :math:`n_g` rows of the group ask for by themselves, c that of all rows,
    shrunk towards zero according to its noise, and :math:`\ell_g` a line over groups that have an order, which counts
    by :math:`1-(4/t^2)^2` and not at all below :math:`t^2 = 4`. τ² measures how much the groups differ from these
    beyond noise, in units of the noise of a mean group: small groups do not learn their own noise. A calibrated
    forecast hardly changes. Rows need a `group`, as for `PerGroup`; new groups are shifted by c.

    Parameters
    ----------
    ordered : bool, optional
        Whether the groups have an order, that of their names. By default, groups that are numbers have one.

    Attributes
    ----------
    groups_, shift_, common_ : arrays
        Names of the groups, the shift of each group and level, and that of new groups.
    levels_ : array

    References
    ----------
    Efron, Morris (1975), Data Analysis Using Stein's Estimator and its Generalizations; Romano, Patterson, Candès
    (2019), Conformalized Quantile Regression, for shifts of quantiles.

    Examples
    --------
    >>> import calibrant as cal, numpy as np
    >>> rng = np.random.default_rng(0)
    >>> horizon = np.tile(np.arange(1, 15), 120)
    >>> y = (0.7 + 0.06 * horizon) * rng.normal(size=len(horizon))
    >>> data = cal.Quantiles(y, [0.05, 0.5, 0.95], np.tile([-1.645, 0, 1.645], (len(y), 1)), group=horizon)
    >>> fixed = GroupShift().fit(data).transform(data)
    >>> [round(cal.coverage(one.take(horizon == 14)), 2) for one in (data, fixed)]
    [0.72, 0.93]
    """

    ordered: bool | None = None

    def _require_kind(self, task: Forecast) -> None:
        if not isinstance(task, Quantiles):
            message = f"GroupShift is for Quantiles, not {type(task).__name__}; see PerGroup for maps of the spread."
            raise validation.UnsupportedPredictions(message)
        if task.group is None:
            fail("GroupShift needs Quantiles made with group=..., the group of each row.", TypeError)

    def _fit(self, task: Forecast) -> None:
        data, group = self._parts(task)
        names, member, numbers = in_order(group)
        self.groups_, self.levels_ = names, data.levels
        gaps = (data.y_true[:, None] - data.values) / _widths(data.values)[:, None]
        weight = np.ones(len(data)) if data.weight is None else data.weight
        size: Floats = np.bincount(member, weight).astype(np.float64, copy=False)
        noise = _quantile_variances(gaps, data.levels, weight)
        common = _quantiles(gaps, data.levels, weight)
        self.common_ = common * np.maximum(0.0, 1 - noise / size.sum() / np.maximum(common**2, 1e-300))
        some = [np.flatnonzero(member == k) for k in range(len(names))]
        own = np.array([_quantiles(gaps[rows], data.levels, weight[rows]) for rows in some])
        base = np.tile(self.common_, (len(names), 1))
        if (numbers if self.ordered is None else self.ordered) and len(names) > 1:
            base = base + _line(own - self.common_, size, noise)
        between = max(float(((own - base) ** 2 / (noise / size[:, None])).mean()) - 1, 0.0)
        self.shift_ = base + (between / (between + size.mean() / size))[:, None] * (own - base)

    def _transform(self, task: Forecast) -> Quantiles:
        data, group = self._parts(task)
        if not np.array_equal(data.levels, self.levels_):
            fail(f"levels must be those of the fit, {self.levels_.tolist()}, got {data.levels.tolist()}.")
        names, member, _ = in_order(group)
        if (names.dtype.kind in "iufb") != (np.asarray(self.groups_).dtype.kind in "iufb"):
            fail(f"The groups must be of the kind of the fit, such as {self.groups_[0]!r}; got {names[0]!r}.")
        place = {name: k for k, name in enumerate(self.groups_.tolist())}
        shifts = np.vstack([self.shift_, self.common_])[[place.get(name, -1) for name in names.tolist()]]
        values = data.values + shifts[member] * _widths(data.values)[:, None]
        return Quantiles(data.y_true, data.levels, values, sort=True, weight=data.weight, group=data.group)

    def _parts(self, task: Forecast) -> tuple[Quantiles, NDArray[Any]]:
        self._require_kind(task)
        return task, task.group  # type: ignore[return-value]  # just required

    def _try(self) -> None:
        values = np.tile(np.arange(len(self.levels_), dtype=np.float64), (len(self.groups_), 1))
        self._transform(Quantiles(values[:, 0], self.levels_, values, group=self.groups_))


def _widths(values: NDArray[Any]) -> Floats:
    """Distance of the last from the first quantile of each row; of rows without any, the smallest of the others."""
    width = (values[:, -1] - values[:, 0]).astype(np.float64)
    return np.where(width > 0, width, width[width > 0].min(initial=1.0))


def _quantiles(gaps: Floats, levels: Floats, weight: Floats) -> Floats:
    """The quantile of each column at its level, between the middles of the weights of neighbouring values."""
    found = np.empty(len(levels))
    for k, level in enumerate(levels):
        order = np.argsort(gaps[:, k], kind="stable")
        running = np.cumsum(weight[order])
        found[k] = np.interp(level, (running - weight[order] / 2) / running[-1], gaps[order, k])
    return found


def _quantile_variances(gaps: Floats, levels: Floats, weight: Floats) -> Floats:
    """Variance of a sample quantile times the number of rows, L (1 - L) / f², with f from neighbouring quantiles."""
    step = np.minimum(np.minimum(levels, 1 - levels) / 2, 0.1)
    apart = _quantiles(gaps, levels + step, weight) - _quantiles(gaps, levels - step, weight)
    return levels * (1 - levels) * (np.maximum(apart, 1e-9) / (2 * step)) ** 2


def _line(away: Floats, size: Floats, noise: Floats) -> Floats:
    """Weighted least squares over the numbers of the groups, level by level, as far as its slope stands out."""
    x = np.arange(len(size)) - np.arange(len(size)) @ size / size.sum()
    squares = float(size @ x**2)
    slope = (size * x) @ away / squares
    weight = np.array([stands_out(t) for t in slope / np.sqrt(noise / squares)])
    return np.outer(x, slope * weight)


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
            fail(f"Level {level:g} needs at least {int(np.ceil(level / (1 - level) - 1e-9))} rows, got {size}.")
        return float(np.partition(scores, rank - 1)[rank - 1])
    order = np.argsort(scores)
    running = np.cumsum(weight[order]) / (weight.sum() + weight.max())  # the new row may weigh as much as any
    rank = int(np.searchsorted(running, level - 1e-12))
    if rank == size:
        fail(f"Level {level:g} needs more weight than these {size} rows have.")
    return float(scores[order][rank])
