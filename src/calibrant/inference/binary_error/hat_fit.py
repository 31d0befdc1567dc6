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

#: Up to this many entries of the matrix of cells by knots, products with all of it take less time than those with its
#: two entries per cell and a banded solution, which goes through the columns one by one.
DENSE = 10_000


@dataclass(frozen=True, eq=False)
class HatFit:
    """The projection of a value per cell on piecewise linear functions of the position; big atoms are left as they are.

    With many cells the normal equations are solved in bands, so that a fit costs as much as a pass over the cells,
    whatever the number of knots; with few, functions that are orthonormal under the shares need none. Once there are as
    many knots as cells the fit is the identity.

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
        place = cells.position[free] * (size - 1)
        left = np.minimum(place.astype(np.intp), size - 2)
        made = _orthonormal if len(free) * size <= DENSE else _banded
        return cls(knots, free, *made(share, left, place - left, size))

    @property
    def identity(self) -> bool:
        """Whether nothing is smoothed."""
        return self.basis is None

    def __call__(self, values: Floats) -> Floats:
        """Fitted values of one value per cell, or of many columns of them."""
        if self.identity:
            return values
        if len(self.free) == len(values):
            return np.asarray(self.basis @ self._coefficients(values))
        fitted = values.copy()
        fitted[self.free] = self.basis @ self._coefficients(values[self.free])
        return fitted

    def _coefficients(self, values: Floats) -> Floats:
        """Those of the basis that fit these values of the free cells best."""
        sums = self.weighted @ values
        if self.factor is None:
            return np.asarray(sums)
        from scipy.linalg import cho_solve_banded

        return np.asarray(cho_solve_banded((self.factor, False), sums, check_finite=False))

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


def _orthonormal(share: Floats, left: Numbers, right: Floats, size: int) -> tuple[Floats, Floats]:
    """A basis of the hat functions that is orthonormal under the shares, and what gives its coefficients."""
    row, hats = np.arange(len(share)), np.zeros((len(share), size))
    hats[row, left], hats[row, left + 1] = 1 - right, right
    products = hats.T @ (share[:, None] * hats)
    products.flat[:: size + 1] += RIDGE * np.trace(products) / size
    basis = hats @ np.linalg.inv(np.linalg.cholesky(products)).T
    return basis, np.ascontiguousarray((share[:, None] * basis).T)


def _banded(share: Floats, left: Numbers, right: Floats, size: int) -> tuple[Any, Any, Floats]:
    """The hat functions, their transpose times the shares, and the factor of the normal equations in two bands."""
    from scipy.linalg import cholesky_banded
    from scipy.sparse import csc_array, csr_array

    values = np.stack([1 - right, right], axis=1)
    columns, starts = (left[:, None] + np.arange(2)).ravel(), np.arange(0, 2 * len(share) + 1, 2)
    basis = csr_array((values.ravel(), columns, starts), shape=(len(share), size))
    weighted = csc_array(((share[:, None] * values).ravel(), columns, starts), shape=(size, len(share)))
    diagonal = np.bincount(columns, (share[:, None] * values**2).ravel(), size)
    beside = np.bincount(left, share * right * (1 - right), size)
    bands = np.stack([np.roll(beside, 1), diagonal + RIDGE * diagonal.mean()])
    return basis, weighted, cholesky_banded(bands, check_finite=False)
