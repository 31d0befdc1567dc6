r"""Intervals for the true calibration error by test inversion, which also cover if the error is zero.

A value belongs to the interval if a test does not reject an error of that size.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from calibrant.data import validation
from calibrant.data.predictions import Binary, Predictions
from calibrant.estimators.norms import check_norm
from calibrant.inference.gap_fit import CommonDraws, GapFit, thinned
from calibrant.inference.sample import Sample
from calibrant.numerics.arrays import Floats
from calibrant.results.estimate import Interval, Side
from calibrant.results.target import Target
from calibrant.table.bintable import BinTable

#: Number of multiples of the fitted gap that are tested, from zero to well beyond what the data allow; and a smaller
#: number if zero error is clearly rejected, so that only multiples near one matter.
STEPS, NEAR_STEPS = 9, 5

#: Share of alpha that the quantiles use; the rest is reserved for approximating the shape of the true gap by that of
#: the fitted one. With all of alpha, coverage was as low as 0.88 in some published settings, at a level of 0.95.
ALPHA_SHARE = 0.7


@dataclass(frozen=True)
class Inversion:
    r"""Interval by test inversion: all errors θ that are not rejected, along multiples of the fitted gap.

    The gap between score and outcome is fitted by least squares, piecewise linear in the mean of rank and score with
    about 2.5 + 1.1 log n knots. Its norm T is biased upward by noise. So for each multiple t of a smoother fit ĝ,
    samples of outcomes with probabilities p - t ĝ are simulated (with the variance of the fitted probabilities, if
    larger), T is computed for each sample, and

    .. math:: \{\,\theta(t) = \lVert t\hat g\rVert_q : \; Q_{\alpha/2}(T_t) \le T \le Q_{1-\alpha/2}(T_t)\,\}

    is the interval. If the gap is not large relative to its noise, the upper end is the larger of this one and the one
    along a straight line. At t = 0 this is the exact test of calibration, so the interval of a calibrated model
    contains 0 with probability 1 - α/2. Scores are treated as random: the target is the error in the population.
    Clusters of rows (`group`) reduce the effective sample size by their design effect. The upper end is at least what
    it would be if T were the median for a calibrated model.

    Parameters
    ----------
    draws : int
        Number of simulated samples per multiple.
    seed : int
    side : {"two-sided", "lower", "upper"}
        A one-sided bound uses all of 1 - level on its side.

    Notes
    -----
    Coverage measured in twenty worlds at n = 200, 1000 and 5000 is in docs/inference.md. A gap that oscillates faster
    than the spacing of the knots is not detected; the interval is then for the norm of the smoothed gap.
    """

    draws: int = 999
    seed: int = 0
    side: Side = "two-sided"

    def __post_init__(self) -> None:
        validation.whole("draws", self.draws)
        if self.side not in ("two-sided", "lower", "upper"):
            message = f"side must be 'two-sided', 'lower' or 'upper', got {self.side!r}."
            raise ValueError(message)

    def interval(self, data: Predictions | BinTable, *, norm: float = 1, level: float = 0.95) -> Interval:
        """The interval for the true L_norm calibration error."""
        return self.intervals(data, norms=(norm,), level=level)[0]

    def intervals(
        self, data: Predictions | BinTable, *, norms: tuple[float, ...], level: float = 0.95
    ) -> list[Interval]:
        """Intervals for several norms from the same simulated samples."""
        level = validation.fraction("level", level)
        if any(np.isinf(check_norm(norm)) for norm in norms):
            message = "Inversion does not support the infinite norm; use IsotonicBand()."
            raise ValueError(message)
        if isinstance(data, Binary) and data.group is not None:
            cells = thinned(Sample.of_rows(data))
        else:
            cells = Sample.of(data, needed_by="Inversion").pooled()
        fit = GapFit.of(cells)
        risk = ALPHA_SHARE * (1 - level) / (2 if self.side == "two-sided" else 1)
        common = CommonDraws.of(fit, self.draws, np.random.default_rng(self.seed))
        trials = _Trials(fit, common, np.array(norms, dtype=np.float64), risk)
        path = trials.along_fit(self.side)
        if self.side != "lower" and path.open_above():
            path = path.joined([trials.one_direction(-1), trials.one_direction(1)])
        return [self._between(*path.ends(k), norm, level) for k, norm in enumerate(norms)]

    def _between(self, low: float, high: float, norm: float, level: float) -> Interval:
        return Interval(
            0.0 if self.side == "upper" else low,
            np.inf if self.side == "lower" else high,
            level=level,
            method=repr(self),
            side=self.side,
            assumption="independent rows (or clusters); a gap that is smooth in the score; approximate",
            target=Target("true error", norm),
        )


@dataclass(frozen=True, eq=False)
class _Path:
    """Per norm (row) and multiple (column): the true error, and a low and a high quantile of the statistic."""

    norms: Floats
    observed: Floats
    truth: Floats
    low: Floats
    high: Floats
    typical: Floats
    others: tuple[_Path, ...] = ()

    def ends(self, k: int) -> tuple[float, float]:
        """The interval of norm k."""
        observed, truth = self.observed[k], self.truth[k]
        above, below = np.maximum.accumulate(self.high[k]), np.maximum.accumulate(self.low[k])
        low = _first_at_least(observed, above, truth)
        high = _last_at_most(max(observed, self.typical[k]), below, truth)
        return low, max([high, *(other.ends(k)[1] for other in self.others)])

    def open_above(self) -> bool:
        """Whether even the largest error tested is not rejected."""
        return bool((self.low.max(axis=1) <= self.observed).any() or not self.truth.any())

    def joined(self, others: list[_Path]) -> _Path:
        """The path whose upper ends are the largest of this and the other paths."""
        return replace(self, others=(*self.others, *others))


@dataclass(frozen=True, eq=False)
class _Trials:
    """The distribution of the statistic under each of several hypotheses, with common random numbers."""

    fit: GapFit
    common: CommonDraws
    norms: Floats
    risk: float

    def path(self, gaps: Floats) -> _Path:
        """The path of these true gaps, one per row; probabilities are clipped to [0, 1]."""
        fit, cells, norms = self.fit, self.fit.cells, self.norms
        fitted = np.clip(cells.predicted - fit.shape, 0.0, 1.0)
        statistics, truth = [], []
        for line in gaps:
            probability = np.clip(cells.predicted - line, 0.0, 1.0)
            gap = np.abs(cells.predicted - probability)
            noisy = (
                np.where(fitted * (1 - fitted) > probability * (1 - probability), fitted, probability)
                if line.any()
                else probability
            )
            drawn = np.abs(fit.gaps(probability, self.common.noise(noisy)))
            statistics.append(
                [_power_means(drawn, cells.share, norm) + self.common.share_errors @ gap**norm for norm in norms]
            )
            truth.append([float(cells.share @ gap**norm) for norm in norms])
        levels = [self.risk, 1 - self.risk, 0.5]
        quantiles = np.quantile(np.maximum(statistics, 0.0), levels, axis=2, method="weibull")
        roots = 1 / norms[:, None]
        low, high, middle = quantiles.transpose(0, 2, 1) ** roots
        observed = np.array([float(cells.share @ np.abs(fit.gap) ** norm) for norm in norms]) ** roots[:, 0]
        typical = middle[:, 0] if not gaps[0].any() else np.zeros(len(norms))
        return _Path(norms, observed, np.array(truth).T ** roots, low, high, typical)

    def along_fit(self, side: Side) -> _Path:
        """Multiples of the fitted shape: near 1 if the gap is many times its noise, else from 0."""
        fit, cells = self.fit, self.fit.cells
        size = float(np.sqrt(cells.share @ fit.shape**2))
        if size == 0:
            return self.path(np.zeros((2, len(fit.shape))))
        sampling = float(
            np.sqrt(cells.share @ (np.abs(fit.gap) - cells.share @ np.abs(fit.gap)) ** 2 / cells.effective_n)
        )
        middle, reach = float(np.sqrt(cells.share @ fit.gap**2)) / size, 4 * (fit.noise + sampling) / size
        if reach < 0.5:
            near = np.linspace(1 - reach, middle + reach, NEAR_STEPS)
            path = self.path(fit.shape * near[:, None])
            if np.all(path.high[:, 0] < path.observed) and np.all(path.low[:, -1] > path.observed):
                return path
        multiples = np.linspace(0, max(middle + reach, 1.5), STEPS)
        path = self.path(fit.shape * multiples[:, None])
        if side == "lower":
            return path
        # The upper end must also cover a gap that does not oscillate.
        line = fit.straight
        straight = max(float(np.sqrt(cells.share @ line**2)), 0.1 * size)
        return path.joined([self.path(line * (size / straight) * multiples[:, None])])

    def one_direction(self, sign: int) -> _Path:
        """Gaps of one sign, proportional to the noise: for probabilities near 0 and 1, which bound the fitted gap."""
        fit, cells = self.fit, self.fit.cells
        spread = np.sqrt(np.maximum(cells.predicted * (1 - cells.predicted), 1 / cells.effective_n))
        shape = sign * spread / np.sqrt(cells.share @ spread**2)
        top = float(np.sqrt(cells.share @ fit.gap**2)) + 10 * max(fit.noise, 1 / np.sqrt(cells.effective_n))
        return self.path(shape * (top * np.linspace(0, 1, 2 * STEPS) ** 2)[:, None])


def _power_means(values: Floats, share: Floats, norm: float) -> Floats:
    if norm == 1:
        return np.asarray(values @ share)
    return np.asarray((values * values if norm == 2 else values**norm) @ share)


def _first_at_least(observed: float, quantile: Floats, truth: Floats) -> float:
    """The smallest error at which a rising quantile reaches the observed value; otherwise the largest tested."""
    after = int(np.searchsorted(quantile, observed, side="left"))
    return _between_steps(observed, quantile, truth, after)


def _last_at_most(observed: float, quantile: Floats, truth: Floats) -> float:
    """The largest error at which a rising quantile has not exceeded the observed value."""
    after = int(np.searchsorted(quantile, observed, side="right"))
    return _between_steps(observed, quantile, truth, after)


def _between_steps(observed: float, quantile: Floats, truth: Floats, after: int) -> float:
    if after in (0, len(quantile)):
        return float(truth[min(after, len(truth) - 1)])
    step = slice(after - 1, after + 1)
    return float(np.interp(observed, quantile[step], truth[step]))
