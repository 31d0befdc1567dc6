"""Calibration errors without bins: of kernel density estimates, of smoothed residuals, and of running sums."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from calibrant.data.predictions import Column, Columns, binary
from calibrant.data.validation import fail
from calibrant.estimators.binned import check_norm, weighted_norm, with_norm
from calibrant.numerics.arrays import Floats
from calibrant.numerics.equal_mass import SortedSamples
from calibrant.numerics.rows import Role, Rows, effective_n
from calibrant.numerics.sorting import running_gap_extremes
from calibrant.results.estimate import Estimate
from calibrant.results.target import estimates
from calibrant.table.bintable import BinTable, Data, fine, require_fine
from calibrant.table.task import Unlabeled, task_of


@estimates("cumulative error")
def ks_error(data: Data = None, y_prob: Column = None, **columns: Unpack[Columns]) -> Estimate:
    r"""Kolmogorov-Smirnov calibration error: the largest gap of the running sums of prediction and outcome.

    .. math:: \max_s \Bigl\lvert \frac1W \sum_{i : p_i \le s} w_i (p_i - y_i) \Bigr\rvert

    It needs no bins and no smoothing, and is at most the L1 calibration error. Errors of opposite sign at neighbouring
    scores cancel, so a small value does not prove calibration.

    References
    ----------
    Gupta, Rahimi, Ajanthan, Mensink, Sminchisescu, Hartley (2021), Calibration of Neural Networks using Splines;
    Arrieta-Ibarra, Gujral, Tannen, Tygert, Xu (2022), Metrics of Calibration for Probabilistic Predictions.

    Examples
    --------
    >>> ks_error([0, 0, 1, 1], [0.25, 0.25, 0.75, 0.75])
    <KS error 0.125, n=4, exact>
    """
    lowest, highest, n = _running_gaps(data, y_prob, needed_by="ks_error")
    return Estimate(max(-lowest, highest), name="KS error", method="exact", n=n)


@estimates("cumulative range")
def kuiper_error(data: Data = None, y_prob: Column = None, **columns: Unpack[Columns]) -> Estimate:
    r"""Kuiper calibration error: the largest gap between prediction and outcome summed over any range of scores.

    .. math:: \max_{s} C(s) - \min_{s} C(s), \qquad C(s) = \frac1W \sum_{i : p_i \le s} w_i (p_i - y_i),
              \quad C(-\infty) = 0

    The range of the running sums whose largest size is `ks_error`, which it is between once and twice; like it, it
    needs no bins, and errors of opposite sign within the range cancel. Both are also known as empirical cumulative
    calibration errors: ECCE-R (this one) and ECCE-MAD (`ks_error`).

    References
    ----------
    Arrieta-Ibarra, Gujral, Tannen, Tygert, Xu (2022), Metrics of Calibration for Probabilistic Predictions.

    Examples
    --------
    >>> kuiper_error([0, 0, 1, 1], [0.25, 0.25, 0.75, 0.75])  # up by 1/8, then down to zero
    <Kuiper error 0.125, n=4, exact>
    """
    lowest, highest, n = _running_gaps(data, y_prob, needed_by="kuiper_error")
    return Estimate(highest - lowest, name="Kuiper error", method="exact", n=n)


def _running_gaps(data: Data, y_prob: Column, *, needed_by: str) -> tuple[float, float, int]:
    """The extremes of C(s), 0 at the outset included, and the number of rows."""
    if not isinstance(data, BinTable):
        data = binary(data, y_prob)
        first, *_ = data.parts()
        if first.plain_binary:
            lowest, highest = running_gap_extremes(first)
            return lowest / len(first.key), highest / len(first.key), len(first.key)
    cells = fine(data, None, needed_by=needed_by)
    running = np.cumsum(cells.predicted - cells.observed * cells.observed_scale) / cells.total
    return min(float(running.min()), 0.0), max(float(running.max()), 0.0), cells.n


#: Where the density of the scores is lower than this, the calibration curve is not looked at.
#: Reference: Zhang, Kailkhura, Han (2020), published code.
LOWEST_DENSITY = 1e-6

#: Cells between nodes for many samples at once: results agree with those on `SIZE` cells to about 1e-6, if the kernel
#: reaches over more than `_NARROWEST` cells and not around the period. Other samples are put on the finer nodes.
#: Derived: with 48 nodes in the reach of a kernel, straight lines err by 1 / (8 x 48^2) = 5e-5 of its curvature.
_COARSE, _NARROWEST = 2**12, 48

#: Samples per step, so that a step's matrices stay in the cache.
#: Speed: 256 samples take 0.6 of the time that they take one by one; no result depends on it.
_STEP = 64


def _of_samples(samples: SortedSamples, *, bandwidth: float | None = None, norm: float = 1) -> Floats:
    """`kde_ece` of each sample."""
    norm = check_norm(norm)
    if bandwidth is None:
        widths = samples.key.std(axis=1) * (2 * samples.n) ** -0.2
    else:
        widths = np.full(len(samples), _check_bandwidth(bandwidth))
    reach = 3 * _COARSE * widths
    wide = (reach > _NARROWEST) & (reach < _COARSE)
    values = np.empty(len(samples))
    for size, step, which in ((_COARSE, _STEP, np.flatnonzero(wide)), (SIZE, 1, np.flatnonzero(~wide))):
        for start in range(0, len(which), step):
            part = which[start : start + step]
            masses = linear_binning_of_samples(samples.key[part], samples.outcome[part], size)
            population, positives = masses[0] / samples.n, masses[1] / samples.n
            if bandwidth is None and size == SIZE:
                widths[part] = _usual_bandwidth(population, samples.n)
            values[part] = _smoothed_error(population, positives, widths[part], norm)
    return values


@estimates("true error", batched=_of_samples)
def kde_ece(
    data: Data = None,
    y_prob: Column = None,
    *,
    bandwidth: float | None = None,
    norm: float = 1,
    **columns: Unpack[Columns],
) -> Estimate:
    r"""Kernel density calibration error, ECE_KDE: no bins, a smoothed calibration curve.

    .. math:: \Bigl(\int_0^1 \lvert x - \hat c(x)\rvert^q \hat f(x)\,dx\Bigr)^{1/q}, \qquad
              \hat c(x) = \frac{\sum_i w_i y_i K_b(x, p_i)}{\sum_i w_i K_b(x, p_i)}, \qquad
              \hat f(x) = \frac1W\sum_i w_i K_b(x, p_i)

    where q is `norm` and K_b the triweight kernel :math:`\tfrac{35}{32}(1 - u^2)^3`, u = (x - p) / 3b, of standard
    deviation b, reflected at 0 and at 1. Each row is shared between the two nearest of 2^16 + 1 nodes, and the nodes
    are convolved by FFT; time is linear in the rows and nothing is sorted. Results are resolved to the node spacing,
    1.5e-5.

    Parameters
    ----------
    data : Predictions, fine BinTable, or y_true
    bandwidth : float, optional
        The standard deviation b of the kernel. By default s (2n)^(-1/5) with s the standard deviation of the scores
        and n the number of rows (whole weights count as repeated rows; for others n is Kish's effective number).
    norm : float
        The exponent q of at least 1, or infinity for the largest gap where there are scores.

    Notes
    -----
    The code published with the paper differs in four ways, each of which moves the number:

    - it takes no root, so that its L2 error is the square of an error and cannot be compared with others;
    - its bandwidth uses the standard deviation of the positive rows only, which does not exist without positives and
      changes when the classes are swapped;
    - it reflects each score at the nearer end only and drops the density at exactly 0 and 1, while here every
      reflection counts and a score of 0 or 1 has the mass of any other;
    - where there are no scores it repeats the last value; here that part of the range has weight zero.

    References
    ----------
    Zhang, Kailkhura, Han (2020), Mix-n-Match: Ensemble and Compositional Methods for Uncertainty Calibration in Deep
    Learning.

    Examples
    --------
    >>> kde_ece([0, 0, 1, 1], [0.1, 0.3, 0.6, 0.8], bandwidth=0.02)
    <ECE_KDE (L1) 0.25, n=4, triweight kernel, bandwidth=0.02>
    """
    norm = check_norm(norm)
    binned = linearly_binned(data, y_prob, needed_by="kde_ece")
    width = (
        _usual_bandwidth(binned.population, binned.effective_n) if bandwidth is None else _check_bandwidth(bandwidth)
    )
    value = float(_smoothed_error(binned.population, binned.positives, width, norm))
    method = f"triweight kernel, bandwidth={width:.4g}"
    details = {"bandwidth": float(width)}
    return Estimate(value, name=with_norm("ECE_KDE", norm), method=method, n=binned.n, details=details)


def _check_bandwidth(bandwidth: float) -> np.float64:
    if not 0 < bandwidth <= 1:
        fail(f"bandwidth must lie in (0, 1], got {bandwidth!r}.", ValueError)
    return np.float64(bandwidth)


def _usual_bandwidth(population: Floats, n: float) -> Any:
    """S (2n)^(-1/5), with s the standard deviation of masses on nodes (the last axis)."""
    at = np.linspace(0.0, 1.0, population.shape[-1])
    mean = np.vecdot(population, at)
    return np.sqrt(np.vecdot(population, (at - mean[..., None]) ** 2)) * (2 * n) ** -0.2


def _smoothed_error(population: Floats, positives: Floats, bandwidth: Any, norm: float) -> Floats:
    """The error of shares of all rows and of positives at the nodes (last axis), whose smoothed ratio is the curve."""
    size = population.shape[-1] - 1
    kernel = even_transform(_triweight(bandwidth, size))
    density, hits = (at_nodes(cosines(masses) * kernel) for masses in (population, positives))
    for masses in (density, hits):
        masses[..., [0, -1]] /= 2
    some = density * size > LOWEST_DENSITY
    density = np.where(some, density, 0.0)
    curve = np.clip(np.divide(hits, density, out=np.zeros_like(hits), where=some), 0.0, 1.0)
    gap = np.where(some, np.linspace(0.0, 1.0, size + 1) - curve, 0.0)
    return weighted_norm(gap, density / density.sum(axis=-1, keepdims=True), norm)


def _triweight(bandwidth: Any, size: int) -> Floats:
    """The kernel at the nodes (last axis), half a period that adds up to 1; a longer kernel is wrapped around."""
    reach = np.maximum(3 * size * np.asarray(bandwidth), 1.0)[..., None]
    periods = math.floor((float(reach.max()) + size) / (2 * size))
    kernel = np.zeros(())
    for period in range(-periods, periods + 1):
        offset = np.arange(size + 1) + 2 * size * period
        kernel = kernel + np.maximum(1 - (offset / reach) ** 2, 0.0) ** 3
    total = 2 * kernel.sum(axis=-1, keepdims=True) - kernel[..., :1] - kernel[..., -1:]
    return np.asarray(kernel / total)


#: Nodes per sigma at which the smoothed residual is integrated.
#: Derived: the trapezoidal rule errs by 1 / (12 x 32^2) = 8e-5 of the curvature per sigma.
PER_SIGMA = 32


@estimates("smooth error")
def smooth_ece(
    data: Data = None, y_prob: Column = None, *, sigma: float | None = None, **columns: Unpack[Columns]
) -> Estimate:
    r"""Smooth calibration error, smECE: the residuals smoothed by a Gaussian kernel that is as wide as the error.

    .. math:: \mathrm{smECE}_\sigma = \int_0^1 \Bigl\lvert \frac1W \sum_i w_i K_\sigma(t, p_i) (y_i - p_i)
              \Bigr\rvert \, dt, \qquad \mathrm{smECE} = \sigma^\star \text{ with }
              \mathrm{smECE}_{\sigma^\star} = \sigma^\star

    where K_sigma is the Gaussian kernel reflected at 0 and 1 as often as needed. smECE_sigma does not increase with
    sigma, so the fixed point is unique. There is no parameter to choose. It is a consistent calibration measure: small
    if and only if the predictions are near calibrated ones.

    Each row is shared between the two nearest of 2^16 + 1 nodes, and the smoothing is exact in the cosines of [0, 1];
    time is linear in the rows and nothing is sorted. With spacing h = 2^-16, smECE_sigma is off by at most (h /
    sigma)^2 / 8 times the mean of \|y - p\| (3e-7 at sigma = 0.01) plus about 1e-6 of its own size for the integral; a
    result below h itself is only known to be below h.

    Parameters
    ----------
    data : Predictions, fine BinTable, or y_true
    sigma : float, optional
        Give smECE at this width instead of the fixed point.

    Notes
    -----
    The authors' package `relplot` (1.0.3) counts the end nodes of its grid once where reflection makes them count
    twice. That halves the mass of scores of exactly 0 and 1: with half of the rows at 1, half at 1/2 and no positives
    it gives 0.67 instead of 0.75. It also searches sigma in steps of 0.001.

    References
    ----------
    Błasiok and Nakkiran (2023), Smooth ECE: Principled Reliability Diagrams via Kernel Smoothing.

    Examples
    --------
    >>> smooth_ece([0, 0, 1, 1], [0.1, 0.3, 0.6, 0.8])
    <smECE 0.1778, n=4, reflected Gaussian kernel>
    >>> smooth_ece([0, 0, 1, 1], [0.1, 0.3, 0.6, 0.8], sigma=0.05)
    <smECE 0.2495, n=4, reflected Gaussian kernel, sigma=0.05>
    """
    if sigma is not None and not 0 < sigma < math.inf:
        fail(f"sigma must be a positive number, got {sigma!r}.", ValueError)
    binned = linearly_binned(data, y_prob, needed_by="smooth_ece")
    coefficients = cosines(binned.residual)
    method = "reflected Gaussian kernel"
    if sigma is None:
        value = fixed_point(lambda width: smoothed_size(coefficients, width))
    else:
        value = smoothed_size(coefficients, float(sigma))
        method += f", sigma={sigma:g}"
    details = {"sigma": value if sigma is None else float(sigma), "fixed_point": sigma is None}
    return Estimate(value, name="smECE", method=method, n=binned.n, details=details)


def smoothed_size(coefficients: Floats, sigma: float) -> float:
    """Integral of the absolute value of the function with these cosines, smoothed by a Gaussian of width sigma."""
    size = SIZE if sigma * SIZE <= PER_SIGMA else max(256, 2 ** math.ceil(math.log2(PER_SIGMA / sigma)))
    frequency = np.pi * np.arange(size + 1)
    return _integral_of_size(at_nodes(coefficients[: size + 1] * np.exp(-((sigma * frequency) ** 2) / 2)))


def _integral_of_size(values: Floats) -> float:
    """Integral of the size of a smooth function, from its values times the node spacing, by the trapezoid rule.

    Where the sign changes between a and b, the kink takes away ab / (a + b), and the curvature adds (a + b) / 6.
    """
    sizes = np.abs(values)
    total = float(sizes.sum() - (sizes[0] + sizes[-1]) / 2)
    left = np.flatnonzero(values[:-1] * values[1:] < 0)
    a, b = sizes[left], sizes[left + 1]
    return max(total + float(((a + b) / 6 - a * b / (a + b)).sum()), 0.0)


def fixed_point(falling: Callable[[float], float]) -> float:
    """The x in [0, 1] with falling(x) = x, by false position with the Illinois rule."""
    low, high = 0.0, 1.0
    at_low, at_high = falling(low) - low, falling(high) - high
    if at_low <= 0:
        return low
    if at_high >= 0:
        return high
    middle, last = low, 0.0
    for _ in range(200):
        middle = (low * at_high - high * at_low) / (at_high - at_low)
        at_middle = falling(middle) - middle
        if abs(at_middle) <= 1e-13 or high - low <= 1e-15:
            break
        if at_middle > 0:
            low, at_low = middle, at_middle
            at_high /= 2 if last > 0 else 1
        else:
            high, at_high = middle, at_middle
            at_low /= 2 if last < 0 else 1
        last = at_middle
    return middle


#: Number of intervals between nodes. A power of two, so that the position of a score among the nodes is exact.
#: Derived: nodes are 1.5e-5 apart, a thousandth of the usual bandwidth of a million uniform scores.
SIZE = 2**16


@dataclass(frozen=True, eq=False)
class LinearBinning:
    """Shares of the total weight at the nodes, of all rows and of the positive ones; `effective_n` is Kish's number."""

    population: Floats
    positives: Floats
    n: int
    effective_n: float

    @property
    def position(self) -> Floats:
        """Position of each node."""
        return np.linspace(0.0, 1.0, len(self.population))

    @property
    def residual(self) -> Floats:
        """Share-weighted outcome minus prediction at each node; keeps its total exactly, its mean to 1/SIZE^2."""
        return self.positives - self.position * self.population


def linearly_binned(data: Data, y_prob: Column, *, needed_by: str) -> LinearBinning:
    """Predictions or a fine table, linearly binned: one pass over the rows, no sort."""
    if isinstance(data, BinTable):
        require_fine(data, needed_by=needed_by)
        task = data.task
        parts, n, size = _cell_parts(data), data.n, data.population.effective_n
    else:
        predictions = binary(data, y_prob)
        task = task_of(predictions)
        parts, n = predictions.parts(), len(predictions)
        size = effective_n(parts[0].weight, len(parts[0].key))
        if parts[0].predicted is not parts[0].key:
            fail(f"{needed_by} needs probabilities, got {type(predictions).__name__} predictions.", ValueError)
    population, positives = linear_binning(parts, SIZE)
    total = float(population.sum())
    scale = task.observed_scale(float(positives.sum()), total)
    return LinearBinning(population / total, positives * (scale / total), n, size)


def _cell_parts(cells: BinTable) -> tuple[Rows, ...]:
    """A fine table as rows: negatives (or unlabeled rows) and positives of each cell, each at their mean score."""
    if cells.low.min() < 0 or cells.high.max() > 1:
        fail("The cells must lie in [0, 1]: smoothing with reflection is for probabilities.", ValueError)
    if isinstance(cells.task, Unlabeled):
        population = _cell_rows(cells, cells.weight, cells.predicted, np.zeros(len(cells)), "population")
        return population, _cell_rows(cells, cells.observed, cells.product, np.ones(len(cells)), "positives")
    mass = np.concatenate([cells.weight - cells.observed, cells.observed])
    moment = np.concatenate([cells.predicted - cells.product, cells.product])
    return (_cell_rows(cells, mass, moment, np.repeat([0.0, 1.0], len(cells)), "both"),)


def _cell_rows(cells: BinTable, weight: Floats, moment: Floats, observed: Floats, role: Role) -> Rows:
    some, copies = weight > 0, len(weight) // len(cells)
    low, high = np.tile(cells.low, copies)[some], np.tile(cells.high, copies)[some]
    key = np.clip(moment[some] / weight[some], low, high)
    return Rows(key, key, observed[some], weight[some], role)


#: Rows per chunk, each of which also touches every node: long enough to make that cheap. Speed: benchmarks/smooth.py;
#: no result depends on it but for the rounding of sums.
NODE_CHUNK = 1 << 18

#: Rows, or nodes, of the samples that are worked on at once: they stay in the cache. Speed: benchmarks/smooth.py; no
#: result depends on it.
SAMPLE_NUMBERS = 1 << 16


def linear_binning(parts: tuple[Rows, ...], size: int) -> tuple[Floats, Floats]:
    """Mass and observed mass at the nodes 0, 1/size, ..., 1; each row is shared by the two around it by nearness."""
    sums = np.zeros((4, size + 1))
    for rows in parts:
        if rows.plain_binary:
            sums += _outcome_node_sums(rows.key, rows.observed, size)
        else:
            sums += _weighted_node_sums(rows, size)
    return _shared(sums)


def linear_binning_of_samples(score: Floats, outcome: NDArray[np.int8], size: int) -> tuple[Floats, Floats]:
    """Masses of rows and of positives at the nodes, for each row of these matrices."""
    every, positive = np.empty((2, len(score), size + 1))
    step = max(SAMPLE_NUMBERS // max(score.shape[1], size + 1), 1)
    for start in range(0, len(score), step):
        some = slice(start, start + step)
        part, outcomes = score[some], outcome[some]
        first_node = np.repeat(np.arange(len(part)) * (size + 1), part.shape[1])
        sums = _outcome_node_sums(part.ravel(), outcomes.ravel(), size, len(part), first_node)
        # a score of 1 moves no mass, so none reaches the first node of the next sample
        for whole, masses in zip((every, positive), _shared(sums), strict=True):
            whole[some] = masses.reshape(len(part), size + 1)
    return every, positive


def _shared(sums: Floats) -> tuple[Floats, Floats]:
    """Masses at the nodes, from those of the rows between a node and the next and the parts that move to the next."""
    nodes, moved = sums[:2], sums[2:]
    nodes -= moved
    nodes[:, 1:] += moved[:, :-1]
    return nodes[0], nodes[1]


def _outcome_node_sums(
    score: NDArray[Any],
    outcome: NDArray[np.int8],
    size: int,
    samples: int = 1,
    first_node: NDArray[np.intp] | None = None,
) -> Floats:
    """Mass, observed mass, and both times the fraction beyond the node. Codes that include the outcome need two passes.

    With several samples, their nodes are concatenated, and `first_node` is the first node of each row's sample.
    """
    apart = np.zeros((2, 2 * samples * (size + 1)))
    for rows, node, beyond in _between_nodes(score, size):
        if first_node is not None:
            node += first_node[rows]
        node += node
        node += outcome[rows]
        apart[0] += np.bincount(node, minlength=apart.shape[1])
        apart[1] += np.bincount(node, beyond, apart.shape[1])
    negative, positive = apart[:, 0::2], apart[:, 1::2]
    every = negative + positive
    return np.stack([every[0], positive[0], every[1], positive[1]])


def _weighted_node_sums(rows: Rows, size: int) -> Floats:
    sums = np.zeros((4, size + 1))
    for part, node, beyond in _between_nodes(rows.key, size):
        chunk = rows.take(part)
        weight = np.ones(len(node)) if chunk.weight is None else chunk.weight
        mass = 0 * weight if chunk.role == "positives" else weight
        observed = 0 * weight if chunk.role == "population" else weight * chunk.observed
        for total, values in zip(sums, (mass, observed, mass * beyond, observed * beyond), strict=True):
            total += np.bincount(node, values, size + 1)
    return sums


def _between_nodes(key: NDArray[Any], size: int) -> Iterator[tuple[slice, NDArray[np.intp], Floats]]:
    """Chunks of rows, with the node at or below each row and its distance from that node in units of the spacing."""
    for start in range(0, len(key), NODE_CHUNK):
        rows = slice(start, start + NODE_CHUNK)
        beyond = key[rows] * np.float64(size)
        node = beyond.astype(np.intp)
        beyond -= node
        yield rows, node, beyond


def cosines(masses: Floats) -> Floats:
    """Coefficients of masses on nodes (the last axis) in the cosines of [0, 1], continued evenly to a period of 2.

    Multiplying by the transform of a kernel smooths with every reflection at both ends taken into account.
    """
    doubled = masses.copy()
    doubled[..., [0, -1]] *= 2
    return even_transform(doubled)


def even_transform(values: Floats) -> Floats:
    """The Fourier transform (DCT-I) of values at the nodes, continued evenly to a period of 2."""
    if values.ndim == 1:
        return np.fft.rfft(np.concatenate([values, values[-2:0:-1]])).real
    from scipy.fft import dct  # three times as fast on many rows, but slow to import

    return np.asarray(dct(values, type=1))


def at_nodes(coefficients: Floats) -> Floats:
    """Back from cosines: density times node spacing, to be summed with weights 1/2 at the ends and 1 between."""
    if coefficients.ndim == 1:
        size = len(coefficients) - 1
        return np.fft.irfft(coefficients, 2 * size)[: size + 1]
    from scipy.fft import idct

    return np.asarray(idct(coefficients, type=1))
