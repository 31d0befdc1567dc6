"""Predictions and outcomes: one class per task, validated once when it is made.

Each class turns itself into `Rows`, the rows of the one table all tasks share; see docs/architecture.md. The classes of
predicted numbers (Gaussian, Quantiles, Samples, Distribution) are in `forecasts`.
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Self, TypedDict, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calibrant.data import groups, validation
from calibrant.data.labels import class_codes, indicator_labels, ordered_columns, positive_labels
from calibrant.data.validation import Top, column_names, fail, frozen
from calibrant.numerics.arrays import Floats
from calibrant.numerics.rows import Rows, row_blocks

Column = ArrayLike | None
Event = TypeVar("Event", bound="Binary")

#: What to say where outcomes must be known, not only how probable they are.
SOFT = (
    "The labels are probabilities of classes, but what is asked for needs the observed class of each row. These "
    "measures take them: brier, log_loss, and ece and mce of data.top_label(), data.one_vs_rest()[label] or classwise."
)


class Predictions(ABC):
    """Validated columns of one task, with optional row weights and group (cluster) ids.

    Weights are importance weights: multiplying all of them by the same number changes nothing. Rows whose group is
    missing are one group, "(missing)".

    The columns are read-only. A writable array is copied, so that changing it afterwards does not change a result; a
    read-only array (Arrow, a memory map opened for reading) is not. Functions that take plain arrays, such as
    ``ece(y_true, y_prob)``, never copy them.

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
    #: The index of what was given as pandas objects, to which groups given later and other models must be aligned.
    _index: Any = None
    #: The power of 2^512 that the weights were divided by.
    _weight_unit: int = 0

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
        some._index = None if self._index is None else self._index[rows]
        return some

    def row_groups(self, by: ArrayLike | None = None) -> tuple[list[Any], NDArray[np.intp]]:
        """The names of the groups, and the number of each row's; those of `by`, or else of the predictions' own group.

        >>> Binary([0, 1, 1], [0.2, 0.7, 0.9]).row_groups(["SE", None, "DK"])
        (['DK', 'SE', '(missing)'], array([1, 2, 0]))
        """
        chosen = self.group if by is None else by
        if chosen is None:
            fail("Groups are needed: pass by=... (the group of each row), or predictions made with group=....")
        self.require_same_rows(by=by)
        return groups.group_names(chosen, length=len(self))

    def require_same_rows(self, /, **columns: Any) -> None:
        """Refuse pandas objects whose index is not that of the predictions, where these were pandas objects too."""
        remedy = "e.g. {name}.loc[y_true.index], or pass {name}.to_numpy() to pair them by position"
        for name, values in columns.items():
            validation.require_same_index([("predictions", self._index), (name, values)], remedy=remedy)

    def __repr__(self) -> str:
        extras = [name for name in ("weight", "group") if getattr(self, name) is not None]
        return f"<{type(self).__name__}, n={len(self):_}{''.join(f', with {name}' for name in extras)}>"

    def _attach(self, weight: ArrayLike | None, group: ArrayLike | None) -> None:
        self.weight, self._weight_unit = validation.weights_and_unit("weight", weight, length=len(self))
        self.group = None if group is None else groups.groups("group", group, length=len(self))

    def _align(self, **columns: Any) -> None:
        """Refuse pandas objects with different indexes; keep the one they have."""
        self._index = validation.require_aligned(**columns)

    def _of_rows_of(self, other: Predictions) -> Self:
        """These predictions, whose rows and weights are those of `other`."""
        self._index, self._weight_unit = other._index, other._weight_unit
        return self

    def _freeze(self) -> None:
        """Make the columns read-only, and copies where others could write to them."""
        for name, values in vars(self).items():
            if isinstance(values, np.ndarray):
                setattr(self, name, frozen(values))

    def __copy__(self) -> Self:
        """The same columns, also where they are borrowed."""
        same = type(self).__new__(type(self))
        vars(same).update(vars(self))
        return same

    def __setstate__(self, state: dict[str, Any]) -> None:
        """After unpickling and deep copies the columns are read-only as before."""
        vars(self).update(state)
        for values in state.values():
            if isinstance(values, np.ndarray):
                values.flags.writeable = False


