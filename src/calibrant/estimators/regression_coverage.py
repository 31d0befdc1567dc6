"""Coverage of predicted distributions: of one interval, and of all intervals or quantiles at once by the PIT.

The distribution function of the probability integral transform (PIT) F(y) is computed exactly, without bins: one sort
serves every level at once. A row whose transform is known only to lie in an interval (draws, quantiles, counts) enters
as a ramp over it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import beta, kolmogorov

from calibrant.data import validation
from calibrant.data.forecasts import Distribution, Forecast, Samples
from calibrant.data.groups import group_texts
from calibrant.data.predictions import BinnedColumns, Column, Columns
from calibrant.estimators import regression_common as common
from calibrant.estimators.binned import check_norm, with_norm
from calibrant.estimators.regression_common import ForecastData
from calibrant.estimators.regression_scores import covered
from calibrant.numerics.arrays import Floats
from calibrant.numerics.random_draws import generator
from calibrant.numerics.rows import effective_n
from calibrant.results.estimate import Estimate
from calibrant.results.target import estimates
from calibrant.table.binning import EqualWidth


@estimates("coverage error")
def interval_error(
    data: ForecastData = None,
    mean: Column = None,
    std: Column = None,
    *,
    norm: float = 1,
    levels: ArrayLike | None = None,
    **columns: Unpack[Columns],
) -> Estimate:
    r"""Interval calibration error: gap between nominal and observed coverage of the central intervals, over all levels.

    .. math:: \Bigl(\int_0^1 \bigl\lvert \mathrm P(\lvert 2F(Y)-1\rvert \le p) - p\bigr\rvert^q dp\Bigr)^{1/q}

    exact, from one sort; with q = 1 the miscalibration area, with q = 2 the root mean square, with infinity the
    largest gap. Central intervals do not see a shift of all outcomes; `quantile_error` does.

    This kind of calibration is marginal: any forecast passes it after `CdfIsotonic`, even one whose spread is
    independent of the errors. `ence` detects that.

    Parameters
    ----------
    data : Gaussian, Distribution, Quantiles, Samples, or y_true (then `mean` and `std`)
    norm : float
        The exponent q of at least 1, or infinity.
    levels : array-like in [0, 1], optional
        Average over these nominal coverages instead of integrating over all.

    References
    ----------
    Kuleshov, Fenner, Ermon (2018), Accurate Uncertainties for Deep Learning Using Calibrated Regression; Levi et al.
    (2022), section 2, for what it cannot see.

    Examples
    --------
    >>> interval_error([0.0, 1.0, -1.0, 2.0], [0.0] * 4, [1.0] * 4)
    <Interval error (L1) 0.1491, n=4, exact>
    """
    return _curve_error(common.forecast(data, mean, std), central_curve, "Interval error", norm, levels)


@estimates("coverage error")
def quantile_error(
    data: ForecastData = None,
    mean: Column = None,
    std: Column = None,
    *,
    norm: float = 1,
    levels: ArrayLike | None = None,
    **columns: Unpack[Columns],
) -> Estimate:
    r"""Quantile calibration error: gap between a level and the share of outcomes below that quantile, over all levels.

    .. math:: \Bigl(\int_0^1 \bigl\lvert \mathrm P(F(Y) \le p) - p\bigr\rvert^q dp\Bigr)^{1/q}

    The definition of Kuleshov et al., to which their isotonic map and `CdfIsotonic` recalibrate. Parameters as for
    `interval_error`. For `Quantiles`, pass ``levels=data.levels`` to measure at the predicted quantiles only.

    References
    ----------
    Kuleshov, Fenner, Ermon (2018); Levi et al. (2022), eq. 1-3; Gneiting, Balabdaoui, Raftery (2007), probabilistic
    calibration.

    Examples
    --------
    >>> quantile_error([0.0, 1.0, -1.0, 2.0], [0.0] * 4, [1.0] * 4)
    <Quantile error (L1) 0.1282, n=4, exact>
    """
    return _curve_error(common.forecast(data, mean, std), pit_curve, "Quantile error", norm, levels)


@estimates("coverage error", norm=np.inf)
def pit_error(
    data: ForecastData = None,
    mean: Column = None,
    std: Column = None,
    *,
    bins: EqualWidth | int = EqualWidth(10),
    **columns: Unpack[BinnedColumns],
) -> Estimate:
    r"""Kolmogorov-Smirnov distance of the probability integral transforms F(y) from uniform.

    ``details`` holds the p-value of the test and the PIT histogram (`histogram`, shares per bin, and `edges`): a
    U shape means too narrow, a hump too wide, a slope biased. For draws, quantiles and counts the transform is
    spread evenly over the interval it is known to lie in, which makes the p-value too large, not too small.

    References
    ----------
    Dawid (1984); Gneiting, Balabdaoui, Raftery (2007); Czado, Gneiting, Held (2009) for counts.

    Examples
    --------
    >>> e = pit_error([0.0, 1.0, -1.0, 2.0], [0.0] * 4, [1.0] * 4, bins=EqualWidth(2))
    >>> e, e.details["histogram"]
    (<PIT KS distance 0.3413, n=4, exact>, [0.5, 0.5])
    """
    task, bins = common.forecast(data, mean, std), common.equal_width(bins)
    curve = pit_curve(task)
    value, root = curve.distance(np.inf), np.sqrt(curve.size)
    details = {"histogram": curve.shares(bins.edges).tolist(), "edges": bins.edges.tolist(), "central": False}
    details["p_value"] = float(kolmogorov(value * (root + 0.12 + 0.11 / root)))
    each = partial(pit_error, bins=bins)
    return common.finished(task, value, "PIT KS distance", "exact", curve.null(np.inf), each, **details)


@estimates("coverage", losses=covered)
def coverage(
    data: ForecastData = None,
    mean: Column = None,
    std: Column = None,
    *,
    nominal: float = 0.9,
    **columns: Unpack[Columns],
) -> Estimate:
    r"""Share of outcomes inside the central prediction interval of nominal coverage c (PICP).

    .. math:: \frac1W\sum_i w_i \mathbf 1\{ F_i^{-1}(\tfrac{1-c}2) \le y_i \le F_i^{-1}(\tfrac{1+c}2) \}

    ``details`` holds the mean width of the intervals (MPIW) and the shares below and above them. The widest interval
    of an ensemble of m draws is its range, which covers (m - 1) / (m + 1), and intervals of counts cover more than c;
    the null reference says so. ``details["tied"]`` is the share of outcomes that equal an end of their interval.

    Parameters
    ----------
    data : Gaussian, Distribution, Quantiles, Samples, or y_true (then `mean` and `std`)
    nominal : float in (0, 1)
        Nominal coverage c of the central interval.

    Examples
    --------
    >>> coverage([0.0, 1.0, -1.0, 2.0], [0.0] * 4, [1.0] * 4, nominal=0.9)
    <Coverage 0.75, n=4, central 90% interval>
    """
    task = common.forecast(data, mean, std)
    nominal = validation.fraction("nominal", nominal)
    low, high = common.central_interval(task, nominal)
    y, weight = task.y_true.ravel(), task.flat_weight
    tied = common.mean_of((y == low) | (y == high), weight)
    reached = _reached(task, nominal, low, high, tied)
    below, above = common.mean_of(y < low, weight), common.mean_of(y > high, weight)
    size = effective_n(weight, len(y))
    details = {
        "nominal": nominal, "mean_width": common.mean_of(high - low, weight), "below": below, "above": above,
        "tied": tied,
    }  # fmt: skip
    null = common.null_reference(reached, np.sqrt(reached * (1 - reached) / size), "binomial")
    method = f"central {nominal:.6g} interval" if nominal * 100 % 1 else f"central {nominal:.0%} interval"
    each = partial(coverage, nominal=nominal)
    return common.finished(task, 1 - below - above, "Coverage", method, null, each, **details)


def _reached(task: Forecast, nominal: float, low: Floats, high: Floats, tied: float) -> float:
    """The coverage of a calibrated forecaster: more than the nominal one of counts, and of draws with ties."""
    if isinstance(task, Distribution) and task.discrete:
        ends = (end.reshape(task.y_true.shape) for end in (low, high))
        first, last = (task.dist.cdf(end) for end in ends)
        inside = np.broadcast_to(last - first + task.dist.pmf(low.reshape(task.y_true.shape)), task.y_true.shape)
        return common.mean_of(inside.ravel(), task.flat_weight)
    if not isinstance(task, Samples):
        return nominal
    m = task.draws.shape[1]
    reached = min(nominal, (m - 1) / (m + 1))
    if not tied:
        return reached
    pooled = np.sort(np.column_stack([task.y_true, task.draws]), axis=1)
    cut = max(int((1 - nominal) / 2 * (m + 1)), 1)
    inside = (pooled >= pooled[:, [cut]]) & (pooled <= pooled[:, [m - cut]])
    return reached + common.mean_of(inside.mean(axis=1), task.weight) - (m + 1 - 2 * cut) / (m + 1)


@estimates("group coverage error", norm=1)
def group_coverage(
    data: ForecastData = None,
    mean: Column = None,
    std: Column = None,
    *,
    nominal: float = 0.9,
    by: ArrayLike | None = None,
    **columns: Unpack[Columns],
) -> Estimate:
    r"""Mean absolute gap between observed and nominal coverage c over groups (conditional coverage).

    .. math:: \sum_g \frac{w_g}{W} \lvert \mathrm{coverage}_g - c \rvert

    ``details["groups"]`` holds coverage, mean width, number of rows and z-score of each group. Groups are `by`, one
    id per row (e.g. the bin of a feature or of sigma), or else the group of the predictions.

    Examples
    --------
    >>> e = group_coverage([0.0, 1.0, 3.0, 2.0], [0.0] * 4, [1.0] * 4, nominal=0.5, by=["a", "a", "b", "b"])
    >>> e.value, e.details["groups"]["b"]["coverage"]
    (0.25, 0.0)
    """
    task = common.forecast(data, mean, std)
    nominal = validation.fraction("nominal", nominal)
    names, member = task.row_groups(by)
    share, found = _coverage_by_group(task, np.repeat(member, task.y_true.size // len(task)), nominal)
    sd = found.pop("sd")
    center, wide = np.sqrt(2 / np.pi) * share @ sd, np.sqrt((1 - 2 / np.pi) * share**2 @ sd**2)
    null = common.null_reference(center, wide, "folded normal per group")
    groups = {
        name: {column: values[k].item() for column, values in found.items()}
        for k, name in enumerate(group_texts(names))
    }
    value, method = float(share @ np.abs(found["coverage"] - nominal)), f"nominal coverage {nominal:.6g}"
    each = partial(group_coverage, nominal=nominal, by=member)
    return common.finished(task, value, "Group coverage gap (L1)", method, null, each, groups=groups)


def _coverage_by_group(task: Forecast, member: NDArray[np.intp], nominal: float) -> tuple[Floats, dict[str, Any]]:
    """Share of the weight in each group, and its coverage, mean width, number of rows, z-score and binomial sd."""
    low, high = common.central_interval(task, nominal)
    y, weight = task.y_true.ravel(), task.flat_weight
    weight = np.ones(len(y)) if weight is None else weight
    total = np.bincount(member, weight)
    covered = np.bincount(member, weight * ((low <= y) & (y <= high))) / total
    sd = np.sqrt(nominal * (1 - nominal) / (total**2 / np.bincount(member, weight**2)))
    return total / total.sum(), {
        "coverage": covered,
        "mean_width": np.bincount(member, weight * (high - low)) / total,
        "n": np.bincount(member),
        "z": (covered - nominal) / sd,
        "sd": sd,
    }


def _curve_error(
    task: Forecast, curve_of: Callable[[Forecast], PitCurve], name: str, norm: float, levels: ArrayLike | None
) -> Estimate:
    """Distance of the curve of a forecast from the diagonal, over all levels or the mean over some."""
    norm = check_norm(norm)
    curve = curve_of(task)
    at: Floats | None = None
    if levels is None:
        value, method = curve.distance(norm), "exact"
    else:
        at = validation.probabilities("levels", levels).astype(np.float64)
        gaps = np.abs(curve(at) - at)
        value = float(gaps.max() if np.isinf(norm) else np.mean(gaps**norm) ** (1 / norm))
        method = f"mean over {len(at)} levels"
    details = {"central": curve_of is central_curve, "levels": None if at is None else at.tolist()}
    each = partial(_curve_error, curve_of=curve_of, name=name, norm=norm, levels=levels)
    return common.finished(task, value, with_norm(name, norm), method, curve.null(norm, at), each, **details)


#: Mean, standard deviation, 2.5 % and 97.5 % points of norms of the Brownian bridge, the law of sqrt(n) (F_n - F).
#: L1: mean sqrt(pi / 32), variance 7/60 - pi/32 (Shepp 1982); L2: root of the Cramér-von Mises law; Linf: Kolmogorov.
#: The rest by simulation (240,000 paths), good to three digits.
#: Reference: Shepp (1982), On the integral of the absolute value of the pinned Wiener process.
BRIDGE = {
    1.0: (0.31333, 0.13598, 0.1392, 0.6603),
    2.0: (0.37824, 0.15414, 0.1742, 0.7620),
    np.inf: (0.86873, 0.26033, 0.4806, 1.4802),
}


@dataclass(frozen=True, eq=False)
class PitCurve:
    """A distribution function on [0, 1]: linear from (at[i], after[i]) to (at[i + 1], before[i + 1]), with jumps."""

    at: Floats
    before: Floats
    after: Floats
    size: float
    nodes: Floats | None

    @classmethod
    def of(cls, at: Floats, before: Floats, after: Floats, size: float, nodes: Floats | None = None) -> PitCurve:
        """Continued to 0 and to 1."""
        at, before, after = (np.concatenate([[0.0], column, [1.0]]) for column in (at, before, after))
        return cls(at, before, after, size, nodes)

    def __call__(self, levels: Floats) -> Floats:
        """The share of transforms up to each level."""
        place = np.searchsorted(self.at, levels, side="right") - 1
        last = np.minimum(place + 1, len(self.at) - 1)
        width = self.at[last] - self.at[place]
        part = np.divide(levels - self.at[place], width, out=np.zeros(len(levels)), where=width > 0)
        return self.after[place] + part * (self.before[last] - self.after[place])

    def shares(self, edges: Floats) -> Floats:
        """The share of transforms in each bin (low, high]; the first also holds its low edge."""
        running = self(edges)
        shares = np.diff(running)
        shares[0] += running[0]
        return shares

    def distance(self, norm: float) -> float:
        """The L_norm distance to the diagonal, exactly: gaps are linear between neighbouring places."""
        if np.isinf(norm):
            return float(max(np.abs(self.before - self.at).max(), np.abs(self.after - self.at).max()))
        width = np.diff(self.at)
        start, end = self.after[:-1] - self.at[:-1], self.before[1:] - self.at[1:]
        change = end - start
        flat = np.abs(change) < 1e-13
        areas = (_integral(end, norm) - _integral(start, norm)) / np.where(flat, 1.0, change)
        areas = np.where(flat, np.abs(start) ** norm, areas)
        return float((width @ areas) ** (1 / norm))

    def null(self, norm: float, levels: Floats | None = None) -> dict[str, Any]:
        """`distance` (or the norm of the gaps at `levels`) of a perfect forecaster."""
        mean, sd, low, high = BRIDGE[norm] if norm in BRIDGE else _simulated_bridge(norm)
        ratio = 1.0 if np.isinf(norm) else _roughness(norm, levels, self.nodes) / _roughness(norm, None, None)
        scale = ratio / np.sqrt(self.size)
        return common.null_reference(mean * scale, sd * scale, "Brownian bridge", low=low * scale, high=high * scale)


def pit_curve(data: Forecast) -> PitCurve:
    """The distribution function of F(y): the identity for a forecaster calibrated in the sense of Kuleshov."""
    low, high = data.pit()
    return _curve(low, high, data.flat_weight)


def central_curve(data: Forecast) -> PitCurve:
    """The share of outcomes in the central interval of each level: the distribution function of |2 F(y) - 1|."""
    low, high = data.pit()
    weight = data.flat_weight
    if low is high:
        folded = np.abs(2 * low - 1)
        return _curve(folded, folded, weight)
    size = effective_n(weight, len(low))
    weight = np.ones(len(low)) if weight is None else weight
    astride = (low < 0.5) & (high > 0.5)
    below = np.where(astride, (0.5 - low) / np.where(astride, high - low, 1.0), 0.0)
    left, right = np.abs(2 * low - 1), np.abs(2 * high - 1)
    first = np.where(astride, 0.0, np.minimum(left, right))
    second = np.where(astride, right, np.maximum(left, right))
    curve = _curve(
        np.concatenate([first, np.zeros(int(astride.sum()))]),
        np.concatenate([second, left[astride]]),
        np.concatenate([weight * (1 - below), (weight * below)[astride]]),
    )
    return PitCurve(curve.at, curve.before, curve.after, size, curve.nodes)


def _curve(low: Floats, high: Floats, weight: Floats | None) -> PitCurve:
    size = effective_n(weight, len(low))
    if low is high:
        if weight is None:
            at, after = np.sort(low), np.arange(1, len(low) + 1) / len(low)
        else:
            order = np.argsort(low)
            at, after = low[order], np.cumsum(weight[order]) / weight.sum()
        before = np.concatenate([[0.0], after[:-1]])
        return PitCurve.of(at, before, after, size)
    return _ramps(low, high, np.ones(len(low)) if weight is None else weight, size)


def _ramps(low: Floats, high: Floats, weight: Floats, size: float) -> PitCurve:
    """Sum of ramps and jumps: slopes change where intervals begin and end."""
    weight = weight / weight.sum()
    at, place = np.unique(np.concatenate([low, high]), return_inverse=True)
    begin, end = place[: len(low)], place[len(low) :]
    ramp = high > low
    steep = weight[ramp] / (high - low)[ramp]
    slope = np.cumsum(np.bincount(begin[ramp], steep, len(at)) - np.bincount(end[ramp], steep, len(at)))
    rise = np.concatenate([[0.0], slope[:-1] * np.diff(at)])
    jump: Floats = np.bincount(end[~ramp], weight[~ramp], len(at)).astype(np.float64)
    after: Floats = np.cumsum(rise + jump)
    nodes = np.unique(np.concatenate([[0.0], at, [1.0]])) if ramp.all() else None
    return PitCurve.of(at, after - jump, after, size, nodes)


def _integral(gap: Floats, norm: float) -> Floats:
    """Antiderivative of |gap|^norm."""
    return np.sign(gap) * np.abs(gap) ** (norm + 1) / (norm + 1)


def _roughness(norm: float, levels: Floats | None, nodes: Floats | None) -> float:
    """Mean over p of the bridge's sd(p)^norm, rooted: at levels, along straight lines between nodes, or all over."""
    if levels is not None:
        return float(np.mean((levels * (1 - levels)) ** (norm / 2)) ** (1 / norm))
    if nodes is None:
        return float(beta(norm / 2 + 1, norm / 2 + 1) ** (1 / norm))
    start, end = nodes[:-1, None], nodes[1:, None]
    part = np.linspace(0.1, 0.9, 5)
    variance = (
        (1 - part) ** 2 * start * (1 - start) + part**2 * end * (1 - end) + 2 * part * (1 - part) * start * (1 - end)
    )
    return float((np.diff(nodes) @ (variance ** (norm / 2)).mean(axis=1)) ** (1 / norm))


@lru_cache(maxsize=16)
def _simulated_bridge(norm: float) -> tuple[float, float, float, float]:
    """Mean, standard deviation and 95 % range of another norm of the Brownian bridge, by 4000 paths."""
    steps = generator(0, "Brownian bridge").normal(size=(4000, 256)) / 16
    path = np.cumsum(steps, axis=1)
    path -= path[:, -1:] * np.arange(1, 257) / 256
    size = np.mean(np.abs(path) ** norm, axis=1) ** (1 / norm)
    low, high = np.quantile(size, [0.025, 0.975])
    return float(size.mean()), float(size.std()), float(low), float(high)
