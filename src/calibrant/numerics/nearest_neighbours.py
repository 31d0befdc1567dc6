"""Local corrections: whether the nearest training rows hold more of a class than the fitted map expects."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from calibrant.numerics.arrays import Codes, Floats, Reals, Singles
from calibrant.numerics.random_draws import generator
from calibrant.numerics.special import log_softmax, softmax

#: Numbers of neighbours used, and the number of rows searched for them. Test:
#: tests/numerics/test_multiclass_map.py::test_shares_recovered_with_these_constants.
SIZES, REFERENCES = (10, 40), 3750
#: Reference rows from which the coefficients are fitted. Test:
#: tests/numerics/test_multiclass_map.py::test_shares_recovered_with_these_constants.
SAMPLE = 2500
#: Neighbours kept per row. Derived: of five folds, 4/5 of 64 leave the 40 of `SIZES` when those of the held-out fold
#: are taken away, but for one row in some thousands.
KEPT = 64
#: Prior rows added to observed and expected counts, with the fitted probabilities of the row itself. Test:
#: tests/numerics/test_multiclass_map.py::test_shares_recovered_with_these_constants.
PRIOR_ROWS = 2.0
#: Units of log-likelihood which the correction must gain on the rows it was fitted to. Derived: one for each of its
#: two coefficients, as in Akaike's criterion.
LEAST_GAIN = 2.0
#: Up to this many dimensions a tree finds neighbours faster than all distances do. Speed: benchmarks/variational.py;
#: no result depends on it.
_TREE_DIMENSIONS = 6


@dataclass(frozen=True, eq=False)
class References:
    """Rows among which near ones are sought; chosen without their labels.

    Attributes
    ----------
    rows : array (R,)
        Their numbers.
    at : array (R, d)
        Where they are.
    """

    rows: Codes
    at: Singles

    @classmethod
    def of(cls, at: Singles) -> References:
        """All rows if they are few, else a random part, the same every time."""
        rows = generator(0, "reference rows").permutation(len(at))[:REFERENCES]
        return cls(rows, np.ascontiguousarray(at[rows]))

    def nearest(self, at: Singles, size: int) -> NDArray[np.intp]:
        """Places among the references of those nearest to the given points, nearest first."""
        size = min(size, len(self.rows))
        return _nearest(np.ascontiguousarray(at), self.at, size)

    def neighbours_of_sample(self) -> NDArray[np.intp]:
        """Places of the neighbours of the first `SAMPLE` references, themselves left out."""
        sample = np.arange(min(SAMPLE, len(self.rows)))
        found = self.nearest(self.at[sample], KEPT + 1)
        itself = found == sample[:, None]
        itself[~itself.any(axis=1), -1] = True
        return found[~itself].reshape(len(sample), -1)


def counts(logs: Reals, labels: Codes, weight: Singles) -> tuple[Reals, Reals]:
    """Observed less expected, and expected class counts of each row under the fitted log probabilities."""
    expected = np.exp(logs) * weight[:, None]
    surplus = -expected
    surplus[np.arange(len(labels)), labels] += weight
    return surplus, expected


def log_ratios(near: NDArray[np.intp], usable: NDArray[np.bool_], surplus: Reals, expected: Reals, p: Reals) -> Reals:
    """Log of (observed + prior) / (expected + prior) class counts among the usable neighbours: (n, k, sizes).

    `surplus` and `expected` hold observed less expected, and expected counts of every reference.
    """
    from scipy.sparse import csr_array

    prior = p * p.dtype.type(PRIOR_ROWS) + p.dtype.type(1e-9)
    chosen = usable[near]
    place = np.cumsum(chosen, axis=1)
    ratios = []
    for size in SIZES:
        used = chosen & (place <= size)
        ends = np.concatenate([[0], np.cumsum(used.sum(axis=1))])
        ones = np.ones(int(ends[-1]), surplus.dtype)
        adjacency = csr_array((ones, near[used], ends), shape=(len(near), len(usable)))
        ratio = (adjacency @ surplus) / (adjacency @ expected + prior)
        ratios.append(np.log1p(np.maximum(ratio, p.dtype.type(-1 + 1e-6))))
    return np.stack(ratios, axis=2)


def local_coefficients(ratios: Reals, logs: Reals, labels: Codes, weight: Singles) -> Floats:
    """How far the ratios are believed: zero unless that gains enough on these rows."""
    if not len(labels):
        return np.zeros(ratios.shape[2])
    b, rows = positive_coefficients(ratios, logs, labels, weight), np.arange(len(labels))
    gain = (corrected(logs, ratios, b) - logs)[rows, labels].astype(np.float64) @ weight
    return b if gain >= LEAST_GAIN else np.zeros_like(b)


def corrected(logs: Reals, ratios: Reals, b: Floats) -> Reals:
    """Log probabilities with the local correction added."""
    return log_softmax(logs + ratios @ b.astype(ratios.dtype))


def positive_coefficients(x: Reals, offset: Reals, labels: Codes, weight: Singles) -> Floats:
    """Ridged conditional logit in few features; those that come out negative are noise and are dropped."""
    b = np.zeros(x.shape[2])
    active = list(range(x.shape[2]))
    while active:
        found = _coefficients(x[:, :, active], offset, labels, weight)
        if (found >= 0).all():
            b[active] = found
            break
        active = [j for j, value in zip(active, found, strict=True) if value > 0]
    return b


def _coefficients(x: Reals, offset: Reals, labels: Codes, weight: Singles, *, updates: int = 3) -> Floats:
    n, k, p = x.shape
    flat, rows = x.reshape(n * k, p), np.arange(n)
    observed = weight.astype(np.float64) @ x[rows, labels]
    b, precision = np.zeros(p), np.ones(p)
    for update in range(updates):
        for _ in range(8 if update == 0 else 2):
            mean = softmax(offset + (flat @ b.astype(x.dtype)).reshape(n, k)) * weight[:, None]
            px = x * mean[:, :, None]
            centre = np.einsum("nkp->np", px)
            hessian = px.reshape(n * k, p).T @ flat - (centre / weight[:, None]).T @ centre + np.diag(precision)
            gradient = observed - centre.sum(axis=0, dtype=np.float64) - precision * b
            step = np.linalg.solve(hessian, gradient)
            if gradient @ step < 1e-3:
                break
            b = b + step * min(1.0, 1.0 / max(float(np.abs(step).max()), 1e-9))
        effective = 1 - precision * np.diag(np.linalg.inv(hessian))
        precision = np.clip((effective + 0.05) / (b**2 + 0.005), 0.1, 1e4)
    return b


def _nearest(x: Singles, references: Singles, size: int) -> NDArray[np.intp]:
    search = _by_tree if x.shape[1] <= _TREE_DIMENSIONS else _by_distances
    return search(x, references, size).reshape(len(x), size)


def _by_tree(x: Singles, references: Singles, size: int) -> NDArray[np.intp]:
    from scipy.spatial import cKDTree

    found: NDArray[np.intp] = cKDTree(references).query(x, k=size)[1]
    return found


def _by_distances(x: Singles, references: Singles, size: int) -> NDArray[np.intp]:
    """All distances, less the square of each row, block by block: one product gives both of their terms."""
    result = np.empty((len(x), size), dtype=np.intp)
    columns = np.vstack([-2 * references.T, np.einsum("rk,rk->r", references, references)])
    for start in range(0, len(x), 512):
        some = x[start : start + 512]
        result[start : start + 512] = _smallest(np.hstack([some, np.ones_like(some[:, :1])]) @ columns, size)
    return result


def _smallest(values: Singles, size: int) -> NDArray[np.intp]:
    """Places of the smallest values of each row, smallest first.

    They are dealt into groups. The `size` groups with the smallest minima hold `size` values that are at most the
    largest of these minima, so none above it is wanted: a few more than `size` are left to be sorted.
    """
    number, groups = values.shape[1], 4 * size
    if number < 2 * groups:
        return np.argsort(values, axis=1)[:, :size]
    deals = number // groups
    minima = values[:, : deals * groups].reshape(len(values), deals, groups).min(axis=1)
    limit = np.partition(minima, size - 1, axis=1)[:, size - 1]
    row, place = np.divmod(np.flatnonzero(values <= limit[:, None]), number)
    left = np.bincount(row, minlength=len(values))
    column = np.arange(len(row)) - np.repeat(np.cumsum(left) - left, left)
    places, kept = np.zeros((len(values), left.max()), np.intp), np.full((len(values), left.max()), np.inf, np.float32)
    places[row, column], kept[row, column] = place, values[row, place]
    return np.take_along_axis(places, np.argsort(kept, axis=1)[:, :size], axis=1)
