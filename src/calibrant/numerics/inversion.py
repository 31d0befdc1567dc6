"""Confidence intervals by inverting a test: the risk, the hat functions, the path of hypotheses and both of its ends.

A gap is fitted on hat functions; multiples of a smoother gap are taken for the truth; the statistic is simulated under
each; and the ends are where the observed one is a quantile of what was simulated. Each task has an adapter that says
what is fitted and how it is simulated. docs/methods/intervals.md derives the method and every constant.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from calibrant.numerics.arrays import Floats

Numbers = NDArray[np.intp]

#: Draws that must lie beyond a quantile for them to tell where it is.
#: Test: tests/inference/inversion/test_binary_constants.py.
BEYOND = 5

#: Simulated samples at most, unless more are asked for: up to levels of 0.999.
#: Test: tests/numerics/test_inversion.py::test_high_levels_get_more_draws_or_a_refusal.
MOST_DRAWS = 15_000

#: Share of alpha that the quantiles use; the rest is reserved for the true shape not being that of the path. With all
#: of alpha, binary intervals covered as little as 0.88 in some published settings, at a level of 0.95.
#: Test: tests/inference/inversion/test_binary_constants.py.
ALPHA_SHARE = 0.7


def tail_risk(level: float, *, one_sided: bool = False) -> float:
    """The probability that the quantiles of an inverted test leave in each tail."""
    return ALPHA_SHARE * (1 - level) / (1 if one_sided else 2)


def enough_draws(draws: int, risk: float) -> int:
    """The number of draws, or more of them if fewer than `BEYOND` would lie beyond the quantiles."""
    needed = int(np.ceil(BEYOND / risk))
    if needed > max(draws, MOST_DRAWS):
        message = (
            f"level is too close to 1: its quantiles need {needed:_} simulated samples, and at most {MOST_DRAWS:_} are "
            "simulated unless more are asked for (draws=...)."
        )
        raise ValueError(message)
    return max(draws, needed)


#: Knots of a fit to n rows are the first number plus the second times log n.
#: Test: tests/inference/inversion/test_binary_constants.py.
KNOTS = 2.5, 1.1

#: Knots of the shape along which errors are tested, as a fraction of those of the fit.
#: Test: tests/inference/inversion/test_binary_constants.py.
SHAPE_KNOTS = 0.6


def knots_for(rows: float) -> float:
    """Number of knots that follow every published calibration curve: 2.5 + 1.1 log n."""
    return KNOTS[0] + KNOTS[1] * float(np.log(max(rows, 4.0)))


def whole_knots(knots: float) -> int:
    """At least two."""
    return max(2, round(knots))


def unit_scaled(values: Floats, low: float | None = None, high: float | None = None) -> Floats:
    """Rising values mapped to [0, 1] by their first and last (or the given ends, beyond which they are cut)."""
    low, high = float(values[0]) if low is None else low, float(values[-1]) if high is None else high
    if not high > low:
        return np.zeros(len(values))
    return (np.clip(values, low, high) - low) / (high - low)


def mid_ranks(share: Floats) -> Floats:
    """The middle of each cell in the running share."""
    return np.asarray(np.cumsum(share) - share / 2)


def pool_starts(position: Floats, size: int, alone: NDArray[np.bool_] | None = None) -> Numbers:
    """Where each of at most `size` pools of equal width begins, for rising positions; some positions stay alone."""
    step = np.minimum((position * size).astype(np.intp), size - 1)
    new = np.diff(step, prepend=-1) != 0
    if alone is not None:
        new |= alone
        new[1:] |= alone[:-1]
    return np.flatnonzero(new)


def pool_numbers(starts: Numbers, size: int) -> Numbers:
    """The pool of each of `size` values, given where the pools begin."""
    return np.repeat(np.arange(len(starts)), np.diff(starts, append=size))


def hat_functions(position: Floats, knots: int) -> Floats:
    """Hat functions at equally spaced knots, one per column; a single knot is the constant."""
    hats = np.zeros((len(position), knots))
    left, right = _hat_weights(position, knots)
    row = np.arange(len(position))
    hats[row, left] = 1 - right
    if knots > 1:
        hats[row, left + 1] = right
    return hats


def _hat_weights(position: Floats, knots: int) -> tuple[Numbers, Floats]:
    """The knot to the left of each position in [0, 1], and the value there of the hat function of the next one."""
    place = position * (knots - 1)
    left = np.minimum(place.astype(np.intp), max(knots - 2, 0))
    return left, place - left


def orthonormal_hats(position: Floats, share: Floats, knots: int) -> Floats:
    """Combinations of hat functions that are orthonormal under `share`, and zero at positions without weight."""
    root = np.sqrt(share)[:, None]
    left, sizes, _ = np.linalg.svd(root * hat_functions(position, knots), full_matrices=False)
    inverse = np.divide(1.0, root, out=np.zeros_like(root), where=root > 0)
    return np.asarray(left[:, sizes > 1e-6 * sizes[0]] * inverse)


#: Up to this many entries of the matrix of cells by knots, products with all of it take less time than those with its
#: two entries per cell and a banded solution, which goes through the columns one by one.
#: Speed: times of both at 100 to 1,000 cells; no result depends on it.
DENSE = 10_000


@dataclass(frozen=True, eq=False)
class HatFit:
    """The weighted projection of a value per cell on piecewise linear functions of the position.

    Cells that are not `free` keep their values. With few cells the basis is orthonormal; with many the normal equations
    are solved in bands. Once there are as many knots as cells the fit is the identity. `knots` are those asked for, of
    which the share of the cells that are not free is deducted.
    """

    knots: float
    free: Numbers
    basis: Any = None
    weighted: Any = None
    factor: Floats | None = None

    @classmethod
    def of(cls, position: Floats, share: Floats, free: NDArray[np.bool_], knots: float) -> HatFit:
        """The fit with equally spaced knots, in number reduced to the share of the free cells."""
        some = np.flatnonzero(free)
        position, share = position[some], share[some]
        size = whole_knots(knots * float(share.sum()))
        if len(some) <= size:
            return cls(knots, some)
        if len(some) * size <= DENSE:
            basis = orthonormal_hats(position, share, size)
            return cls(knots, some, basis, np.ascontiguousarray((share[:, None] * basis).T))
        return cls(knots, some, *_banded(position, share, size))

    @property
    def identity(self) -> bool:
        """Whether nothing is smoothed."""
        return self.basis is None

    def __call__(self, values: Floats) -> Floats:
        """Fitted values of one value per cell, or of many columns of them."""
        if self.identity:
            return values
        if len(self.free) == len(values):
            return np.asarray(self.basis @ self._coefficients(values))
        fitted = values.copy()
        fitted[self.free] = self.basis @ self._coefficients(values[self.free])
        return fitted

    def _coefficients(self, values: Floats) -> Floats:
        """Those of the basis that fit these values of the free cells best."""
        sums = self.weighted @ values
        if self.factor is None:
            return np.asarray(sums)
        from scipy.linalg import cho_solve_banded

        return np.asarray(cho_solve_banded((self.factor, False), sums, check_finite=False))

    def variance(self, variance: Floats) -> Floats:
        """Variance of the fitted values, given the independent variances of the values."""
        return variance if self.identity else np.asarray(self(np.eye(len(variance))) ** 2 @ variance)


def _banded(position: Floats, share: Floats, knots: int) -> tuple[Any, Any, Floats]:
    """The hat functions, their transpose times the shares, and the factor of the normal equations in two bands."""
    from scipy.linalg import cholesky_banded
    from scipy.sparse import csc_array, csr_array

    left, right = _hat_weights(position, knots)
    values = np.stack([1 - right, right], axis=1)
    columns, starts = (left[:, None] + np.arange(2)).ravel(), np.arange(0, 2 * len(share) + 1, 2)
    basis = csr_array((values.ravel(), columns, starts), shape=(len(share), knots))
    weighted = csc_array(((share[:, None] * values).ravel(), columns, starts), shape=(knots, len(share)))
    diagonal = np.bincount(columns, (share[:, None] * values**2).ravel(), knots)
    beside = np.bincount(left, share * right * (1 - right), knots)
    ridge = 1e-9 * diagonal.mean()  # knots may have no cell near them
    bands = np.stack([np.roll(beside, 1), diagonal + ridge])
    return basis, weighted, cholesky_banded(bands, check_finite=False)


#: Multiples of a shape that are tested reach at least to this one.
#: Test: tests/inference/inversion/test_binary_constants.py.
LEAST_REACH = 1.5

#: A quantile jumps where it rises by this many times more than the error.
#: Test: tests/inference/inversion/test_binary_constants.py.
JUMP = 1.5

#: Relative difference of equal statistics.
#: Derived: far above the rounding of sums of a thousand cells, far below a difference of one event in a million rows.
EQUAL = 1e-9


def multiples_to(length: float, size: float, steps: int) -> Floats:
    """Multiples of a shape of this size, from 0 to those of the given length, and to `LEAST_REACH` at least."""
    return np.linspace(0, max(length / size, LEAST_REACH), steps)


@dataclass(frozen=True, eq=False)
class Path:
    """Hypothetical errors, rising, with a low, a middle and a high quantile of the statistic under each.

    Ends may be interpolated on the scale of `squares`, where noise adds to the error.
    """

    truth: Floats
    low: Floats
    middle: Floats
    high: Floats
    squares: bool = False

    @classmethod
    def along(
        cls,
        hypotheses: Iterable[Any],
        simulate: Callable[[Any], tuple[float, Floats]],
        risk: float | tuple[float, float],
    ) -> Path:
        """From hypotheses, and the true error and the simulated statistics under each of them."""
        truth, drawn = zip(*(simulate(one) for one in hypotheses), strict=True)
        return cls.of(np.array(truth), np.array(drawn), risk)

    @classmethod
    def of(
        cls, truth: Floats, drawn: Floats, risk: float | tuple[float, float], *, steepness: float | None = None
    ) -> Path:
        """From the statistics drawn under each hypothesis (a row each), which need not be in order.

        `risk` is that beyond each quantile, or that beyond the low and the high one. The draws do not tell a quantile
        that fewer than `BEYOND` of them exceed. If the statistic is a function of standard normal variables that
        changes by at most `steepness` times their distance, its quantile at Φ(z + x) is at most `steepness` x above
        that at Φ(z) (the Gaussian isoperimetric inequality: Borell 1975, Sudakov and Tsirelson 1974), and so from the
        last quantile the draws tell the others are bounded.
        """
        risks = np.broadcast_to(risk, 2)
        told = risks if steepness is None else np.maximum(risks, BEYOND / drawn.shape[1])
        low, middle, high = np.quantile(drawn, [told[0], 0.5, 1 - told[1]], axis=1)
        if steepness is not None:
            farther = steepness * (ndtri(told) - ndtri(risks))
            low, high = low - farther[0], high + farther[1]
        order = np.argsort(truth, kind="stable")
        return cls(np.asarray(truth, dtype=np.float64)[order], low[order], middle[order], high[order])

    @property
    def typical(self) -> float:
        """The median of the statistic if there is no error; 0 if the path does not start there."""
        return float(self.middle[0]) if self.truth[0] <= 1e-12 else 0.0

    def lower_end(self, observed: float, finer: Callable[[int], Path] | None = None) -> float:
        """The smallest error under which the statistic may be as large as observed; else the largest one tried.

        For a discrete statistic, whose quantile jumps, `finer` gives the path in smaller steps from the hypothesis
        before a given number to that one; where it still jumps the outer error is taken.
        """
        limit, jump = self._lower(observed, discrete=finer is not None)
        return limit if finer is None or jump is None else finer(jump)._lower(observed, discrete=True)[0]

    def upper_end(self, observed: float, finer: Callable[[int], Path] | None = None) -> float:
        """The largest error under which the statistic may be as small as observed, or as is typical without error."""
        observed = max(observed, self.typical)
        limit, jump = self._upper(observed, discrete=finer is not None)
        return limit if finer is None or jump is None else finer(jump)._upper(observed, discrete=True)[0]

    def middle_end(self, observed: float) -> float:
        """The error under which the observed statistic is the median."""
        rising = np.maximum.accumulate(self.middle)
        return self._interpolated(observed, rising, int(np.searchsorted(rising, observed)))

    def _lower(self, observed: float, *, discrete: bool) -> tuple[float, int | None]:
        """Where the high quantile reaches the observed statistic, and the step in which it jumps there."""
        rising = np.maximum.accumulate(self.high)
        after = int(np.searchsorted(rising, observed * (1 - EQUAL)))
        within = discrete and 0 < after < len(rising)
        if within and (rising[after] <= observed * (1 + EQUAL) or self._jumps(rising, after)):
            return float(self.truth[after - 1]), after
        return self._interpolated(observed, rising, after), None

    def _upper(self, observed: float, *, discrete: bool) -> tuple[float, int | None]:
        """Where the low quantile exceeds the observed statistic, and the step in which it jumps there."""
        rising = np.minimum.accumulate(self.low[::-1])[::-1]
        after = int(np.searchsorted(rising, observed * (1 + EQUAL), side="right"))
        within = discrete and 0 < after < len(rising)
        if within and (rising[after - 1] >= observed * (1 - EQUAL) or self._jumps(rising, after)):
            return float(self.truth[after]), after
        return self._interpolated(observed, rising, after), None

    def _jumps(self, rising: Floats, after: int) -> bool:
        """Whether the quantile rises faster than it could if outcomes were many: then it rises by at most the error."""
        return bool(rising[after] - rising[after - 1] > JUMP * (self.truth[after] - self.truth[after - 1]))

    def _interpolated(self, observed: float, rising: Floats, after: int) -> float:
        """The error before hypothesis number `after` at which a rising quantile is the observed statistic."""
        if after in (0, len(rising)):
            return float(self.truth[min(after, len(rising) - 1)])
        step = slice(after - 1, after + 1)
        if self.squares:
            return float(np.sqrt(np.interp(observed**2, rising[step] ** 2, self.truth[step] ** 2)))
        return float(np.interp(observed, rising[step], self.truth[step]))


def widened(
    low: float, high: float, power: Floats, share: Floats, norm: float, rows: float, level: float
) -> tuple[float, float]:
    """Both ends moved outwards by the sampling of the scores, which is independent of the noise of the gap.

    The error is the root of the mean `power` over the cells; distances from it add in squares. Zero stays zero.
    """
    mean = float(share @ power)
    variance = max(float(share @ power**2) - mean**2, 0.0) / rows
    center = min(max(mean ** (1 / norm), low), high)
    slope = 1 / (norm * max(center, 1e-9) ** (norm - 1))
    reach = float(ndtri((1 + level) / 2) * np.sqrt(variance)) * slope
    bottom = 0.0 if low <= 0 else max(center - float(np.hypot(center - low, reach)), 0.0)
    return bottom, center + float(np.hypot(high - center, reach))