class Binary(Predictions):
    """Probabilities of an event, and whether it occurred.

    Parameters
    ----------
    y_true : array-like of 0 and 1, or bool, or two labels of which `positive` is one
        The observed outcomes.
    y_prob : array-like in [0, 1]
        The predicted probability that `y_true` is 1 (or `positive`).
    logits : array-like, optional
        Instead of `y_prob`: its log-odds.
    positive : label, optional
        Which of two labels (text or numbers) is the event.
    weight, group : array-like, optional
        Row weights (not negative), and ids of rows that belong together.
    clip : bool
        Clip probabilities that lie outside [0, 1] by at most 1e-6, instead of raising an error.

    Examples
    --------
    >>> Binary([0, 1, 1], [0.2, 0.7, 0.9])
    <Binary, n=3>
    >>> Binary(["ok", "fraud", "fraud"], [0.2, 0.7, 0.9], positive="fraud").y_true
    array([0, 1, 1], dtype=int8)
    >>> Binary([0, 1], logits=[0.0, 30.0]).y_prob.round(3)
    array([0.5, 1. ])
    >>> Binary([0, 1, 1], [0.2, 0.7, 0.9]).take(np.array([0, 0, 2])).y_prob
    array([0.2, 0.2, 0.9])
    >>> Binary([0, 1, 1], [0.2, 0.7, 1.7])
    Traceback (most recent call last):
    calibrant.data.validation.InvalidPredictions: y_prob must lie in [0, 1], but 1 of 3 rows does not (first: ...
    """

    columns = ("outcomes", "label_shares", "y_prob")
    #: 0 or 1 per row; None where labels are probabilities.
    outcomes: NDArray[np.int8] | None = None
    #: The probability of the event where labels are such, which only those of `Multiclass` data can be, else None.
    label_shares: Floats | None = None
    #: Set by `sorted_once`; of no use to other columns.
    _rows: Rows | None = None
    #: What the columns are called where they are given, and what to say of numbers that are no probabilities.
    _given: ClassVar[tuple[str, ...]] = ("y_true", "y_prob", " If these are log-odds, pass Binary(y_true, logits=...).")

    def __init__(
        self,
        y_true: ArrayLike,
        y_prob: ArrayLike | None = None,
        *,
        logits: ArrayLike | None = None,
        positive: Hashable | None = None,
        weight: ArrayLike | None = None,
        group: ArrayLike | None = None,
        clip: bool = False,
    ) -> None:
        self._align(y_true=y_true, y_prob=y_prob, logits=logits, weight=weight, group=group)
        if (y_prob is None) == (logits is None):
            fail("Give either y_prob, the probability of the event, or logits=, its log-odds.")
        given: Any = y_prob if logits is None else validation.of_log_odds("logits", logits)
        self._check(y_true, given, positive=positive, clip=clip)
        self._attach(weight, group)
        self._freeze()

    @classmethod
    def borrowing(cls, y_true: ArrayLike, y_prob: ArrayLike, *, weight: Column = None, group: Column = None) -> Self:
        """The same without copies, for use while nobody changes the arrays: within one call, or of arrays made anew."""
        made = cls.__new__(cls)
        made._align(y_true=y_true, y_prob=y_prob, weight=weight, group=group)
        made._check(y_true, y_prob)
        made._attach(weight, group)
        return made

    def _check(self, y_true: Any, y_prob: Any, *, positive: Hashable | None = None, clip: bool = False) -> None:
        truth, name, remedy = self._given
        self.y_prob = validation.probabilities(name, y_prob, clip=clip, remedy=remedy)
        if positive is None:
            self.outcomes = validation.binary_labels(truth, y_true, length=len(self))
        else:
            self.outcomes = positive_labels(truth, y_true, positive, length=len(self))

    @property
    def y_true(self) -> NDArray[np.int8]:
        """The observed outcomes, 0 or 1."""
        if self.outcomes is None:
            fail(SOFT)
        return self.outcomes

    def __len__(self) -> int:
        return len(self.y_prob)

    def linear_rows(self) -> Rows:
        """The rows for measures that are linear in the outcomes, which may then be probabilities themselves."""
        if self.label_shares is None:
            return self.rows()
        weight = np.ones(len(self)) if self.weight is None else self.weight
        return Rows(self.y_prob, self.y_prob, self.label_shares, weight)

    def rows(self) -> Rows:
        """Key and prediction are the probability, the outcome is the label."""
        kept = self._rows
        if kept is not None and kept.key is self.y_prob and kept.observed is self.y_true and kept.weight is self.weight:
            return kept
        return Rows(self.y_prob, self.y_prob, self.y_true, self.weight)

    def sorted_once(self) -> Self:
        """The same predictions, with rows that are sorted at most once; that takes the memory of a second copy."""
        kept = copy.copy(self)
        kept._rows = None if self.outcomes is None else self.rows()
        return kept


