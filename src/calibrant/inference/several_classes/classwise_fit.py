"""Fitted gaps between the probability and the frequency of every class, and their noise when labels are drawn once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from calibrant.numerics.arrays import Floats
from calibrant.numerics.draws import categorical_draws
from calibrant.numerics.hat_functions import orthonormal_hats

#: Cells that the rows of a class are pooled into, by rank and score.
CELLS = 64

#: Knots of the shape of hypothetical gaps, as a part of those of the fit.
SHAPE = 0.6


@dataclass(frozen=True, eq=False)
class ClassGap:
    """The cells of one class: share of rows, bases of the fit, of its smoother shape and of a straight line.

    A basis is orthonormal under the shares: fitted values are basis @ basis.T @ (sums of residuals per cell / n).
    """

    share: Floats
    fit: Floats
    smooth: Floats
    straight: Floats


@dataclass(frozen=True, eq=False)
class ClasswiseFit:
    """All classes of a sample, fitted one by one.

    Attributes
    ----------
    cell : array (n, K)
        Number of the cell of each probability, different for each class.
    """

    probability: Floats
    labels: NDArray[np.intp]
    cell: NDArray[np.int32]
    classes: list[ClassGap]

    @classmethod
    def of(cls, probability: Floats, labels: NDArray[np.intp]) -> ClasswiseFit:
        """Cells and bases; a class has about 2.5 + 1.1 log(4 sum p(1 - p)) knots."""
        cell = np.empty(probability.shape, np.int32)
        classes = []
        for k, p in enumerate(probability.T):
            place = _place(p)
            number = np.minimum((place * CELLS).astype(np.int32), CELLS - 1)
            cell[:, k] = number + k * CELLS
            count = np.bincount(number, minlength=CELLS)
            middle = np.bincount(number, place, CELLS) / np.maximum(count, 1)
            knots = 2.5 + 1.1 * np.log(max(4 * float((p * (1 - p)).sum()), 2.0))
            bases = [
                orthonormal_hats(middle, count / len(p), max(2, round(some))) for some in (knots, SHAPE * knots, 2)
            ]
            classes.append(ClassGap(count / len(p), *bases))
        return cls(probability, labels, cell, classes)

    def sums(self, values: Floats) -> Floats:
        """Means over all rows of what lies in each cell, of shape (K, cells)."""
        n, k = values.shape
        return np.bincount(self.cell.ravel(), values.ravel(), k * CELLS).reshape(k, CELLS) / n

    def outcomes(self, labels: NDArray[np.intp]) -> Floats:
        """Shares of the rows that are of the class, in each cell."""
        n, k = self.probability.shape
        return np.bincount(self.cell[np.arange(n), labels], minlength=k * CELLS).reshape(k, CELLS) / n

    def fitted(self, sums: Floats, basis: str) -> Floats:
        """Fitted gap per class and cell from the residuals' sums."""
        bases = (getattr(one, basis) for one in self.classes)
        return np.stack([some @ (some.T @ line) for some, line in zip(bases, sums, strict=True)])

    def coordinates(self, sums: Floats) -> list[Floats]:
        """Coordinates of the fitted gap of each class."""
        return [line @ one.fit for line, one in zip(sums, self.classes, strict=True)]

    def means(self, values: Floats) -> Floats:
        """Means of what lies in each cell, 0 in those without rows."""
        share = np.stack([one.share for one in self.classes])
        return np.divide(self.sums(values), share, out=np.zeros_like(share), where=share > 0)

    def mean_squares(self, gaps: Floats) -> Floats:
        """Mean square over the rows, for each class."""
        return np.stack([one.share @ line**2 for one, line in zip(self.classes, gaps, strict=True)])

    def of_rows(self, gaps: Floats) -> Floats:
        """Gaps per class and cell as gaps of the rows, (n, K)."""
        return gaps.ravel().take(self.cell)

    def noise(self, law: Floats, draws: int, rng: np.random.Generator) -> list[Floats]:
        """Coordinates of probability less outcome in the fit of each class, of samples whose labels follow `law`."""
        n, k = law.shape
        at = categorical_draws(law, draws, rng).T + np.arange(n, dtype=np.int32) * k
        flat = self.cell.ravel()
        events = np.stack([np.bincount(flat.take(line), minlength=k * CELLS) for line in at])
        residual = (self.sums(law) - events.reshape(draws, k, CELLS) / n).transpose(1, 0, 2)
        return [lines @ one.fit for lines, one in zip(residual, self.classes, strict=True)]


def _place(p: Floats) -> Floats:
    """Mean of the rank and of the score, both in [0, 1]; equal scores share their mean rank."""
    _, value, count = np.unique(p, return_inverse=True, return_counts=True)
    rank = (np.cumsum(count) - (count + 1) / 2)[value] / max(len(p) - 1, 1)
    width = float(np.ptp(p))
    return np.asarray((rank + (p - p.min()) / width) / 2 if width > 0 else np.full(len(p), 0.5))
