"""Binary estimators on multiclass data, averaged over the classes."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calibrant.data.predictions import Binary, Multiclass, Predictions
from calibrant.data.validation import SUM_TOLERANCE, fail
from calibrant.numerics.arrays import Codes
from calibrant.numerics.binned_sums import checked_class_sums, unit_bins
from calibrant.results.estimate import Estimate
from calibrant.results.target import Target, batched, estimates
from calibrant.table.binning import EqualWidth, SampleBins
from calibrant.table.bintable import BinTable


@estimates("classwise mean")
def classwise(
    estimator: Callable[..., Estimate],
    data: Multiclass | ArrayLike,
    y_prob: ArrayLike | None = None,
    /,
    **options: Any,
) -> Estimate:
    r"""Average of a binary estimator over classes, one against the rest.

    .. math:: \frac1K\sum_{k=1}^K \mathrm{estimate}(1[Y = k], p_k)

    Parameters
    ----------
    estimator : callable
        Estimator of a binary task.
    data : Multiclass, or y_true (then `y_prob` of shape (n, K))
    **options
        Options of the estimator, e.g. ``norm=2``.

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
    estimator = partial(estimator, **options) if options else estimator
    if (found := _in_one_pass(estimator, data, y_prob)) is not None:
        return found
    task = _multiclass(data, y_prob)
    parts = {name: estimator(one) for name, one in task.one_vs_rest().items()}
    first = next(iter(parts.values()))
    return _mean(first, {str(name): part.value for name, part in parts.items()}, len(task))


def _mean(first: Estimate, values: dict[str, float], n: int) -> Estimate:
    """The mean over classes, in the words of the estimate of one; with its norm if that is of a true error."""
    inner = getattr(first, "target", None)
    return Estimate(
        sum(values.values()) / len(values),
        name=f"Classwise {first.name}",
        method=f"{first.method}, {len(values)} classes",
        n=n,
        target=Target("classwise mean", inner.norm if inner is not None and inner.quantity == "true error" else None),
        details={"classes": values},
    )


def _in_one_pass(
    estimator: Callable[[Binary], Estimate], data: Multiclass | ArrayLike, y_prob: ArrayLike | None
) -> Estimate | None:
    """All classes in one pass over the matrix that also checks it, for bins of equal width; None if it takes more."""
    every = batched(estimator)
    bins = every.keywords.get("bins") if isinstance(every, partial) else None
    plain = _plain(data, y_prob) if every is not None and isinstance(bins, EqualWidth) else None
    n_bins = unit_bins(bins.edges) if isinstance(bins, EqualWidth) else None
    if every is None or plain is None or n_bins is None:
        return None
    codes, matrix, names = plain
    sums = checked_class_sums(matrix, codes, n_bins, SUM_TOLERANCE)
    if sums is None:
        return None
    count, predicted, observed = sums
    values = every(SampleBins(count, predicted, observed, len(matrix)))
    one = estimator(Binary.borrowing(codes[:1] == 0, matrix[:1, 0].copy()))  # for its words, the same for all rows
    return _mean(one, {str(name): float(value) for name, value in zip(names, values, strict=True)}, len(matrix))


def _plain(
    data: Multiclass | ArrayLike, y_prob: ArrayLike | None
) -> tuple[Codes, NDArray[Any], Sequence[Hashable]] | None:
    """Codes, probabilities and labels of unweighted predictions, which need not be checked yet; None for all others."""
    if isinstance(data, Multiclass) and y_prob is None and data.weight is None and data.codes is not None:
        return data.codes, data.y_prob, data.classes
    if type(data) is not np.ndarray or type(y_prob) is not np.ndarray or data.ndim != 1 or data.dtype.kind not in "iu":
        return None
    if y_prob.ndim != 2 or len(y_prob) != len(data) or not len(data) or y_prob.shape[1] < 2:
        return None
    return data, y_prob, range(y_prob.shape[1])


def _multiclass(data: Multiclass | ArrayLike, y_prob: ArrayLike | None) -> Multiclass:
    """`data` itself if it is multiclass, else the task of (y_true, y_prob)."""
    if isinstance(data, Multiclass):
        if y_prob is not None:
            fail("Give either predictions or (y_true, y_prob), not both.", TypeError)
        return data
    if isinstance(data, Predictions | BinTable):
        fail(f"classwise needs Multiclass predictions, got {type(data).__name__}.", TypeError)
    if y_prob is None:
        fail("Give predictions, Multiclass(y_true, y_prob), or both y_true and y_prob.", TypeError)
    return Multiclass(data, y_prob)