class Confidence(Binary):
    """The confidence of a model in each of its answers, and whether the answer was right.

    The event is "this answer is right". A confidence of 0.1 therefore means *probably wrong*, not a confident
    prediction of the opposite: `risk_coverage` ranks by the confidence itself, `overconfidence` means a confidence
    above the accuracy on either side of 1/2, `accuracy` is the mean of `correct`, and reports say over- and
    under-confident. Every other estimator, interval and test gives the same numbers as for
    ``Binary(correct, confidence)``. Two models that answered the same questions each have their own outcomes, and
    `compare` pairs them question by question.

    Parameters
    ----------
    correct : array-like of 0 and 1, or bool, or two labels of which `positive` is one
        Whether each answer was right.
    confidence : array-like in [0, 1]
        The stated or computed probability that it is.
    positive : label, optional
        Which of two labels (text or numbers) means right, e.g. ``"C"``.
    weight, group : array-like, optional
        Row weights (not negative), and ids of rows that belong together, e.g. a question that was asked several times.
    clip : bool
        As for `Binary`.

    Examples
    --------
    >>> import calibrant as cal
    >>> data = Confidence([1, 0, 1, 0], [0.9, 0.2, 0.3, 0.4])
    >>> data, data.correct, data.confidence
    (<Confidence, n=4>, array([1, 0, 1, 0], dtype=int8), array([0.9, 0.2, 0.3, 0.4]))
    >>> cal.ece(data) == cal.ece(cal.Binary([1, 0, 1, 0], [0.9, 0.2, 0.3, 0.4]))
    True
    >>> cal.risk_coverage(data).risk.round(2)  # the answers of confidence 0.4 and 0.2 are wrong
    array([0.  , 0.5 , 0.33, 0.5 ])
    """

    _given = "correct", "confidence", " Confidences in percent: divide them by 100; log-probabilities: numpy.exp(...)."

    def __init__(
        self,
        correct: ArrayLike,
        confidence: ArrayLike,
        *,
        positive: Hashable | None = None,
        weight: ArrayLike | None = None,
        group: ArrayLike | None = None,
        clip: bool = False,
    ) -> None:
        self._align(correct=correct, confidence=confidence, weight=weight, group=group)
        self._check(correct, confidence, positive=positive, clip=clip)
        self._attach(weight, group)
        self._freeze()

    @property
    def correct(self) -> NDArray[np.int8]:
        """Whether each answer was right, 0 or 1."""
        return self.y_true

    @property
    def confidence(self) -> Floats:
        """How probable it was said to be."""
        return self.y_prob


