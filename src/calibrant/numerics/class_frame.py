"""What a map of several classes sees of a row, made from predicted probabilities alone."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from calibrant.numerics.arrays import Codes, Reals, Singles
from calibrant.numerics.class_entries import FEW_CLASSES, Entries
from calibrant.numerics.log_odds_tables import STAGES, PairCells
from calibrant.numerics.shared_features import Design, SharedFeatures

#: With many classes, the number of principal scores, and of the rows from which their axes are found.
PRINCIPAL, PRINCIPAL_ROWS = 48, 12_000
_ROWS = 4096


@dataclass(frozen=True, eq=False)
class Prepared:
    """Rows ready for a map.

    Attributes
    ----------
    entries : Entries
    design : Design
        Shared features of the entries.
    inputs : array (n, r)
        Of the matrix: standardised log probabilities, or their principal scores.
    codes : tuple of array (n, F)
        Cells of the log odds of pairs of classes, one array per size of cells; none with many classes.
    """

    entries: Entries
    design: Design
    inputs: Singles
    codes: tuple[NDArray[np.uint8], ...]

    def __len__(self) -> int:
        return len(self.inputs)

    def take(self, rows: Codes | slice) -> Prepared:
        """Some of the rows."""
        codes = tuple(part[rows] for part in self.codes)
        return Prepared(self.entries.take(rows), self.design.take(rows), self.inputs[rows], codes)

    @property
    def places(self) -> Singles:
        """Where rows are, for their neighbours: centred log probabilities, or principal scores."""
        if self.entries.index is not None:
            return self.inputs
        logs = self.entries.logs
        return logs - logs.mean(axis=1, keepdims=True)


@dataclass(frozen=True, eq=False)
class Frame:
    """Scales, axes and cells by which rows are prepared.

    Attributes
    ----------
    rows : float
        Probabilities below 1 / (4 rows) are not told apart.
    features : SharedFeatures
    mean : array (K,)
        Of the log probabilities.
    axes : array (K, r) or (1, 1)
        Principal axes, divided by the spread of the log probabilities; that factor alone with few classes.
    cells : tuple of PairCells
    """

    rows: float
    features: SharedFeatures
    mean: Singles
    axes: Singles
    cells: tuple[PairCells, ...]

    @classmethod
    def of(cls, predicted: Reals, *, logits: bool = False) -> tuple[Frame, Prepared]:
        """The frame of these rows, and the rows prepared by it."""
        entries = Entries.of(predicted, len(predicted), logits=logits)
        logs = entries.logs
        mean = logs.mean(axis=0, dtype=np.float64).astype(np.float32)
        some = logs[:: max(1, len(logs) // 20_000)] - mean
        factor = 1 / (np.sqrt(np.mean(some**2, dtype=np.float64)) + 1e-6)
        few = entries.index is None
        axes = np.ones((1, 1)) if few else _principal_axes(logs, mean)
        cells = tuple(PairCells.of(logs, *stage) for stage in STAGES) if few else ()
        frame = cls(len(logs), SharedFeatures.of(entries), mean, (axes * factor).astype(np.float32), cells)
        return frame, frame._prepared(entries)

    @property
    def classes(self) -> int:
        """Number of classes."""
        return len(self.mean)

    def prepare(self, predicted: Reals, *, logits: bool = False) -> Prepared:
        """New rows, prepared as those of the frame were."""
        return self._prepared(Entries.of(predicted, self.rows, logits=logits))

    def _prepared(self, entries: Entries) -> Prepared:
        codes = tuple(cells.codes(entries.logs) for cells in self.cells)
        return Prepared(entries, self.features.design(entries), self._inputs(entries.logs), codes)

    def _inputs(self, logs: Singles) -> Singles:
        if self.classes <= FEW_CLASSES:
            return (logs - self.mean) * self.axes[0, 0]
        result = np.empty((len(logs), self.axes.shape[1]), np.float32)
        for start in range(0, len(logs), _ROWS):
            rows = slice(start, start + _ROWS)
            result[rows] = (logs[rows] - self.mean) @ self.axes
        return result


def _principal_axes(logs: Singles, mean: Singles) -> NDArray[np.float64]:
    """Leading axes of the centred log probabilities, from at most `PRINCIPAL_ROWS` rows."""
    from scipy.linalg import eigh

    some, classes = logs[:: -(-len(logs) // PRINCIPAL_ROWS)], logs.shape[1]
    products = np.zeros((classes, classes))
    for start in range(0, len(some), _ROWS):
        part = some[start : start + _ROWS] - mean
        part -= part.mean(axis=1, keepdims=True)
        products += part.T @ part
    rank = min(PRINCIPAL, classes - 1)
    _, vectors = eigh(products, subset_by_index=[classes - rank, classes - 1])
    axes: NDArray[np.float64] = vectors[:, ::-1]
    return axes
