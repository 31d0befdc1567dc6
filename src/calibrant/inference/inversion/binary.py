"""Intervals for the true calibration error that do not assume a smooth gap, and also cover if the error is zero.

A value belongs to the interval if a test does not reject an error of that size.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
from scipy.special import ndtri

from calibrant.data import validation
from calibrant.data.predictions import Predictions
from calibrant.estimators.norms import check_norm
from calibrant.inference.inversion.binary_fit import (
    FEW_EVENTS,
    CellNoise,
    FineSample,
    HatFit,
    Resolution,
    effective_clusters,
)
from calibrant.inference.inversion.binary_limits import DualBound, MisfitBound, Shape, SmoothPart
from calibrant.numerics.arrays import Floats
from calibrant.numerics.confidence_limits import mean_gap_size_limit
from calibrant.numerics.inversion import tail_risk
from calibrant.results.estimate import Interval, Side
from calibrant.results.target import Target
from calibrant.table.bintable import BinTable

#: With fewer clusters of rows, or fewer effective ones, nothing is claimed: their signs have too few patterns for a
#: test at the usual levels.
FEWEST_CLUSTERS, FEWEST_EFFECTIVE = 5, 2.0

#: The fitted gap varies slowly: its norm is simulated on so many cells, or this many for each knot.
SMOOTH_CELLS, CELLS_PER_KNOT = 96, 4

#: Simulated samples beyond each quantile, at least; more are drawn at high levels, up to this many. Beyond the levels
#: that they serve (0.997), ends are bounded from the last quantile that the samples tell.
BEYOND, MOST_DRAWS = 2, 2000


@dataclass(frozen=True)
class Inversion:
    r"""Interval for the true error :math:`\theta_q = (E|S - h(S)|^q)^{1/q}`, h(s) = P(Y = 1 | S = s), by inversion.

    *Resolution.* The scores are divided into about √n cells; scores that repeat have cells of their own. The gaps
    between mean score and mean outcome are fitted by piecewise linear functions of the position, with
    2.5 + 1.1 log n knots, doubled as long as a finer fit shows a misfit beyond noise.

    *Fitted part.* The norm T of the fitted gap ĝ is biased upward by noise. So samples are simulated for multiples t of
    a smoother gap, and the error is where T is a given quantile of the simulated norms. Scores are treated as random:
    the target is the error in the population.

    *Lower end.* For q = 2 it is the smallest multiple that is not rejected, and 0 unless calibration is rejected by the
    largest of the norms at all resolutions. For q = 1 it uses duality, :math:`E[f(S)(S - Y)] \le \theta_1` for all
    :math:`|f| \le 1`, with f cross-fitted. Neither needs a smooth gap. Norms increase with q, so for 1 < q < 2 the
    lower end is that of q = 1, and for q > 2 that of q = 2.

    *Upper end.* To the fitted part is added the largest misfit, down to the cells, that the data do not exclude, placed
    where it raises the norm most. If many knots were needed, a gap of the same size everywhere is tested too, unless
    the ratio of the L1 and L2 norms of ĝ excludes it. For q > 2 only
    :math:`\theta_q^q \le \theta_2^2 \max|S - h(S)|^{q - 2}` is used, since a narrow peak can hide.

    Outcomes are simulated by their binomial distribution where a cell expects few events or non-events. Clusters of
    rows (`group`) are simulated by random signs of whole clusters with their real sizes; fewer than five, or than two
    effective ones, say nothing, and the interval is then all possible errors. Weights enter by Kish's effective counts.
    Rows and a fine table of them give the same interval up to Monte Carlo error.

    Parameters
    ----------
    draws : int
        Number of simulated samples; more are drawn if `level` needs them, up to 2,000, which serve levels up to 0.997.
        At higher ones the lower end is a bound that needs none (`numerics.confidence_limits.mean_gap_size_limit`), and
        the upper end uses quantiles that are bounded from the last one that the samples tell.
    seed : int
    side : {"two-sided", "lower", "upper"}
        A one-sided bound uses all of 1 - level on its side.

    Notes
    -----
    `Interval.assumption` says to which resolution the upper end has looked. A gap that oscillates faster is not seen.
    Coverage in many worlds is in docs/inference.md.

    Examples
    --------
    >>> import numpy as np
    >>> import calibrant as cal
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(4000)
    >>> wavy = cal.Binary(rng.random(4000) < p + 0.08 * np.sin(12 * np.pi * p), p)  # the true error is 0.051
    >>> found = Inversion().interval(wavy)
    >>> 0.051 in found, found.assumption
    (True, 'independent rows; upper end: no structure within cells of about 63 rows; approximate')
    """

    serves: ClassVar[str] = "error"

    draws: int = 299
    seed: int = 0
    side: Side = "two-sided"

    def __post_init__(self) -> None:
        validation.seed(self.seed)
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
        limits = Limits.of(FineSample.of(data, needed_by="Inversion"), self, norms=norms, level=level)
        return [
            Interval(
                0.0 if self.side == "upper" else limits.lower(norm),
                np.inf if self.side == "lower" else limits.upper(norm),
                level=level,
                method=repr(self),
                side=self.side,
                assumption=limits.assumption(norm),
                target=Target("true error", norm),
            )
            for norm in norms
        ]


@dataclass(frozen=True, eq=False)
class Limits:
    """Lower and upper limits of the true error of one sample, in several norms."""

    sample: FineSample
    norms: tuple[float, ...]
    risk: float
    told: float
    draws: int
    seed: int
    side: Side

    @classmethod
    def of(cls, sample: FineSample, method: Inversion, *, norms: tuple[float, ...], level: float) -> Limits:
        """For the options of `method`; limits in a norm above 2 are derived from those in norm 2."""
        risk = tail_risk(level, one_sided=method.side != "two-sided")
        needed = np.ceil(BEYOND / risk) if risk < BEYOND / 299 else 0
        draws = max(method.draws, int(min(needed, MOST_DRAWS)))
        told = risk if draws >= needed else BEYOND / draws
        simulated = tuple(sorted({*map(float, norms), *(min(float(norm), 2.0) for norm in norms)}))
        return cls(sample, simulated, risk, told, draws, method.seed, method.side)

    @property
    def silent(self) -> bool:
        """Whether there are too few clusters to say anything."""
        weight = self.sample.weight
        if weight is None:
            return False
        return len(weight) < FEWEST_CLUSTERS or effective_clusters(weight.sum(axis=1)) < FEWEST_EFFECTIVE

    def lower(self, norm: float) -> float:
        """The lower limit."""
        if self.silent or self._bound == 0:
            return 0.0
        return min(self._bound, self._l1_lower if norm < 2 else self._l2_lower)

    def upper(self, norm: float) -> float:
        """The upper limit, not below the lower one."""
        cells = self.sample.cells
        if norm > 2:
            widest = float(np.maximum(cells.predicted, 1 - cells.predicted).max())
            return max(self.lower(norm), float((self.upper(2.0) ** 2 * widest ** (norm - 2)) ** (1 / norm)))
        if self.silent:
            return float(cells.share @ np.maximum(cells.predicted, 1 - cells.predicted) ** norm) ** (1 / norm)
        fitted = self._misfit.upper(norm, self.middle(norm), self.fitted_upper(norm))
        return max(self._least(norm), fitted, self._mean_gap_upper)

    def middle(self, norm: float) -> float:
        """An estimate whose median is about the error of the fitted gap, within the limits of that part."""
        middle = self.smooth.middle(self.norms.index(norm))
        return min(max(middle, self._least(norm)), self.fitted_upper(norm))

    def fitted_upper(self, norm: float) -> float:
        """The upper limit of the error of the fitted gap, without the misfit that it may hide."""
        return self._fitted_uppers[self.norms.index(norm)]

    def assumption(self, norm: float) -> str:
        """What must hold for the interval to cover."""
        if self.silent:
            return (
                f"nothing: of {self.sample.clusters} clusters too few are of similar size, so all errors are possible"
            )
        words = ["independent rows" if self.sample.clusters is None else "independent clusters of rows"]
        if self.side != "lower":
            hidden = ~self.sample.cells.single
            if hidden.any():
                rows = self.sample.cells.n * float(self.sample.cells.share[hidden].sum()) / np.count_nonzero(hidden)
                words.append(f"upper end: no structure within cells of about {max(rows, 1):.0f} rows")
            else:
                words.append("upper end: each distinct score is looked at")
        if norm > 2:
            words.append("both ends derived from the L2 error")
        return "; ".join([*words, "approximate"])

    def _least(self, norm: float) -> float:
        """The lower limit where it is asked for."""
        return 0.0 if self.side == "upper" else self.lower(norm)

    @cached_property
    def farther(self) -> float:
        """Between the quantile that is asked for and the last that the draws tell, in standard normal deviations."""
        return float(ndtri(self.told) - ndtri(self.risk))

    @cached_property
    def _bound(self) -> float:
        """A lower limit without draws, where these do not tell the quantile; no norm is below that in L1.

        Of few clusters the signs have too few patterns for any test at this risk.
        """
        if self.told == self.risk:
            return np.inf
        cells, weight = self.sample.cells, self.sample.weight
        heaviest = None
        if weight is not None:
            by_cluster = weight.sum(axis=1)
            if effective_clusters(by_cluster) < 1 - np.log2(self.risk):
                return 0.0
            heaviest = float(by_cluster.max())
        return mean_gap_size_limit(
            cells.predicted, cells.observed, cells.share, cells.count, self.risk, heaviest=heaviest
        )

    @cached_property
    def _mean_gap_upper(self) -> float:
        """The largest mean gap that the number of events does not exclude, if there are few events or non-events.

        No norm is smaller than the mean gap. Without any event, no simulated gap looks too small, however large it is;
        the binomial limits of the event rate (Clopper and Pearson) say what is excluded.
        """
        from scipy.special import betaincinv

        cells = self.sample.cells
        rate, mean = float(cells.share @ cells.observed), float(cells.share @ cells.predicted)
        events, others = cells.effective_n * rate, cells.effective_n * (1 - rate)
        if min(events, others) >= FEW_EVENTS:
            return 0.0
        highest = float(betaincinv(events + 1, others, 1 - self.risk)) if others > 0 else 1.0
        lowest = float(betaincinv(events, others + 1, self.risk)) if events > 0 else 0.0
        return max(highest - mean, mean - lowest)

    @cached_property
    def smooth(self) -> SmoothPart:
        """The fitted part, simulated on cells no finer than its knots need."""
        fit, shape = self.resolution.fit, self._shape
        sample = self.sample
        if not fit.identity:
            sample = sample.merged(max(SMOOTH_CELLS, CELLS_PER_KNOT * round(fit.knots)))
        noise = self._noise
        if sample is not self.sample:
            fit, smoother = (HatFit.of(sample.cells, one.knots) for one in (fit, shape.fit))
            shape = Shape(smoother, smoother(sample.cells.gap), shape.noise)
            noise = sample.noise(self.draws, self.seed)
        return SmoothPart(sample.cells, noise, fit, shape, np.array(self.norms), self.told, self.side, self.farther)

    @cached_property
    def _fitted_uppers(self) -> list[float]:
        return [self.smooth.upper(k) for k in range(len(self.norms))]

    @cached_property
    def _noise(self) -> CellNoise:
        return self.sample.noise(self.draws, self.seed)

    @cached_property
    def resolution(self) -> Resolution:
        """The fits of the gap, and the one that was chosen."""
        return Resolution.of(self.sample.cells, self._noise)

    @cached_property
    def _drawn(self) -> Floats:
        """Noise of the cells at the fitted probabilities."""
        return self._noise.outcomes(np.clip(self.sample.cells.predicted - self.resolution.gap, 0.0, 1.0))

    @cached_property
    def _fitted_noise(self) -> Floats:
        return self.resolution.fit(self._drawn)

    @cached_property
    def _shape(self) -> Shape:
        found = self.resolution
        return Shape.of(self.sample.cells, found.fit, found.gap, self._fitted_noise)

    @cached_property
    def _misfit(self) -> MisfitBound:
        return MisfitBound(self.resolution, self._drawn - self._fitted_noise, self._shape.gap, self.told, self.farther)

    @cached_property
    def _l1_lower(self) -> float:
        return DualBound(self.smooth, self.seed).limit()

    @cached_property
    def _l2_lower(self) -> float:
        part = self.smooth
        if not part.far_from_zero and self.resolution.p_value_of_zero(self._noise) > self.told:
            return 0.0
        return part.lower(self.norms.index(2.0))
