"""Calibration error from kernel density estimates of the scores."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from calibrant.estimators.common import Data, check_norm, weighted_norm, with_norm
from calibrant.estimators.linear_binning import SIZE, Nodes, at_nodes, cosines, on_nodes
from calibrant.numerics.arrays import Floats
from calibrant.results.estimate import Estimate
from calibrant.results.target import estimates

#: Where the density of the scores is lower than this, the calibration curve is not looked at (as published).
LOWEST_DENSITY = 1e-6


@estimates("true error")
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
    if bandwidth is not None and not 0 < bandwidth <= 1:
        message = f"bandwidth must lie in (0, 1], got {bandwidth!r}."
        raise ValueError(message)
    nodes = on_nodes(data, y_prob, needed_by="kde_ece")
    width = _usual_bandwidth(nodes) if bandwidth is None else float(bandwidth)
    density, positives = _smoothed(nodes, width)
    some = density * SIZE > LOWEST_DENSITY
    density, positives, at = density[some], positives[some], nodes.at[some]
    curve = np.clip(positives / density, 0.0, 1.0)
    value = weighted_norm(at - curve, density / density.sum(), norm)
    method = f"triweight kernel, bandwidth={width:.4g}"
    return Estimate(value, name=with_norm("ECE_KDE", norm), method=method, n=nodes.n, details={"bandwidth": width})


def _usual_bandwidth(nodes: Nodes) -> float:
    mean = float(nodes.population @ nodes.at)
    spread = math.sqrt(float(nodes.population @ (nodes.at - mean) ** 2))
    return spread * (2 * nodes.worth) ** -0.2


def _smoothed(nodes: Nodes, bandwidth: float) -> tuple[Floats, Floats]:
    """Masses of all rows and of positives at the nodes after smoothing; each still adds up to its total."""
    kernel = np.fft.rfft(_triweight(bandwidth)).real
    both = [at_nodes(cosines(masses) * kernel) for masses in (nodes.population, nodes.positives)]
    for masses in both:
        masses[[0, -1]] /= 2
    return both[0], both[1]


def _triweight(bandwidth: float) -> Floats:
    """The kernel at the 2 SIZE nodes of one period of reflected scores, adding up to 1.

    A kernel longer than the period is wrapped around it; one shorter than the spacing leaves the nodes as they are.
    """
    reach = 3 * bandwidth * SIZE
    offset = np.arange(-math.floor(reach), math.floor(reach) + 1)
    values = np.maximum(1 - (offset / reach) ** 2, 0.0) ** 3 if reach >= 1 else np.ones(1)
    return np.bincount(offset % (2 * SIZE), values / values.sum(), 2 * SIZE).astype(np.float64, copy=False)
