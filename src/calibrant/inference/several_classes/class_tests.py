"""Which of several classes have wrong probabilities? One test per class, adjusted for their number."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from calibrant.data import validation
from calibrant.data.predictions import Multiclass
from calibrant.inference.multiplicity import cauchy_combined, gamma_tails, rank_p, step_down_min
from calibrant.inference.several_classes.vector_looks import Gaps, Layout, class_squares, gaps_of_labels
from calibrant.inference.several_classes.vector_test import independent_rows
from calibrant.numerics.arrays import Floats
from calibrant.results.printable import printable

#: Classes that are printed.
_PRINTED = 20

_HEADER = ("class", "rows", "predicted", "observed", "probabilities are", "p", "adjusted p")


@dataclass(frozen=True)
class ClassRow:
    """The test of one class; what `by_class` returns for each.

    Attributes
    ----------
    label : hashable
        The class.
    n : int
        Rows that were of this class.
    predicted, observed : float
        Mean predicted probability of the class, and its share of the rows.
    direction : str
        "too high" or "too low" on the whole, or "too extreme" or "not extreme enough" where the difference between
        large and small probabilities is the stronger evidence. Chance alone has a direction too: look at `adjusted`.
    p_value, adjusted : float
        Of this class alone, and allowing for all classes.

    Examples
    --------
    >>> ClassRow("cat", n=40, predicted=0.5, observed=0.4, direction="too high", p_value=0.01, adjusted=0.03).label
    'cat'
    """

    label: Hashable
    n: int
    predicted: float
    observed: float
    direction: str
    p_value: float
    adjusted: float

    def cells(self) -> tuple[str, ...]:
        """The row in words."""
        numbers = (f"{self.n:_}", f"{self.predicted:.4g}", f"{self.observed:.4g}")
        return (printable(self.label), *numbers, self.direction, f"{self.p_value:.3g}", f"{self.adjusted:.3g}")


@dataclass(frozen=True)
class ByClass:
    """One `ClassRow` per class, strongest evidence first; prints as a table. What `by_class` returns.

    Examples
    --------
    >>> import calibrant as cal
    >>> found = cal.by_class(cal.Multiclass([0, 1, 0], [[0.8, 0.2], [0.4, 0.6], [0.7, 0.3]]), draws=99)
    >>> len(found), found[1].n
    (2, 1)
    """

    rows: tuple[ClassRow, ...]
    method: str

    def __iter__(self) -> Iterator[ClassRow]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, label: Hashable) -> ClassRow:
        """The row of a class, by its label."""
        for row in self.rows:
            if row.label == label:
                return row
        raise KeyError(label)

    def found(self, alpha: float = 0.05) -> list[Hashable]:
        """Classes whose adjusted p-value is at most `alpha`: any of them is wrong with probability of at most that."""
        return [row.label for row in self.rows if row.adjusted <= alpha]

    def to_dict(self) -> dict[str, Any]:
        """Plain types only, ready for JSON."""
        return {"method": self.method, "classes": [{**asdict(row), "label": str(row.label)} for row in self.rows]}

    def __repr__(self) -> str:
        lines = [_HEADER, *(row.cells() for row in self.rows[:_PRINTED])]
        widths = [max(len(line[column]) for line in lines) for column in range(len(_HEADER))]
        text = ["  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)) for line in lines]
        left = len(self.rows) - _PRINTED
        return "\n".join([*text, *([f"and {left} more classes"] if left > 0 else [])])

    def _repr_html_(self) -> str:
        from calibrant.reporting.notebook import classes_html

        return classes_html(self)


def by_class(data: Multiclass, *, draws: int = 999, seed: int = 0) -> ByClass:
    r"""Test every class against the rest, with p-values that allow for all classes.

    The gaps between observed and predicted frequency of a class are squared and divided by their variances in 1, 2 and
    4 bins of its probability; gamma laws turn the three sums into tails, which are combined to one number q. Labels are
    drawn from the predicted vectors, all classes from the same draws, so that their dependence is kept. Half of
    the draws fit the gamma laws, the other half rank q: the p-value of a class is its rank, and the adjusted one the
    step-down rank of the smallest q (Westfall and Young). The probability that any calibrated class is reported is at
    most the level, exactly, for every number of rows and classes.

    Parameters
    ----------
    data : Multiclass
        Independent rows without weights.
    draws : int
        Number of simulated samples that are ranked; the smallest p-value is 1 / (draws + 1).
    seed : int

    Returns
    -------
    ByClass
        A table, strongest evidence first.

    References
    ----------
    Westfall, Young (1993), Resampling-Based Multiple Testing.

    Examples
    --------
    >>> import calibrant as cal
    >>> rng = np.random.default_rng(0)
    >>> p = rng.dirichlet([1, 1, 1, 1], 2000)
    >>> y = (rng.random((2000, 1)) > np.cumsum(p, axis=1)).sum(axis=1)
    >>> stated = p * [1.5, 1, 1, 1]
    >>> found = cal.by_class(cal.Multiclass(y, stated / stated.sum(axis=1, keepdims=True)))
    >>> found.rows[0].label, found.rows[0].direction, found.rows[0].adjusted
    (0, 'too high', 0.001)
    """
    draws, seed = validation.whole("draws", draws), validation.seed(seed)
    probability, labels = independent_rows(data, needed_by="by_class")
    layout = Layout.of(probability)
    gaps = gaps_of_labels(layout, labels, 2 * draws, np.random.default_rng(seed), only="class")["class"]
    combined = _combined(gaps, len(data.classes), draws)
    single, adjusted = rank_p(combined[0], combined[1:]), step_down_min(combined[0], combined[1:])
    count = np.bincount(labels, minlength=len(data.classes))
    directions = _directions(gaps, len(data.classes))
    rows = [
        ClassRow(label, int(count[k]), *shares, directions[k], float(single[k]), float(adjusted[k]))
        for k, label in enumerate(data.classes)
        for shares in [(float(probability[:, k].mean()), float(count[k] / len(labels)))]
    ]
    order = np.lexsort((combined[0], single, adjusted))
    return ByClass(tuple(rows[k] for k in order), f"by_class(draws={draws}, seed={seed})")


def _combined(gaps: Gaps, classes: int, draws: int) -> Floats:
    """The combined tail q of the data and of the draws that are ranked; gamma laws are fitted to the other draws."""
    looks = np.stack(list(class_squares(gaps, classes).values()), axis=2)
    tails = gamma_tails(looks[draws + 1 :], looks[: draws + 1])
    return cauchy_combined(tails, np.ones(looks.shape[2]))


def _directions(gaps: Gaps, classes: int) -> list[str]:
    """In words, from the z of all gaps together and of those of large probabilities less those of small ones."""
    gap, variance = gaps.gap[0].reshape(classes, 2, -1).sum(axis=2), gaps.variance.reshape(classes, -1).sum(axis=1)
    scale = np.sqrt(np.maximum(variance, 1e-300))
    whole, tilt = gap.sum(axis=1) / scale, (gap[:, 1] - gap[:, 0]) / scale
    level, slope = (np.where(z > 0, *words) for z, words in zip((whole, tilt), _WORDS, strict=True))
    return [str(word) for word in np.where(np.abs(whole) >= np.abs(tilt), level, slope)]


#: More, and fewer, outcomes than predicted: on the whole, and of large probabilities.
_WORDS = (("too low", "too high"), ("not extreme enough", "too extreme"))