class Multiclass(Predictions):
    """One predicted probability per class, and the observed class.

    Parameters
    ----------
    y_true : array-like of class labels, or of shape (n, K)
        Integers 0 .. K-1, or members of `classes` (text, numbers). Or one column per class: one-hot, or with the
        probability of each label, such as the share of annotators who chose it. Measures that are linear in the
        outcome (`brier`, `log_loss`, `ece`, `mce`) then average over the possible labels; all others raise an error.
    y_prob : array-like of shape (n, K)
        One column per class; rows sum to 1.
    logits : array-like of shape (n, K), optional
        Instead of `y_prob`: unnormalised log probabilities.
    classes : sequence, optional
        The labels of the columns. Columns of a data frame are matched by name, ignoring a prefix and a suffix that
        all share (``p_cat, p_dog``); a label that matches no name raises an error. Columns without names are 0 .. K-1
        or, if there are K text labels, the sorted labels.
    weight, group, clip
        As for `Binary`.

    Notes
    -----
    Probabilities keep their precision. Checks and measures work on blocks of rows, so they need little memory; a
    read-only array of float32 or float64 is not copied.

    Examples
    --------
    >>> data = Multiclass(["cat", "dog"], [[0.8, 0.2], [0.6, 0.4]], classes=["cat", "dog"])
    >>> data.top_label().y_true, data.top_label().y_prob
    (array([1, 0], dtype=int8), array([0.8, 0.6]))
    >>> Multiclass([[0, 1], [1, 0]], logits=[[0.0, 0.0], [2.0, 0.0]]).y_true
    array([1, 0])
    """

    columns = ("codes", "label_shares", "y_prob")
    #: The column number of each row's class; None where labels are probabilities.
    codes: NDArray[np.intp] | None
    #: The labels where they are probabilities of the classes, else None.
    label_shares: Floats | None = None
    #: The matrix, the most probable class of its rows and the probability of that, where the check came by them.
    _top: tuple[NDArray[Any], NDArray[np.intp], NDArray[Any]] | None = None

    def __init__(
        self,
        y_true: ArrayLike,
        y_prob: ArrayLike | None = None,
        *,
        logits: ArrayLike | None = None,
        classes: Sequence[Hashable] | None = None,
        weight: ArrayLike | None = None,
        group: ArrayLike | None = None,
        clip: bool = False,
    ) -> None:
        self._align(y_true=y_true, y_prob=y_prob, logits=logits, weight=weight, group=group)
        if (y_prob is None) == (logits is None):
            fail("Give y_prob, one column of probabilities per class, or logits=.")
        names = column_names(y_prob if logits is None else logits)
        top: Top | None = None
        if logits is None:
            self.y_prob, top = validation.checked_class_probabilities("y_prob", y_prob, clip=clip)
        else:
            self.y_prob = validation.of_logits("logits", logits)
        columns = self.y_prob.shape[1]
        labels = validation.as_array("y_true", y_true)
        if labels.ndim == 2 and labels.shape[1] > 1:
            self.classes = indicator_labels(column_names(y_true), columns, classes=classes, names=names)
            indicators = ordered_columns(y_true, self.classes, name="y_true")
            shares = validation.label_shares(validation.matrix("y_true", indicators, rows=len(self), columns=columns))
            hard = bool(((shares == 0) | (shares == 1)).all())
            self.codes, self.label_shares = (shares.argmax(axis=1), None) if hard else (None, shares)
        else:
            labels = validation.one_dimension("y_true", labels, len(self))
            self.codes, self.classes = class_codes(labels, columns, classes=classes, names=names)
        self._attach(weight, group)
        self._freeze()
        self._top = None if top is None else (self.y_prob, *top)

    def __len__(self) -> int:
        return len(self.y_prob)

    @property
    def y_true(self) -> NDArray[np.intp]:
        """The column number of each row's class."""
        if self.codes is None:
            fail(SOFT)
        return self.codes

    def top_label(self) -> Confidence:
        """The confidence of the predicted class and whether it was right (the first of equal maxima)."""
        if self._top is not None and self._top[0] is self.y_prob:
            return self._event(Confidence, *self._top[1:])
        best = np.empty(len(self), np.intp)
        for rows in row_blocks(*self.y_prob.shape):  # NumPy copies a whole read-only array before it looks for maxima
            best[rows] = self.y_prob[rows].argmax(axis=1)
        return self._event(Confidence, best, self.y_prob[np.arange(len(self)), best])

    def one_vs_rest(self) -> Mapping[Hashable, Binary]:
        """One binary task per class, each made when it is asked for: all of them would be a copy of the predictions."""
        return OneVersusRest(self)

    def in_order_of(self, classes: Sequence[Hashable]) -> Multiclass:
        """The same predictions, with the columns of these classes, which are their own in any order."""
        if tuple(classes) == self.classes:
            return self
        columns = np.array([self.classes.index(label) for label in classes])
        some = copy.copy(self)
        some.classes, some.y_prob = tuple(classes), frozen(self.y_prob[:, columns])
        some.codes = None if self.codes is None else frozen(np.argsort(columns)[self.codes])
        some.label_shares = None if self.label_shares is None else frozen(self.label_shares[:, columns])
        return some

    def rows(self) -> Rows:
        """Refused: a table has one score per row, so one must say which."""
        fail(
            "Several class probabilities have no single score. Choose what to measure: data.top_label() "
            "(confidence of the predicted class), data.one_vs_rest()[label], calibrant.classwise(estimator, data) "
            "(average over classes), or calibrant.kernel_error(data) and calibrant.variational_error(data) "
            "(the whole vector)."
        )

    def _event(self, kind: type[Event], column: NDArray[np.intp] | int, y_prob: NDArray[Any]) -> Event:
        """Whether the label is this class, with the probability of it."""
        is_class = np.zeros(len(self), dtype=bool) if self.codes is None else self.codes == column
        made = kind.borrowing(is_class, y_prob, weight=self.weight, group=self.group)
        if self.label_shares is not None:
            made.outcomes, made.label_shares = None, self.label_shares[np.arange(len(self)), column]
        return made._of_rows_of(self)


class OneVersusRest(Mapping[Hashable, Binary]):
    """The binary tasks of the classes, by label; none is kept."""

    def __init__(self, data: Multiclass) -> None:
        self._data = data
        self._columns = {name: k for k, name in enumerate(data.classes)}

    def __getitem__(self, label: Hashable) -> Binary:
        column = self._columns[label]
        return self._data._event(Binary, column, np.ascontiguousarray(self._data.y_prob[:, column]))

    def __iter__(self) -> Iterator[Hashable]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)

    def __repr__(self) -> str:
        return f"<{len(self)} binary tasks of {self._data!r}>"


def binary(data: Predictions | Column, y_prob: Column) -> Predictions:
    """`data` itself if it is a task, else the binary task of (y_true, y_prob)."""
    if isinstance(data, Predictions):
        if y_prob is not None:
            fail("Give either predictions or (y_true, y_prob), not both.", TypeError)
        return data
    if data is None or y_prob is None:
        fail("Give predictions, e.g. Binary(y_true, y_prob), or both y_true and y_prob.", TypeError)
    return Binary.borrowing(data, y_prob)


class Columns(TypedDict, total=False):
    """Columns that functions of (y_true, y_prob) or (y_true, mean, std) take by name; see `takes_columns`."""

    y_true: ArrayLike
    weight: Column
    group: Column


class BinnedColumns(Columns, total=False):
    """The same, and the number of bins: ``n_bins=15`` is ``bins=15``."""

    n_bins: int | None
