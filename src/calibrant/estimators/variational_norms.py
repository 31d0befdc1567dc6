r"""Norms, proper losses and distances of the variational estimator.

Each turns a predicted probability f, a recalibrated one g and the outcome y into one contribution, whose mean has the
calibration error as its expectation when g is the true calibration map, and less for any other map that was fitted
on other rows:

=============  ==================================================  ===========================================
`norm`         contribution                                        calibration error
=============  ==================================================  ===========================================
p >= 1, inf    :math:`\langle u_p(g - f), y - f\rangle`            :math:`E\lVert f - E[Y|f]\rVert_p`
p >= 1, d = 1  :math:`u_p(g - f)\,(y - f)`                         :math:`(E\lvert f - E[Y|f]\rvert^p)^{1/p}`
``"squared"``  :math:`\lVert f - y\rVert^2 - \lVert g - y\rVert^2` :math:`E\lVert f - E[Y|f]\rVert_2^2`
``"kl"``       :math:`\log g_y - \log f_y`                         :math:`E\,KL(E[Y|f] \Vert f)`
`Distance`     :math:`\phi_f(g) + \langle s_f(g), y - g\rangle`    :math:`E\,\phi_f(E[Y|f])`
=============  ==================================================  ===========================================

where u_p(d) is the gradient of the p-norm at d, and zero at zero: of the vector of a row for multiclass data, and of
the function under the rows of a fold for one number (d = 1; see `function_gradient`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from calibrant.estimators.proper_scores import floored
from calibrant.numerics.arrays import Floats


@dataclass(frozen=True)
class Distance:
    r"""A user-defined convex distance from the predicted probability (Proposition 2 of the paper).

    For every predicted f, :math:`q \mapsto \phi_f(q)` must be convex with :math:`\phi_f(f) = 0` as its minimum, and
    `grad` a subgradient of it that is zero at q = f (up to a multiple of the vector of ones, for multiclass data). Both
    are checked at the data's own probabilities when the distance is used.

    Parameters
    ----------
    phi : callable (f, q) -> array (n,)
        `f` and `q` have shape (n, d): d classes, or one column P(Y = 1) for binary predictions.
    grad : callable (f, q) -> array (n, d)
        Derivative of `phi` by q.
    name : str
    bound : float, optional
        The largest size of a contribution, :math:`\lvert\phi_f(q) + \langle s_f(q), y - q\rangle\rvert`, if known:
        the finite-sample lower confidence bound needs it.

    Examples
    --------
    Over-forecasting only:

    >>> import numpy as np
    >>> over = Distance(lambda f, q: np.maximum(f - q, 0)[:, 0], lambda f, q: -(q < f).astype(float), name="over")
    >>> over.name
    'over'
    """

    phi: Callable[[Floats, Floats], Floats]
    grad: Callable[[Floats, Floats], Floats]
    name: str = "distance"
    bound: float | None = None


#: How far from 0 a distance of a prediction from itself may be, by rounding.
#: Derived: the root of the rounding of double precision, which differences such as 1 - sqrt(1 - x) have.
TOLERANCE = 1e-8

Norm = float | Literal["squared", "kl"] | Distance
"""An exponent of at least 1 (infinity allowed), a proper loss by name, or a `Distance`."""


def checked(norm: Norm) -> Norm:
    """`norm` itself if it is one, an exponent as a float."""
    if isinstance(norm, Distance) or (isinstance(norm, str) and norm in ("squared", "kl")):
        return norm
    if isinstance(norm, (int, float, np.integer, np.floating)) and not isinstance(norm, bool) and norm >= 1:
        return float(norm)
    message = f"norm must be a number of at least 1, math.inf, 'squared', 'kl' or a Distance, got {norm!r}."
    raise ValueError(message)


def finite_norm(norm: float) -> float:
    """`norm` itself, unless it is infinite: no mean over rows is the largest gap."""
    if math.isinf(norm):
        message = "The largest gap of a single probability is not a mean over rows: use mce, or a finite norm."
        raise ValueError(message)
    return float(norm)


def label(norm: Norm) -> str:
    """The norm in words: L1, L2, Linf, squared, KL, or the name of the distance."""
    if isinstance(norm, Distance):
        return norm.name
    if isinstance(norm, str):
        return "KL" if norm == "kl" else norm
    return f"L{norm:g}"


def contributions(
    norm: Norm, predicted: Floats, recalibrated: Floats, outcome: Floats, *, floor: float = 0.0
) -> Floats:
    """One contribution per row; all arrays have shape (n, d), with d = 1 for binary. Rows with g = f give zero.

    With d = 1 every exponent gives the contribution to E|f - E[Y|f]|; `function_gradient` has those to other norms.

    `floor` is that of the probabilities in log scores, see `proper_scores.floored`; it concerns "kl" only.
    """
    if isinstance(norm, Distance):
        _require_distance(norm, predicted)
        _require_convex(norm, predicted, recalibrated)
        distance, slope = _evaluated(norm, predicted, recalibrated)
        return distance + np.einsum("nd,nd->n", slope, outcome - recalibrated)
    if norm == "squared":
        return np.einsum("nd,nd->n", predicted - recalibrated, predicted + recalibrated - 2 * outcome)
    if norm == "kl":
        return _log_gain(floored(predicted, floor), floored(recalibrated, floor), outcome)
    return np.einsum("nd,nd->n", norm_gradient(recalibrated - predicted, float(norm)), outcome - predicted)


def _evaluated(norm: Distance, predicted: Floats, q: Floats) -> tuple[Floats, Floats]:
    """The distance and its derivative at `q`, in the shapes that are promised."""
    distance = np.asarray(norm.phi(predicted, q), dtype=np.float64)
    slope = np.asarray(norm.grad(predicted, q), dtype=np.float64)
    if distance.shape != (len(predicted),):
        message = f"Distance {norm.name!r}: phi must return one number per row, got shape {distance.shape}."
        raise ValueError(message)
    if slope.shape != predicted.shape:
        message = f"Distance {norm.name!r}: grad must return an array of shape {predicted.shape}, got {slope.shape}."
        raise ValueError(message)
    return distance, slope


def _require_distance(norm: Distance, predicted: Floats) -> None:
    """Refuse what is not 0 where the predictions are right: the conditions of Proposition 2 at q = f."""
    inside = predicted[((predicted > 0) & (predicted < 1)).all(axis=1)]  # a logarithm has no derivative at 0
    distance, slope = _evaluated(norm, inside, inside)
    if len(inside) and not np.abs(distance).max() <= TOLERANCE:
        first = int(np.argmax(~(np.abs(distance) <= TOLERANCE)))
        message = (
            f"Distance {norm.name!r}: phi(f, f) must be 0, the distance of a prediction from itself; "
            f"at f = {inside[first].tolist()} it is {distance[first]:.6g}."
        )
        raise ValueError(message)
    if predicted.shape[1] > 1:  # probabilities add up to 1, so that a multiple of the vector of ones does nothing
        slope = slope - slope.mean(axis=1, keepdims=True)
    if len(inside) and not np.abs(slope).max() <= TOLERANCE:
        first = int(np.argmax(~(np.abs(slope) <= TOLERANCE).all(axis=1)))
        message = (
            f"Distance {norm.name!r}: grad(f, f) must be 0 (for multiclass data, a multiple of the vector of ones); "
            f"at f = {inside[first].tolist()} it is {slope[first].tolist()}."
        )
        raise ValueError(message)


def _require_convex(norm: Distance, predicted: Floats, recalibrated: Floats) -> None:
    """Refuse what is seen not to be convex: a distance below the tangent of another point.

    The points of each row are its recalibrated probability and predicted ones of other rows.
    """
    third = len(predicted) // 3
    points = [recalibrated, *(np.roll(predicted, shift, axis=0) for shift in (third + 1, 2 * third + 1))]
    inner = np.logical_and.reduce([((q > 0) & (q < 1)).all(axis=1) for q in (predicted, *points)])
    f, points = predicted[inner], [q[inner] for q in points]
    found = [_evaluated(norm, f, q) for q in points]
    for (there, _), to in zip(found, points, strict=True):
        for (here, slope), at in zip(found, points, strict=True):
            tangent = here + np.einsum("nd,nd->n", slope, to - at)
            below = there < tangent - TOLERANCE * (1 + np.abs(tangent))
            if below.any():
                first = int(np.argmax(below))
                message = (
                    f"Distance {norm.name!r}: phi must be convex in q, and grad its derivative; at "
                    f"f = {f[first].tolist()}, phi is {there[first]:.6g} at q = {to[first].tolist()}, below "
                    f"{tangent[first]:.6g} of the tangent at q = {at[first].tolist()}."
                )
                raise ValueError(message)


def norm_gradient(d: Floats, p: float) -> Floats:
    """Gradient of the p-norm at each row of `d`, zero where the row is; the first of equal maxima for infinity."""
    if d.shape[1] == 1 or p == 1:
        return np.sign(d)
    size = np.abs(d)
    largest = size.max(axis=1, keepdims=True)
    if np.isinf(p):
        chosen = np.arange(d.shape[1]) == size.argmax(axis=1)[:, None]
        return np.where(chosen, np.sign(d), 0.0)
    ratio = size / np.where(largest > 0, largest, 1.0)  # in [0, 1]: no power under- or overflows
    length = (ratio**p).sum(axis=1, keepdims=True) ** ((p - 1) / p)
    return np.sign(d) * ratio ** (p - 1) / np.where(length > 0, length, 1.0)


def function_gradient(d: Floats, p: float, weight: Floats, fold: NDArray[np.intp]) -> Floats:
    r"""Gradient of the p-norm of a function at its values `d`, under the weights of each fold; zero where d is.

    .. math:: u_i = \operatorname{sign}(d_i)\,|d_i|^{p-1} / (\mathrm{mean}_k |d|^p)^{(p-1)/p}

    with the mean over the fold k of row i. By Hölder's inequality, :math:`\mathrm{mean}_k(u\,e)` is at most the
    p-norm of e for every e, and equal to it for e = d: with u from other rows, the mean of u (y - f) has an
    expectation of at most the p-norm of the gap.
    """
    if p == 1:
        return np.sign(d)
    size = np.abs(d)
    ratio = size / (size.max() or 1.0)  # in [0, 1]: no power overflows
    total = np.bincount(fold, weight)
    mean = np.bincount(fold, weight * ratio**p) / np.where(total > 0, total, 1.0)
    length = np.where(mean > 0, mean, np.inf) ** ((p - 1) / p)
    return np.asarray(np.sign(d) * ratio ** (p - 1) / length[fold])


def size_bound(norm: Norm, columns: int) -> float | None:
    """The largest possible size of a contribution, None if there is none."""
    if isinstance(norm, Distance):
        return norm.bound
    if norm == "kl":
        return None
    if norm == "squared":
        return 1.0 if columns == 1 else 2.0
    return 1.0 if columns == 1 else 2.0 ** (1 / float(norm))


def _log_gain(predicted: Floats, recalibrated: Floats, outcome: Floats) -> Floats:
    """Gain in log score: infinite where an outcome of predicted probability 0 occurred, zero where g = f."""
    if predicted.shape[1] == 1:
        predicted, recalibrated, outcome = (np.hstack([1 - a, a]) for a in (predicted, recalibrated, outcome))
    with np.errstate(divide="ignore", invalid="ignore"):
        gain = np.where((outcome > 0) & (predicted != recalibrated), np.log(recalibrated) - np.log(predicted), 0.0)
        return np.einsum("nd,nd->n", outcome, gain)
