"""Calibration error from kernel density estimates of the scores."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from calibrant.estimators.linear_binning import SIZE, linearly_binned
from calibrant.estimators.norms import check_norm, weighted_norm, with_norm
from calibrant.numerics.arrays import Floats
from calibrant.numerics.linear_binning import at_nodes, cosines, even_transform, linear_binning_of_samples
from calibrant.numerics.sorted_samples import SortedSamples
from calibrant.results.estimate import Estimate
from calibrant.results.target import estimates
from calibrant.table.of_data import Data

#: Where the density of the scores is lower than this, the calibration curve is not looked at (as published).
LOWEST_DENSITY = 1e-6

#: Cells between nodes for many samples at once: results agree with those on `SIZE` cells to about 1e-6, if the kernel
#: reaches over more than `_NARROWEST` cells and not around the period. Other samples are put on the finer nodes.
_COARSE, _NARROWEST = 2**12, 48

#: Samples per step, so that a step's matrices stay in the cache.
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
    data: Data, y_prob: ArrayLike | None = None, /, *, bandwidth: float | None = None, norm: float = 1
) -> Estimate:
    r"""Kernel density calibration error, ECE_KDE: no bins, a smoothed calibration curve.

    .. math:: \Bigl(\int_0^1 \lvert x - \hat c(x)\rvert^q \hat f(x)\,dx\Bigr)^{1/q}, \qquad
              \hat c(x) = \frac{\sum_i w_i y_i K_b(x, p_i)}{\sum_i w_i K_b(x, p_i)}, \qquad
              \hat f(x) = \frac1W\sum_i w_i K_b(x, p_i)

    where q is `norm` and K_b the triweight kernel :math:`\tfrac{35}{32}(1 - u^2)^3`, u = (x - p) / 3b, of standard
    deviation b, reflected at 0 and at 1. Rows are shared by the neighbouring two of 2^16 + 1 nodes and convolved by
    FFT; time is linear in the rows and nothing is sorted. Results are resolved to the node spacing, 1.5e-5.

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
    - where there are no scores it repeats the last value; here that part of the range weighs nothing.

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
        message = f"bandwidth must lie in (0, 1], got {bandwidth!r}."
        raise ValueError(message)
    return np.float64(bandwidth)


def _usual_bandwidth(population: Floats, n: float) -> Any:
    """S (2n)^(-1/5), with s the standard deviation of masses on nodes (the last axis)."""
    at = np.linspace(0.0, 1.0, population.shape[-1])
    mean = np.vecdot(population, at)
    return np.sqrt(np.vecdot(population, (at - mean[..., None]) ** 2)) * (2 * n) ** -0.2


def _smoothed_error(population: Floats, positives: Floats, bandwidth: Any, norm: float) -> Floats:
    """The error of shares of all rows and of positives at the nodes, which are the last axis.

    After smoothing, each still adds up to its total; at each node their ratio is the calibration curve.
    """
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
    """The kernel at the nodes 0, ..., `size` on the last axis, the first half of a period that adds up to 1.

    A kernel longer than the period is wrapped around it; one shorter than the spacing leaves the masses as they are.
    """
    reach = np.maximum(3 * size * np.asarray(bandwidth), 1.0)[..., None]
    periods = math.floor((float(reach.max()) + size) / (2 * size))
    kernel = np.zeros(())
    for period in range(-periods, periods + 1):
        offset = np.arange(size + 1) + 2 * size * period
        kernel = kernel + np.maximum(1 - (offset / reach) ** 2, 0.0) ** 3
    total = 2 * kernel.sum(axis=-1, keepdims=True) - kernel[..., :1] - kernel[..., -1:]
    return np.asarray(kernel / total)
