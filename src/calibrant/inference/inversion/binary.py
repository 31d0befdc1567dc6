"""Intervals for the true calibration error that do not assume a smooth gap, and also cover if the error is zero.

A value belongs to the interval if a test does not reject an error of that size.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from calibrant.data import validation
from calibrant.data.predictions import Predictions
from calibrant.estimators.norms import check_norm
from calibrant.inference.sample import Sample
from calibrant.numerics.binary_inversion import Limits
from calibrant.results.estimate import Interval, Side
from calibrant.results.target import Target
from calibrant.table.bintable import BinTable


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
        sample = Sample.with_clusters(data, needed_by="Inversion").fine()
        limits = Limits.of(sample, self.draws, self.seed, norms=norms, level=level, side=self.side)
        return [
            Interval(
                0.0 if self.side == "upper" else limits.lower(norm),
                np.inf if self.side == "lower" else limits.upper(norm),
                level=level,
                method=repr(self),
                side=self.side,
                assumption=assumption(limits, norm),
                target=Target("true error", norm),
            )
            for norm in norms
        ]


def assumption(limits: Limits, norm: float) -> str:
    """What must hold for the interval to cover."""
    sample, cells = limits.sample, limits.sample.cells
    if limits.silent:
        return f"nothing: of {sample.clusters} clusters too few are of similar size, so all errors are possible"
    words = ["independent rows" if sample.clusters is None else "independent clusters of rows"]
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
