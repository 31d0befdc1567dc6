"""Predictions and outcomes: one class per task, validated once when it is made.

Each class turns itself into `Rows`, the rows of the one table all tasks share:

===================  ======  ==================  ====================
task                 key     predicted           observed
===================  ======  ==================  ====================
Binary, top label    p       p                   y
Gaussian, Samples    sigma   sigma^2             (y - mean)^2
Quantiles            level   level               1 where y <= quantile
PositiveUnlabeled    p       p on the unlabeled  1 on the positives, scaled to the prior
===================  ======  ==================  ====================

The classes of predicted numbers (Gaussian, Quantiles, Samples, Distribution) are in `distributions`.
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Hashable, Sequence
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calibrant.data import validation
from calibrant.data.validation import InvalidPredictions
from calibrant.numerics.arrays import Floats
from calibrant.numerics.rows import Rows

#: Rows of class probabilities may miss a sum of 1 by this much (float32 softmax over a thousand classes does).
SUM_TOLERANCE = 1e-3


class Predictions(ABC):
    """Validated columns of one task, with optional row weights and group (cluster) ids.

    Weights are importance weights: multiplying all of them by the same number changes nothing.

    Examples
    --------
    >>> data = Binary([0, 1, 1], [0.2, 0.7, 0.9], weight=[1, 2, 1])
    >>> isinstance(data, Predictions), len(data), data.weight
    (True, 3, array([1., 2., 1.]))
    """

    #: The columns that have one entry per row, other than weight and group.
    columns: ClassVar[tuple[str, ...]] = ()

    weight: Floats | None
    group: NDArray[Any] | None

    @abstractmethod
    def __len__(self) -> int:
        """Return the number of rows."""

    @abstractmethod
    def rows(self) -> Rows:
        """Return the rows as the table sees them."""

    def parts(self) -> tuple[Rows, ...]:
        """The rows as the table sees them, in one part unless the task has several samples."""
        return (self.rows(),)

    def take(self, rows: NDArray[Any]) -> Self:
        """The given rows, by number (repeats allowed) or mask, without checking them again."""
        some = copy.copy(self)
        for name in (*self.columns, "weight", "group"):
            values = getattr(self, name)
            if values is not None:
                setattr(some, name, values[rows])
        return some

    def __repr__(self) -> str:
        extras = [name for name in ("weight", "group") if getattr(self, name) is not None]
        return f"<{type(self).__name__}, n={len(self):_}{''.join(f', with {name}' for name in extras)}>"

    def _attach(self, weight: ArrayLike | None, group: ArrayLike | None) -> None:
        self.weight = validation.weights("weight", weight, length=len(self))
        self.group = validation.groups("group", group, length=len(self))


class Binary(Predictions):
    """Probabilities of an event, and whether it occurred.

    Parameters
    ----------
    y_true : array-like of 0 and 1, or bool
        The observed outcomes.
    y_prob : array-like in [0, 1]
        The predicted probability that `y_true` is 1.
    weight, group : array-like, optional
        Row weights (not negative), and ids of rows that belong together.
    clip : bool
        Repair probabilities that miss [0, 1] by at most 1e-6 instead of refusing them.

    Examples
    --------
    >>> Binary([0, 1, 1], [0.2, 0.7, 0.9])
    <Binary, n=3>
    >>> Binary([0, 1, 1], [0.2, 0.7, 0.9]).take(np.array([0, 0, 2])).y_prob
    array([0.2, 0.2, 0.9])
    >>> Binary([0, 1, 1], [0.2, 0.7, 1.7])
    Traceback (most recent call last):
    calibrant.data.validation.InvalidPredictions: y_prob must lie in [0, 1], but 1 of 3 rows does not (first: ...
    """

    columns = ("y_true", "y_prob")
    #: Set by `sorted_once`; of no use to other columns.
    _rows: Rows | None = None

    def __init__(
        self,
        y_true: ArrayLike,
        y_prob: ArrayLike,
        *,
        weight: ArrayLike | None = None,
        group: ArrayLike | None = None,
        clip: bool = False,
    ) -> None:
        self.y_prob = validation.probabilities("y_prob", y_prob, clip=clip)
        self.y_true = validation.binary_labels("y_true", y_true, length=len(self))
        self._attach(weight, group)

    def __len__(self) -> int:
        return len(self.y_prob)

    def rows(self) -> Rows:
        """Key and prediction are the probability, the outcome is the label."""
        kept = self._rows
        if kept is not None and kept.key is self.y_prob and kept.observed is self.y_true and kept.weight is self.weight:
            return kept
        return Rows(self.y_prob, self.y_prob, self.y_true, self.weight)

    def sorted_once(self) -> Binary:
        """The same predictions, with rows that are sorted at most once; that takes the memory of a second copy."""
        kept = copy.copy(self)
        kept._rows = self.rows()
        return kept


class Multiclass(Predictions):
    """Probabilities of several classes, and the observed class.

    Parameters
    ----------
    y_true : array-like of class labels
        Whole numbers 0 .. K-1, or members of `classes` (text, numbers).
    y_prob : array-like of shape (n, K)
        One column per class; rows sum to 1.
    classes : sequence, optional
        The labels of the columns. Taken from the columns of a data frame where these are the labels, else 0 .. K-1,
        or, for text labels, the sorted labels where there are K of them.
    weight, group, clip
        As for `Binary`.

    Examples
    --------
    >>> data = Multiclass(["cat", "dog"], [[0.8, 0.2], [0.6, 0.4]], classes=["cat", "dog"])
    >>> data.top_label().y_true, data.top_label().y_prob
    (array([1, 0], dtype=int8), array([0.8, 0.6]))
    """

    columns = ("y_true", "y_prob")

    def __init__(
        self,
        y_true: ArrayLike,
        y_prob: ArrayLike,
        *,
        classes: Sequence[Hashable] | None = None,
        weight: ArrayLike | None = None,
        group: ArrayLike | None = None,
        clip: bool = False,
    ) -> None:
        named = [str(name) for name in getattr(y_prob, "columns", [])]
        matrix = validation.matrix("y_prob", y_prob)
        if matrix.shape[1] < 2:
            message = f"y_prob needs one column per class, got shape {matrix.shape}. For one column use Binary."
            raise InvalidPredictions(message)
        flat = validation.in_unit_interval("y_prob", matrix.ravel(), clip=clip) if clip else None
        self.y_prob = matrix if flat is None else flat.reshape(matrix.shape)
        inside = ((self.y_prob >= 0) & (self.y_prob <= 1)).all(axis=1)
        validation.require("y_prob", self.y_prob, inside, "must lie in [0, 1]")
        sums = self.y_prob.sum(axis=1, dtype=np.float64)
        validation.require("y_prob", self.y_prob, np.abs(sums - 1) <= SUM_TOLERANCE, "must have rows that sum to 1")
        self.y_true, self.classes = class_codes(y_true, matrix.shape[1], classes, named, len(self))
        self._attach(weight, group)

    def __len__(self) -> int:
        return len(self.y_prob)

    def top_label(self) -> Binary:
        """The confidence of the predicted class and whether it was right (the first of equal maxima)."""
        best = self.y_prob.argmax(axis=1)
        return self._binary(best == self.y_true, self.y_prob[np.arange(len(self)), best])

    def one_vs_rest(self) -> dict[Hashable, Binary]:
        """One binary task per class."""
        return {
            name: self._binary(self.y_true == k, np.ascontiguousarray(self.y_prob[:, k]))
            for k, name in enumerate(self.classes)
        }

    def rows(self) -> Rows:
        """Refused: a table has one score per row, so one must say which."""
        message = (
            "Several class probabilities have no single score. Choose what to measure: data.top_label() "
            "(confidence of the predicted class), data.one_vs_rest()[label], calibrant.classwise(estimator, data) "
            "(average over classes), or calibrant.kernel_error(data) and calibrant.calibration_error(data) "
            "(the whole vector)."
        )
        raise InvalidPredictions(message)

    def _binary(self, y_true: ArrayLike, y_prob: NDArray[Any]) -> Binary:
        return Binary(y_true, y_prob, weight=self.weight, group=self.group)


def binary(data: Predictions | ArrayLike, y_prob: ArrayLike | None) -> Predictions:
    """`data` itself if it is a task, else the binary task of (y_true, y_prob)."""
    if isinstance(data, Predictions):
        if y_prob is not None:
            message = "Give either predictions or (y_true, y_prob), not both."
            raise TypeError(message)
        return data
    if y_prob is None:
        message = "Give predictions, e.g. Binary(y_true, y_prob), or both y_true and y_prob."
        raise TypeError(message)
    return Binary(data, y_prob)


def class_codes(
    y_true: ArrayLike,
    size: int,
    classes: Sequence[Hashable] | None,
    named: list[str],
    length: int,
    *,
    name: str = "y_true",
) -> tuple[NDArray[np.intp], tuple[Hashable, ...]]:
    """Labels as column numbers, and the labels of the columns."""
    labels = validation.as_array(name, y_true)
    labels = labels[:, 0] if labels.ndim == 2 and labels.shape[1] == 1 else labels
    if labels.shape != (length,):
        message = f"{name} has shape {labels.shape}, expected {(length,)}."
        raise InvalidPredictions(message)
    text = labels.dtype.kind in "US"
    if classes is None:
        distinct = sorted(set(labels.tolist())) if text else []
        if text and set(distinct) <= set(named):
            classes = named
        elif text and len(distinct) == size:
            classes = distinct
        elif text:
            message = f"{name} holds {len(distinct)} different labels for {size} columns: pass classes=[...]."
            raise InvalidPredictions(message)
        else:
            classes = range(size)
    if len(classes) != size or len(set(classes)) != size:
        message = f"classes must name each of the {size} columns of y_prob once, got {list(classes)}."
        raise InvalidPredictions(message)
    code = {label: k for k, label in enumerate(classes)}
    values, inverse = np.unique(labels, return_inverse=True)
    lookup = np.array([code.get(value, -1) for value in values.tolist()], dtype=np.intp)
    codes = lookup[inverse.reshape(-1)]
    known = codes >= 0
    if not known.all():
        first = int(np.argmin(known))
        message = (
            f"{name} must be one of the {size} classes, but {int((~known).sum())} of {length} rows are not "
            f"(first: {name}[{first}] = {labels[first]!r})."
        )
        raise InvalidPredictions(message)
    return codes, tuple(classes)
