"""Least squares on hat functions of the position, with a coefficient of their own for frequent scores."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant.inference.binary_error.pooled_cells import Numbers, PooledCells, knots_for
from calibrant.numerics.arrays import Floats

#: Knots of the shape along which errors are tested, as a fraction of those of the fit.
SHAPE_KNOTS = 0.6

#: Added to the diagonal of the normal equations, as a share of its mean: knots may have no cell near them.
RIDGE = 1e-9


@dataclass(frozen=True, eq=False)
class HatFit:
    """The projection of a value per cell on piecewise linear functions of the position; big atoms are left as they are.

    The normal equations are tridiagonal, so a fit costs as much as a pass over the cells, whatever the number of knots.
    Once there are as many knots as cells the fit is the identity.

    Attributes
    ----------
    knots : float
        As asked for, before the share of the atoms is deducted.
    free : array of int
        The cells that are no atoms.
    """

    knots: float
    free: Numbers
    basis: Any = None
    weighted: Any = None
    factor: Floats | None = None

    @classmethod
    def of(cls, cells: PooledCells, knots: float) -> HatFit:
        """The fit with equally spaced knots, in number reduced by the share of the atoms."""
        free = np.flatnonzero(~cells.atom)
        share, size = cells.share[free], max(2, round(knots * float(cells.share[free].sum())))
        if len(free) <= size:
            return cls(knots, free)
        from scipy.linalg import cholesky_banded
        from scipy.sparse import csr_array

        place = cells.position[free] * (size - 1)
        left = np.minimum(place.astype(np.intp), size - 2)
        right, row = place - left, np.arange(len(free))
        values, columns = np.concatenate([1 - right, right]), np.concatenate([left, left + 1])
        basis = csr_array((values, (np.tile(row, 2), columns)), shape=(len(free), size))
        weighted = csr_array((values * np.tile(share, 2), (columns, np.tile(row, 2))), shape=(size, len(free)))
        diagonal = np.bincount(columns, np.tile(share, 2) * values**2, size)
        beside = np.bincount(left, share * right * (1 - right), size)
        bands = np.stack([np.roll(beside, 1), diagonal + RIDGE * diagonal.mean()])
        return cls(knots, free, basis, weighted, cholesky_banded(bands, check_finite=False))

    @property
    def identity(self) -> bool:
        """Whether nothing is smoothed."""
        return self.factor is None

    def __call__(self, values: Floats) -> Floats:
        """Fitted values of one value per cell, or of many columns of them."""
        if self.factor is None:
            return values
        from scipy.linalg import cho_solve_banded

        if len(self.free) == len(values):
            return np.asarray(
                self.basis @ cho_solve_banded((self.factor, False), self.weighted @ values, check_finite=False)
            )
        fitted = values.copy()
        coefficients = cho_solve_banded((self.factor, False), self.weighted @ values[self.free], check_finite=False)
        fitted[self.free] = self.basis @ coefficients
        return fitted

    def variance(self, variance: Floats) -> Floats:
        """Variance of the fitted values, given the independent variances of the values."""
        return variance if self.identity else np.asarray(self(np.eye(len(variance))) ** 2 @ variance)


def ladder(cells: PooledCells) -> list[HatFit]:
    """Fits of doubled and redoubled numbers of knots, from the usual number up to a knot for each cell."""
    knots = knots_for(cells.effective_n)
    fits = [HatFit.of(cells, knots)]
    while not fits[-1].identity:
        fits.append(HatFit.of(cells, knots * 2 ** len(fits)))
    return fits
