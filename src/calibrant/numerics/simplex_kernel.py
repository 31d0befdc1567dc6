"""Kernel regression of the class on the whole vector of probabilities, in blocks of rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from calibrant.numerics.arrays import Codes, Floats, Reals

#: Kernel weights held at once.
_BLOCK = 4_000_000


@dataclass(frozen=True, eq=False)
class SimplexKernel:
    r"""Rows that vote for their class with a Gaussian weight in their distance,

    .. math:: q_c(p) = \frac{\sum_i w_i\, 1\{y_i = c\}\, e^{-\lVert p - p_i\rVert^2 / 2h^2}}
              {\sum_i w_i\, e^{-\lVert p - p_i\rVert^2 / 2h^2}}.

    Attributes
    ----------
    at : array (n, K)
        The vectors, ordered by class.
    codes : array (n,)
        Their classes, rising.
    weight : array (n,)
    """

    at: Reals
    codes: Codes
    weight: Floats

    @classmethod
    def of(cls, at: Reals, codes: Codes, weight: Floats | None) -> SimplexKernel:
        """Order the rows by class."""
        order = np.argsort(codes, kind="stable")
        return cls(at[order], codes[order], np.ones(len(codes)) if weight is None else weight[order])

    def shares(self, points: Reals, bandwidth: float) -> Floats:
        """The shares of the classes at other points, (m, K)."""
        result = np.zeros((len(points), self.at.shape[1]))
        for rows, squares in self._squared_distances(points):
            result[rows] = self._votes(squares, bandwidth)
        return result

    def held_out_log_loss(self, rows: Codes, bandwidths: Floats, floor: float) -> Floats:
        """Mean log loss of some of the rows, each predicted by all others, for several bandwidths."""
        losses = np.zeros(len(bandwidths))
        for part, squares in self._squared_distances(self.at[rows]):
            own = rows[part]
            squares[np.arange(len(own)), own] = np.inf
            for j, bandwidth in enumerate(bandwidths):
                hit = self._votes(squares, bandwidth)[np.arange(len(own)), self.codes[own]]
                losses[j] -= float(self.weight[own] @ np.log(np.maximum(hit, floor)))
        return losses / float(self.weight[rows].sum())

    def _squared_distances(self, points: Reals) -> Iterator[tuple[slice, Floats]]:
        """Blocks of points with their squared distances from all rows, (m, n)."""
        norms = np.einsum("nk,nk->n", self.at, self.at, dtype=np.float64)
        step = max(1, _BLOCK // max(len(self.at), 1))
        for start in range(0, len(points), step):
            rows = slice(start, min(start + step, len(points)))
            part = points[rows].astype(np.float64)
            squares = part @ self.at.T.astype(np.float64)
            squares *= -2
            squares += norms
            squares += np.einsum("nk,nk->n", part, part)[:, None]
            yield rows, np.maximum(squares, 0, out=squares)

    def _votes(self, squares: Floats, bandwidth: float) -> Floats:
        """Shares of the classes; distances count from the nearest row, so that no sum is lost to underflow."""
        nearest = squares.min(axis=1, keepdims=True)
        kernel = np.exp((np.where(np.isfinite(nearest), nearest, 0.0) - squares) / (2 * bandwidth**2))
        kernel *= self.weight
        present, starts = np.unique(self.codes, return_index=True)
        sums = np.zeros((len(squares), self.at.shape[1]))
        sums[:, present] = np.add.reduceat(kernel, starts, axis=1)
        total = sums.sum(axis=1, keepdims=True)
        shares: Floats = np.where(total > 0, sums / np.where(total > 0, total, 1.0), 1 / self.at.shape[1])
        return shares
