"""Binary estimators on several classes."""

from __future__ import annotations

from collections.abc import Callable

from calibrant.data.predictions import Binary, Multiclass
from calibrant.results.estimate import Estimate


def classwise(estimator: Callable[[Binary], Estimate], data: Multiclass) -> Estimate:
    r"""Average of a binary estimator over classes, one against the rest.

    .. math:: \frac1K\sum_{k=1}^K \mathrm{estimate}(1[Y = k], p_k)

    Use `functools.partial` to configure the estimator. ``details["classes"]`` holds the value of each class.

    References
    ----------
    Kull, Perello-Nieto, Kängsepp, Silva Filho, Song, Flach (2019), Beyond temperature scaling, section 2.

    Examples
    --------
    >>> import calibrant as cal
    >>> data = cal.Multiclass([0, 1, 2], [[0.8, 0.1, 0.1], [0.1, 0.8, 0.1], [0.1, 0.1, 0.8]])
    >>> cal.classwise(cal.ece, data)
    <Classwise ECE (L1) 0.1333, n=3, EqualMass(n_bins=15), 3 classes>
    """
    if not isinstance(data, Multiclass):
        message = f"classwise needs Multiclass predictions, got {type(data).__name__}."
        raise TypeError(message)
    parts = {name: estimator(task) for name, task in data.one_vs_rest().items()}
    first = next(iter(parts.values()))
    return Estimate(
        sum(parts.values()) / len(parts),
        name=f"Classwise {first.name}",
        method=f"{first.method}, {len(parts)} classes",
        n=len(data),
        details={"classes": {str(name): part.value for name, part in parts.items()}},
    )
