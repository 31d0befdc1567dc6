r"""Local corrections of a multiclass map: from the nearest training rows, and kernel estimates on the simplex.

`Correction` asks whether the nearest training rows hold more of a class than the fitted map expects. For
`SimplexKernels`, with q the map and :math:`k_h(p, r) = \exp(-|p - r|^2 / 2h^2)` for the widths h = .12, .06 and .03,

.. math:: m_h(p) = \frac{\sum_j w_j k_h(p, p_j) y_j + \varepsilon q(p)}{\sum_j w_j k_h(p, p_j) + \varepsilon}, \qquad
          g = (1 - s)\, q + s \sum_h v_h m_h .

The weights v come from EM on training rows, which are left out of their own estimates (with all rows of their group).
The share s is the weight of all kernels times the posterior probability that the average is better than q at all.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from calibrant.numerics.arrays import Codes, Floats, Reals, Singles, expit, log_softmax
from calibrant.numerics.random_draws import generator

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
PRIOR_NEIGHBOURS = 2.0
#: Units of log-likelihood which the correction must gain on the rows it was fitted to. Derived: one for each of its
#: two coefficients, as in Akaike's criterion.
LEAST_GAIN = 2.0
#: Up to this many dimensions a tree finds neighbours faster than all distances do. Speed: benchmarks/variational.py;
#: no result depends on it.
_TREE_DIMENSIONS = 6


@dataclass(frozen=True, eq=False)
class References:
    """Numbers of the rows among which near ones are sought, and where they are, (R, d); chosen without their labels."""

    rows: Codes
    at: Singles

    @classmethod
    def of(cls, at: Singles) -> References:
        """All rows if they are few, else a random part, the same every time."""
        rows = generator(0, "reference rows").permutation(len(at))[:REFERENCES]
        return cls(rows, np.ascontiguousarray(at[rows]))

    def nearest(self, at: Singles, size: int) -> NDArray[np.intp]:
        """Places among the references of those nearest to the given points, nearest first."""
        size, at = min(size, len(self.rows)), np.ascontiguousarray(at)
        if at.shape[1] > _TREE_DIMENSIONS:
            return _by_distances(at, self.at, size)
        from scipy.spatial import cKDTree

        return np.asarray(cKDTree(self.at).query(at, k=size)[1]).reshape(len(at), size)

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
    """Log of (observed + prior) / (expected + prior) class counts among the usable neighbours: (n, k, sizes)."""
    from scipy.sparse import csr_array

    prior = p * p.dtype.type(PRIOR_NEIGHBOURS) + p.dtype.type(1e-9)
    chosen = usable.take(near)
    used, number = near.ravel().compress(chosen.ravel()), chosen.sum(axis=1)
    both = np.hstack([surplus, expected])
    first, ratios = np.cumsum(number) - number, []
    for size in SIZES:
        few = np.minimum(number, size)
        ends = np.concatenate([[0], np.cumsum(few)])
        place = np.arange(ends[-1]) + np.repeat(first - ends[:-1], few)
        ones = np.ones(len(place), surplus.dtype)
        sums = csr_array((ones, used.take(place), ends), shape=(len(near), len(usable))) @ both
        ratio = sums[:, : p.shape[1]] / (sums[:, p.shape[1] :] + prior)
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
    b, active = np.zeros(x.shape[2]), np.arange(x.shape[2])
    while len(active):
        found = _coefficients(x[:, :, active], offset, labels, weight)
        if (found >= 0).all():
            b[active] = found
            break
        active = active[found > 0]
    return b


def _coefficients(x: Reals, offset: Reals, labels: Codes, weight: Singles) -> Floats:
    (n, k, p), observed = x.shape, weight.astype(np.float64) @ x[np.arange(len(labels)), labels]
    columns, offset = np.ascontiguousarray(x.T), np.ascontiguousarray(offset.T)  # operations on long rows are faster
    flat, b, precision = columns.reshape(p, k * n), np.zeros(p), np.ones(p)
    for steps in (8, 2, 2):
        for _ in range(steps):
            mean = offset + (b.astype(x.dtype) @ flat).reshape(k, n)
            mean -= mean.max(axis=0)
            np.exp(mean, out=mean)
            mean *= weight / mean.sum(axis=0)
            px = columns * mean
            centre = px.sum(axis=1)
            hessian = px.reshape(p, k * n) @ flat.T - (centre / weight) @ centre.T + np.diag(precision)
            gradient = observed - centre.astype(np.float64).sum(axis=1) - precision * b
            step = np.linalg.solve(hessian, gradient)
            if gradient @ step < 1e-3:
                break
            b = b + step * min(1.0, 1.0 / max(float(np.abs(step).max()), 1e-9))
        effective = 1 - precision * np.diag(np.linalg.inv(hessian))
        precision = np.clip((effective + 0.05) / (b**2 + 0.005), 0.1, 1e4)
    return b


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

    The `size` of the groups they are dealt into that have the smallest minima hold `size` values of at most the largest
    of these minima: few are left to be sorted.
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


#: The widest kernel and their number; each is the fourth power of the one before, of half its width. Test:
#: tests/numerics/test_simplex_kernels.py::test_the_estimates_written_out.
WIDEST, WIDTHS = 0.12, 3
#: Rows of the map itself in each estimate, for places that no row is near. Derived: a thousandth of a row changes no
#: estimate from a row or more by over 0.1 %.
OWN_ROWS = 1e-3
#: Prior weights of the map and of all kernels together, and the rows that they are worth. Test:
#: tests/numerics/test_simplex_kernels.py::test_weights_are_those_of_the_frozen_sample.
PRIOR, PRIOR_ROWS = (0.7, 0.3), 20.0
#: Training rows from which the weights come, and steps of EM. Speed: the least certain rows tell most; more of either
#: moves the weights by less than their standard error.
EM_ROWS, EM_STEPS = 1000, 100
#: Units of log-likelihood that the prior weights may cost without the average being doubted. Test:
#: tests/numerics/test_simplex_kernels.py::test_weights_are_those_of_the_frozen_sample.
HANDICAP = 1.0
#: With less weight of all kernels, the map is taken as it is. Speed: it then costs nothing, and moves probabilities by
#: less than 3 % of the distance between kernels and map.
LEAST_SHARE = 0.03


#: Points that are worked on at once: their kernels stay in a cache. Speed: benchmarks/variational.py; no result depends
#: on it.
_ROWS = 256
#: Up to this many sums, or where most rows want several of them, one product is faster than many. Speed:
#: benchmarks/before.py --multiclass; no result depends on it.
_COLUMNS = 100


def kernel_sums(
    x: Singles, at: Singles, wanted: Sequence[tuple[Codes, Singles]], *, group: tuple[Codes, Codes] | None = None
) -> Iterator[tuple[int, slice, Singles]]:
    """Sums of outcomes around points: number of what was wanted, a part of its rows, (widths, rows, k), widest first.

    Wanted are rows of `x`, rising, and outcomes of all `at`. Pairs of the same group (those of `x`, and of `at`) do not
    count.
    """
    squares, k, outcomes = np.einsum("rk,rk->r", at, at), at.shape[1], np.hstack([outcome for _, outcome in wanted])
    for start in range(0, len(x), _ROWS):
        parts = [slice(*np.searchsorted(rows, (start, start + _ROWS)).tolist()) for rows, _ in wanted]
        sums = [np.empty((WIDTHS, part.stop - part.start, k), np.float32) for part in parts]
        if not any(found.size for found in sums):
            continue
        some = x[start : start + _ROWS]
        kernel = np.add.outer(np.einsum("nk,nk->n", some, some), squares)
        kernel -= (2 * some) @ at.T
        np.maximum(kernel, 0, out=kernel)
        kernel *= np.float32(-0.5 / WIDEST**2)
        np.exp(kernel, out=kernel)
        if group is not None:
            kernel[group[0][start : start + _ROWS, None] == group[1]] = 0
        many = sum(found.shape[1] for found in sums) > 3 * len(some)
        together = many or outcomes.shape[1] <= _COLUMNS
        for width in range(WIDTHS):
            if width:
                np.square(np.square(kernel, out=kernel), out=kernel)
            every = kernel @ outcomes if together else kernel
            for i, (part, (rows, outcome)) in enumerate(zip(parts, wanted, strict=True)):
                here = every.take(rows[part] - start, axis=0)
                sums[i][width] = here[:, i * k : (i + 1) * k] if together else here @ outcome
        yield from ((i, parts[i], found) for i, found in enumerate(sums) if found.size)


@dataclass(frozen=True, eq=False)
class Trial:
    """What decides the weights of the kernels: training rows, by their place among the references, and the sums there.

    `outcome`, (R, K), has the weight of each reference at its observed class, and nothing of those that do not train.
    """

    rows: Codes
    outcome: Singles
    sums: Singles

    @classmethod
    def each(
        cls, at: Singles, labels: Codes, weight: Singles, trains: Sequence[NDArray[np.bool_]], group: Codes | None
    ) -> list[Self]:
        """One for each of several choices of training rows, of the least certain rows of the sample."""
        top, every, wanted = at[:SAMPLE].max(axis=1), np.arange(len(at)), []
        for train in trains:
            own = np.flatnonzero(train[:SAMPLE])
            outcome = np.zeros(at.shape, np.float32)
            outcome[every, labels] = weight * train
            wanted.append((np.sort(own[np.argsort(top[own], kind="stable")[:EM_ROWS]]), outcome))
        used, group = np.unique(np.concatenate([rows for rows, _ in wanted])), every if group is None else group
        trials = [
            cls(rows, outcome, np.empty((WIDTHS, len(rows), at.shape[1]), np.float32)) for rows, outcome in wanted
        ]
        places = [(np.searchsorted(used, rows), outcome) for rows, outcome in wanted]
        for number, part, sums in kernel_sums(at[used], at, places, group=(group[used], group)):
            trials[number].sums[:, part] = sums
        return trials


@dataclass(frozen=True, eq=False)
class SimplexKernels:
    """Reference rows, weights at their observed classes, and the weights of the map and of each kernel estimate."""

    at: Singles
    outcome: Singles
    share: Floats

    @classmethod
    def none(cls, classes: int) -> Self:
        """The map as it is."""
        nothing = np.empty((0, classes), np.float32)
        return cls(nothing, nothing, np.array([1.0]))

    @classmethod
    def fit(cls, at: Singles, trial: Trial, logs: Reals) -> Self:
        """From the references, and the log probabilities of the map at the rows of the trial."""
        share = _shares(np.exp(logs), trial.sums, trial.outcome[trial.rows]) if len(logs) else np.ones(1)
        return cls(at, trial.outcome, share) if len(share) > 1 else cls.none(at.shape[1])

    def averaged(self, q: Reals, p: Singles) -> Reals:
        """Probabilities q of the map at the predicted probabilities p, averaged with the kernel estimates."""
        if len(self.share) == 1:
            return q
        wanted = [(np.arange(len(p)), self.outcome)]
        return np.concatenate([self.mixed(q[part], sums) for _, part, sums in kernel_sums(p, self.at, wanted)])

    def mixed(self, q: Reals, sums: Singles) -> Reals:
        """The same where the sums of outcomes are known."""
        result = q * q.dtype.type(self.share[0])
        for share, estimate in zip(self.share[1:].tolist(), _estimates(sums, q), strict=True):
            result += q.dtype.type(share) * estimate
        return result


def _estimates(sums: Singles, q: Reals) -> Reals:
    """The estimate of each width, (widths, n, k)."""
    few = q.dtype.type(OWN_ROWS)
    return np.asarray((sums + few * q) / (sums.sum(axis=2, keepdims=True) + few))


def _shares(q: Reals, sums: Singles, outcome: Singles) -> Floats:
    """Weights of the map and of the kernels; the map alone where the average is not believed."""
    place, labels, weight = np.arange(len(q)), outcome.argmax(axis=1), outcome.max(axis=1).astype(np.float64)
    members = np.concatenate([q[None], _estimates(sums, q)])
    hits = np.maximum(members[:, place, labels].T, 1e-9).astype(np.float64)
    found = _em_weights(hits, weight)
    mixed = sum(one * member for one, member in zip(found.tolist(), members, strict=True))
    likelihood = float(weight @ np.log(hits @ found / hits[:, 0]))
    brier = ((q - mixed) * (q + mixed)).sum(axis=1) - 2 * (q - mixed)[place, labels]
    gain = min(likelihood, float(weight @ brier))
    kernels = found[1:] * float(expit(np.array(min(gain + HANDICAP, 500.0))))
    return np.concatenate([[1 - kernels.sum()], kernels]) if kernels.sum() >= LEAST_SHARE else np.array([1.0])


def _em_weights(hits: Floats, weight: Floats) -> Floats:
    """Weights of a mixture from the probability that each member gave to what was observed."""
    prior = np.array([PRIOR[0], *([PRIOR[1] / WIDTHS] * WIDTHS)])
    found, added, total = prior, prior * PRIOR_ROWS, weight.sum() + PRIOR_ROWS
    for _ in range(EM_STEPS):
        found = (found * np.dot(weight / np.dot(hits, found), hits) + added) / total
    return found
