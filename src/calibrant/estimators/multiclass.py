"""Binary estimators on several classes."""

from __future__ import annotations

from collections.abc import Callable

from numpy.typing import ArrayLike

from calibrant.data.predictions import Binary, Multiclass, Predictions
from calibrant.results.estimate import Estimate
from calibrant.results.target import Target, estimates
from calibrant.table.bintable import BinTable


@estimates("classwise mean")
def classwise(
    estimator: Callable[[Binary], Estimate], data: Multiclass | ArrayLike, y_prob: ArrayLike | None = None, /
) -> Estimate:
    r"""Average of a binary estimator over classes, one against the rest.

    .. math:: \frac1K\sum_{k=1}^K \mathrm{estimate}(1[Y = k], p_k)

    Parameters
    ----------
    estimator : callable
        Estimator of a binary task; use `functools.partial` to configure it.
    data : Multiclass, or y_true
        What to measure; with plain labels, `y_prob` of shape (n, K) comes next.

    Returns
    -------
    Estimate
        ``details["classes"]`` holds the value of each class.

    References
    ----------
    Kull, Perello-Nieto, Kängsepp, Silva Filho, Song, Flach (2019), Beyond temperature scaling, section 2.

    Examples
    --------
    >>> import calibrant as cal
    >>> cal.classwise(cal.ece, [0, 1, 2], [[0.8, 0.1, 0.1], [0.1, 0.8, 0.1], [0.1, 0.1, 0.8]])
    <Classwise ECE (L1) 0.1333, n=3, EqualMass(n_bins=15), 3 classes>
    """
    task = _multiclass(data, y_prob)
    parts = {name: estimator(one) for name, one in task.one_vs_rest().items()}
    first = next(iter(parts.values()))
    return Estimate(
        sum(parts.values()) / len(parts),
        name=f"Classwise {first.name}",
        method=f"{first.method}, {len(parts)} classes",
        n=len(task),
        target=_mean_target(first),
        details={"classes": {str(name): part.value for name, part in parts.items()}},
    )


def _mean_target(one: float) -> Target:
    """The mean over classes, with the norm where each class gives an estimate of its true error."""
    inner = getattr(one, "target", None)
    return Target("classwise mean", inner.norm if inner is not None and inner.quantity == "true error" else None)


def _multiclass(data: Multiclass | ArrayLike, y_prob: ArrayLike | None) -> Multiclass:
    """`data` itself if it is multiclass, else the task of (y_true, y_prob)."""
    if isinstance(data, Multiclass):
        if y_prob is not None:
            message = "Give either predictions or (y_true, y_prob), not both."
            raise TypeError(message)
        return data
    if isinstance(data, Predictions | BinTable):
        message = f"classwise needs Multiclass predictions, got {type(data).__name__}."
        raise TypeError(message)
    if y_prob is None:
        message = "Give predictions, Multiclass(y_true, y_prob), or both y_true and y_prob."
        raise TypeError(message)
    return Multiclass(data, y_prob)
