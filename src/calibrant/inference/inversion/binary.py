"""Intervals for the true calibration error that do not assume a smooth gap, and also cover if the error is zero."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from calibrant.data import validation
from calibrant.data.predictions import Predictions
from calibrant.data.validation import fail
from calibrant.estimators.binned import check_norm
from calibrant.inference.sample import EventRate, Sample
from calibrant.numerics.binary_inversion import ROUNDING, Limits
from calibrant.results.estimate import Interval, Side
from calibrant.results.target import Target
from calibrant.table.bintable import BinTable


@dataclass(frozen=True)
class Inversion(validation.Simulated):
    r"""Interval for the true error :math:`\theta_q = (E|S - h(S)|^q)^{1/q}`, h(s) = P(Y = 1 | S = s), by inversion.

    A value belongs to the interval if a test does not reject an error of that size. The gap is fitted in about √n cells
    with 2.5 + 1.1 log n knots, doubled as long as a finer fit shows a misfit beyond noise. Samples are simulated for
    multiples of a smoother gap, and each end is the error at which the observed norm of the fit is a given quantile of
    the simulated norms. The L1 lower end uses duality, :math:`E[f(S)(S - Y)] \le \theta_1` for all :math:`|f| \le 1`,
    with f cross-fitted; the upper end adds the largest misfit that the data do not exclude. Lower ends do not assume a
    smooth gap. For 1 < q < 2 the lower end is that of q = 1; for q > 2 both ends follow from those of q = 2, since a
    narrow peak can hide. Each step is derived in docs/methods/intervals.md.

    Outcomes are simulated by their binomial distribution where a cell expects few events or non-events. Clusters of
    rows (`group`) are simulated by random signs of whole clusters with their real sizes; with fewer than five clusters,
    or two effective ones, the interval is all possible errors. Weights enter by Kish's effective counts. Rows and a
    fine table of them give the same interval up to Monte Carlo error.

    Parameters
    ----------
    draws : int
        Number of simulated samples; more are drawn if `level` needs them, up to 2,000, which serve levels up to 0.997.
        At higher levels the lower end is a bound that needs no samples
        (`numerics.confidence_limits.mean_gap_size_limit`), and the upper end uses bounds on the quantiles, derived from
        the last one that the samples determine.
    seed : int
    side : {"two-sided", "lower", "upper"}
        A one-sided bound uses seven tenths of 1 - level on its side, a two-sided interval seven tenths of (1 - level) /
        2 on each. The rest is reserved for the shape of the gap, even where there is no shape to choose: with one
        distinct score a two-sided interval of level 0.95 is one of 0.965.

    Notes
    -----
    `Interval.assumption` states the resolution of the upper end. A gap that oscillates faster is not seen. Coverage in
    many worlds is in docs/evidence/coverage.md.

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
        super().__post_init__()
        if self.side not in ("two-sided", "lower", "upper"):
            fail(f"side must be 'two-sided', 'lower' or 'upper', got {self.side!r}.", ValueError)

    def interval(self, data: Predictions | BinTable, *, norm: float = 1, level: float = 0.95) -> Interval:
        """The interval for the true L_norm calibration error."""
        return self.intervals(data, norms=(norm,), level=level)[0]

    def intervals(
        self, data: Predictions | BinTable, *, norms: tuple[float, ...], level: float = 0.95
    ) -> list[Interval]:
        """Intervals for several norms from the same simulated samples."""
        level = validation.fraction("level", level)
        if any(np.isinf(check_norm(norm)) for norm in norms):
            fail("Inversion does not support the infinite norm; use IsotonicBand().", ValueError)
        sample = Sample.with_clusters(data, needed_by="Inversion")
        limits = Limits.of(sample.fine(facing=True), self.draws, self.seed, norms=norms, level=level, side=self.side)
        ends = _Ends(sample, limits, (1 - level) * (2 if self.side == "lower" else 1))
        return [
            Interval(
                *ends.of(norm),
                level=level,
                method=repr(self),
                side=self.side,
                assumption=assumption(limits, norm),
                target=Target("true error", norm),
            )
            for norm in norms
        ]


#: Beyond this level the lower end is not held against the test, whose simulated samples do not reach there.
#: Derived: of the 999 samples of `MultiScale`, ten lie beyond.
HELD_UP_TO = 0.99


@dataclass(frozen=True, eq=False)
class _Ends:
    """Both ends, in the family of statements about the sample of which `MultiScale` is the test.

    No norm is less than the mean gap, so lower ends use its share of alpha; they are zero where the test does not
    reject.
    """

    sample: Sample
    limits: Limits
    alpha: float

    def of(self, norm: float) -> tuple[float, float]:
        """Both ends, the upper one not below the lower one; 0 or infinity where only the other is wanted."""
        low = 0.0 if self.limits.side == "upper" else self._lower(norm)
        return low, np.inf if self.limits.side == "lower" else max(self.limits.upper(norm), low)

    def _lower(self, norm: float) -> float:
        """The lower end: at least that of the mean gap, and 0 unless the test rejects."""
        if self.limits.silent:
            return 0.0
        share = self.rate.share * self.alpha
        if self.rate.p_value <= share:
            return max(self.limits.lower(norm), self.rate.least_gap(share))
        return self.limits.lower(norm) if self.limits.excludes_zero(norm) and self._held else 0.0

    @cached_property
    def rate(self) -> EventRate:
        """The level."""
        return EventRate.of(self.sample)

    @cached_property
    def _held(self) -> bool:
        """Whether the test rejects too; it need not be asked where the evidence is overwhelming."""
        from calibrant.inference.multiscale import MultiScale

        if self.alpha < 1 - HELD_UP_TO or self.limits.dual.overwhelming:
            return True
        return MultiScale().rejects(self.sample, self.rate, self.alpha * (1 - ROUNDING))  # as verdicts do


def assumption(limits: Limits, norm: float) -> str:
    """What must hold for the interval to cover."""
    sample, cells = limits.sample, limits.sample.cells
    if limits.silent:
        return f"nothing: of {sample.clusters} clusters too few are of similar size, so all errors are possible"
    words = ["independent rows" if sample.weight is None else "independent clusters of rows"]
    if limits.side != "lower":
        hidden = ~cells.single
        if hidden.any():
            rows = cells.n * float(cells.share[hidden].sum()) / np.count_nonzero(hidden)
            words.append(f"upper end: no structure within cells of about {max(rows, 1):.0f} rows")
        else:
            words.append("upper end: each distinct score is looked at")
    if norm > 2:
        words.append("both ends derived from the L2 error")
    return "; ".join([*words, "approximate"])
