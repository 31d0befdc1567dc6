r"""The fast multiclass map, from 3 to thousands of classes: four stages, each of which can shrink to nothing.

.. math:: \log g_c = z_c + x_c(z)^\top b + (W u)_c + t_c(z) + \gamma^\top r_c(z) - \text{normaliser}

with z the predicted log probabilities and

A. features x_c that all classes share (the logit of class c, smooth functions of it, its interaction with the top
   confidence, whether c is on top), and an intercept and a slope per class: `ConditionalLogit`;
B. a matrix W for confusions between classes, of all log probabilities (`ResidualMatrix`) or, with more than 40
   classes, from 48 principal scores of them to the 16 leading classes of each row (`LeadingMatrix`);
T. tables t of two log odds, for interactions, with at most 40 classes: `PairTables`;
C. the log ratio r_c of observed to expected class counts among the nearest training rows: `Correction`.

With at most 40 classes, g is then averaged with kernel estimates on the simplex: `SimplexKernels`.

Of 24 sets of real predictions, C adds 22 % to the L1 error found in the probabilities of four models of tabular data,
3.5 % for boosted trees on MNIST and under 1 % elsewhere; T adds 0.6 % for AdaBoost on MNIST and nothing that could be
told from noise elsewhere (benchmarks/results/variational_stages.md). In worlds with interactions of two log odds, T
finds most of the error, and C half of what T finds (benchmarks/results/variational_worlds.md).

With more than 40 classes the likelihood counts 16 leading classes and bands of ranks (`Entries`). Large arrays are in
single precision; sums, likelihoods and small equations are in double precision. Whatever is made of all rows (scales,
cells, principal axes, reference rows) comes from predicted probabilities alone, and random choices have fixed seeds: a
map is the same every time, and never sees a label of the rows it is applied to.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from calibrant.numerics import multiclass_features
from calibrant.numerics import multiclass_matrices as matrices
from calibrant.numerics import simplex_kernels as neighbours
from calibrant.numerics.arrays import LOG_FLOOR, Codes, Floats, Reals, Singles, log_softmax
from calibrant.numerics.random_draws import generator
from calibrant.numerics.rows import row_blocks
from calibrant.numerics.simplex_kernels import References, SimplexKernels, Trial

#: First precision of the blocks: slope, functions of the own logit, interactions, top classes, class intercepts, class
#: slopes. Test: tests/numerics/test_multiclass_map.py::test_shares_recovered_with_these_constants.
FIRST_PRECISION = np.array([0.3, 8.0, 40.0, 20.0, 20.0, 40.0])
#: Newton's method stops when a step promises less than this in log-likelihood. Test:
#: tests/numerics/test_multiclass_map.py::test_shares_recovered_with_these_constants.
DECREMENT = 0.02
#: Precisions have settled when they move by less than this, counted in effective parameters. Test:
#: tests/numerics/test_multiclass_map.py::test_shares_recovered_with_these_constants.
_SETTLED = 0.3


class ConditionalLogit:
    """Penalised conditional logit whose precisions per block are set by their marginal likelihood.

    `position` is the entry of each row that was observed; weights add up to the effective number of rows.
    """

    def __init__(self, design: multiclass_features.Design, position: Codes, weight: Singles) -> None:
        self.design, self.position, self.weight = design, position, weight
        self.spread = np.repeat(weight, design.slope.shape[1]).reshape(design.slope.shape)
        self.observed_places = np.arange(len(position)) * design.slope.shape[1] + position
        ends = np.cumsum([0, *design.blocks]).tolist()
        self.blocks = [slice(*pair) for pair in pairwise(ends)]
        self.precision = np.repeat(FIRST_PRECISION, design.blocks)
        self.b = np.zeros(ends[-1])
        outcome = np.zeros(design.slope.shape, np.float32)
        outcome.ravel()[self.observed_places] = weight
        self.observed = design.totals(outcome)
        self.information: multiclass_features.Information | None = None

    def start_from_rows(self, offset: Reals, some: Codes) -> None:
        """Begin where a fit to some of the rows ends."""
        other = ConditionalLogit(self.design.take(some), self.position[some], self.weight[some])
        other.fit(offset[some], updates=4)
        self.b, self.precision = other.b, other.precision

    def fit(self, offset: Reals, *, updates: int) -> Reals:
        """Coefficients by Newton, then precisions, a few times; the contribution to the logits.

        After the first convergence the information matrix is kept: precisions move the optimum only a little.
        """
        fresh, self.eta = self.information is None, offset + self.design.linear(self.b)
        for update in range(updates):
            refreshes = 0 if update else 2 if fresh else 1
            factor = self._newton(steps=2 if update else 8, refreshes=refreshes)
            if self._update_precision(factor) < _SETTLED:
                break
        return np.asarray(self.eta - offset)

    def _newton(self, *, steps: int, refreshes: int) -> multiclass_features.Factor:
        """Newton steps from where the fit is; the first `refreshes` of them renew the information matrix."""
        logs = log_softmax(self.eta)
        for number in range(steps):
            mean = np.exp(logs)
            if self.information is None or number < refreshes:
                self.information = self.design.information(mean, self.weight)
            gradient = self.observed - self.design.totals(mean * self.spread) - self.precision * self.b
            factor = self.information.factor(self.precision)
            step = factor.solve(gradient)
            gain = float(gradient @ step)
            if not gain >= DECREMENT:
                break
            logs = self._move(logs, step, gain)
        return factor

    def _move(self, logs: Reals, step: Floats, gain: float) -> Reals:
        """Take the step, halved until the objective does not fall; a value that is not a number is a failure.

        A step of little gain is not looked at. The log probabilities after the step.
        """
        move, length, before = self.design.linear(step), 1.0, self._objective(logs, self.b) if gain > 1 else -np.inf
        while True:
            b, eta = self.b + length * step, self.eta + np.float32(length) * move
            logs = log_softmax(eta)
            if length <= 1e-3 or gain <= 1 or self._objective(logs, b) >= before:
                self.b, self.eta = b, eta
                return logs
            length /= 2

    def _objective(self, logs: Reals, b: Floats) -> float:
        hit = logs.ravel()[self.observed_places].astype(np.float64)
        return float(hit @ self.weight) - 0.5 * float(self.precision @ b**2)

    def _update_precision(self, factor: multiclass_features.Factor) -> float:
        """Fixed point of the evidence per block; how much it moved, counted in effective parameters."""
        variance, moved = factor.variances(), 0.0
        for block in self.blocks:
            old, own = float(self.precision[block][0]), self.b[block]
            effective = max(len(own) - old * float(variance[block].sum()), 1e-3)
            new = min(max((effective + 0.1) / (float(own @ own) + 0.01), 0.05), 1e5)
            moved = max(moved, abs(math.log(new / old)) * effective)
            self.precision[block] = new
        return moved


#: With many classes, the number of principal scores, and of the rows from which their axes are found. Speed:
#: benchmarks/variational_many.py; axes of other rows differ by sampling error.
PRINCIPAL, PRINCIPAL_ROWS = 48, 12_000
#: Rows that are worked on at once. Speed: benchmarks/variational_many.py; no result depends on it.
_ROWS = 4096


@dataclass(frozen=True, eq=False)
class Prepared:
    """Rows ready for a map: standardised log probabilities (n, r) or their principal scores, and cells of log odds.

    `codes` are (n, F) for F pairs of classes, one for each size of cells, and none with many classes.
    """

    entries: multiclass_features.Entries
    design: multiclass_features.Design
    inputs: Singles
    codes: tuple[NDArray[np.uint8], ...]

    def __len__(self) -> int:
        return len(self.inputs)

    def take(self, rows: Codes | slice) -> Prepared:
        """Some of the rows."""
        codes = tuple(part[rows] for part in self.codes)
        return Prepared(self.entries.take(rows), self.design.take(rows), self.inputs[rows], codes)

    @property
    def probabilities(self) -> Singles:
        """The predicted probabilities of all classes."""
        return np.exp(self.entries.logs)

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

    Probabilities below 1 / (4 `rows`) are not told apart. `axes`, (K, r), are principal axes divided by the spread of
    the log probabilities, whose mean is `mean`; that factor alone, (1, 1), with few classes.
    """

    rows: float
    features: multiclass_features.SharedFeatures
    mean: Singles
    axes: Singles
    cells: tuple[matrices.PairCells, ...]

    @classmethod
    def of(cls, predicted: Reals, *, logits: bool = False) -> tuple[Frame, Prepared]:
        """The frame of these rows, and the rows prepared by it."""
        entries = multiclass_features.Entries.of(predicted, len(predicted), logits=logits)
        logs = entries.logs
        mean = logs.mean(axis=0, dtype=np.float64).astype(np.float32)
        some = logs[:: max(1, len(logs) // 20_000)] - mean
        factor = 1 / (np.sqrt(np.mean(some**2, dtype=np.float64)) + 1e-6)
        few = entries.index is None
        axes = np.ones((1, 1)) if few else _principal_axes(logs, mean)
        cells = tuple(matrices.PairCells.of(logs, *stage) for stage in matrices.STAGES) if few else ()
        frame = cls(
            len(logs), multiclass_features.SharedFeatures.of(entries), mean, (axes * factor).astype(np.float32), cells
        )
        return frame, frame._prepared(entries)

    @property
    def classes(self) -> int:
        """Number of classes."""
        return len(self.mean)

    def prepare(self, predicted: Reals, *, logits: bool = False) -> Prepared:
        """New rows, prepared as those of the frame were."""
        return self._prepared(multiclass_features.Entries.of(predicted, self.rows, logits=logits))

    def _prepared(self, entries: multiclass_features.Entries) -> Prepared:
        codes = tuple(cells.codes(entries.logs) for cells in self.cells)
        return Prepared(entries, self.features.design(entries), self._inputs(entries.logs), codes)

    def _inputs(self, logs: Singles) -> Singles:
        if self.classes <= multiclass_features.FEW_CLASSES:
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
    return np.asarray(eigh(products, subset_by_index=[classes - rank, classes - 1])[1][:, ::-1])


#: With more than twice as many rows, a fit to this many of them gives start and precisions of the first stage. Speed:
#: benchmarks/variational.py; precisions are then updated from all rows.
FIRST_ROWS = 1000
#: With many classes, the most rows of each half in which the precision of the matrix is chosen. Speed:
#: benchmarks/variational_many.py; more rows choose among the same seven precisions.
HALF = 12_000
#: Many classes have local corrections only where rows times classes are at most this. Speed:
#: benchmarks/variational_many.py; of three networks with 100 classes they changed no error by more than 0.2 %
#: (benchmarks/results/variational_stages.md).
LOCAL_SIZE = 4_000_000
#: Points at which the shared function of a class's own log probability is tabulated for many classes, and how far below
#: log 1/(4n) they reach. Derived: steps of 0.02 in log probability at most; compressed logs of all that is not zero in
#: double precision are within log(1 + 745) = 6.6 of log 1/(4n).
_GRID, _BELOW = 2001, 7.0


def cross_fitted(
    predicted: Reals,
    fold: Codes,
    labels: Codes,
    weight: Floats,
    *,
    targets: Sequence[int] | None = None,
    group: Codes | None = None,
) -> Reals:
    """Recalibrated probabilities of every row by the map that was fitted without its fold, in single precision.

    `fold` holds those of one division of the rows, or of several, (d, n), with a result for each: they share features,
    neighbours and kernels. Rows of folds that are no target keep theirs. Rows of one `group` stay together where
    training rows are divided.
    """
    frame, rows = Frame.of(predicted)
    single, position, local = working_weights(weight), rows.entries.positions(labels), Locality.of(rows)
    folds = np.atleast_2d(fold)
    parts = [(d, k) for d, own in enumerate(folds) for k in (range(int(own.max()) + 1) if targets is None else targets)]
    trials = local.trials(labels, single, [folds[d] != k for d, k in parts], group)
    result, averages = np.repeat(predicted[None], len(folds), axis=0), list[tuple[Reals, Codes, SimplexKernels]]()
    for (d, k), trial in zip(parts, trials, strict=True):
        train, own = np.flatnonzero(folds[d] != k), np.flatnonzero(folds[d] == k)
        stages = fit_stages(frame, rows, position, single, train, seed=k, group=group)
        correction, kernels = local.fitted(stages, labels, single, folds[d] != k, trial)
        for block in row_blocks(len(own), frame.classes):
            some = rows.take(own[block])
            logs = correction.added_to(stages.logs(some), some.places)
            result[d, own[block]] = np.exp(np.maximum(logs, np.float32(LOG_FLOOR)))
        if len(kernels.at):
            averages.append((result[d], own, kernels))
    if averages:
        wanted = [(own, kernels.outcome) for _, own, kernels in averages]
        for number, block, sums in neighbours.kernel_sums(rows.probabilities, averages[0][2].at, wanted):
            found, own, kernels = averages[number]
            found[own[block]] = kernels.mixed(found[own[block]].astype(np.float32), sums)
    return result.reshape(*fold.shape, frame.classes)


def working_weights(weight: Floats) -> Singles:
    """Weights in single precision, none of them zero."""
    return np.maximum(weight, 1e-30).astype(np.float32)


@dataclass(frozen=True, eq=False)
class Stages:
    """Stages A, B and T, fitted: coefficients of shared features, then of classes; matrix; tables of pairs."""

    frame: Frame
    coefficients: Floats
    matrix: Floats
    tables: tuple[matrices.PairTables, ...]

    def logs(self, rows: Prepared) -> Reals:
        """Recalibrated log probabilities of all classes."""
        if rows.design.index is not None:
            return self._of_many(rows)
        linear = rows.design.linear(self.coefficients)
        logs = log_softmax(rows.entries.logs + linear + rows.inputs @ self.matrix.astype(np.float32))
        for cells, codes, tables in zip(self.frame.cells, rows.codes, self.tables, strict=True):
            logs = tables.added_to(logs, codes, cells)
        return logs

    def _of_many(self, rows: Prepared) -> Reals:
        """Every class by the shared function of its own log probability; the leading ones by all features."""
        entries, shared, b = rows.entries, self.frame.features, self.coefficients
        z, classes = entries.logs, entries.classes
        intercept, slope = np.split(b[multiclass_features.SHARED :].astype(np.float32), [classes])
        low = -float(np.log(4 * self.frame.rows)) - _BELOW
        grid = np.linspace(low, 0, _GRID)
        end = 1 + multiclass_features.OWN[0]
        own = shared.of_own(multiclass_features.log_odds_of_logs(grid)) @ b[1:end]
        place = np.maximum(np.rint((z - np.float32(low)) * np.float32((_GRID - 1) / -low)), 0).astype(np.int32)
        result: Reals = own.astype(np.float32)[place]
        top = shared.of_top(entries.doubt) @ b[end : end + multiclass_features.TOP[0]]
        result += z * (1 + ((b[0] + top)[:, None] / shared.scale).astype(np.float32))
        result += z * (slope / np.float32(shared.scale))
        result += intercept
        index = rows.design.leading
        lead = entries.log_mass + rows.design.linear(b)
        if self.matrix.any():
            lead += matrices.leading_logits(rows.inputs, self.matrix, index)
        np.put_along_axis(
            result, index[:, : multiclass_features.LEADING], lead[:, : multiclass_features.LEADING], axis=1
        )
        return log_softmax(result)


def fit_stages(
    frame: Frame, rows: Prepared, position: Codes, weight: Singles, train: Codes, *, seed: int, group: Codes | None
) -> Stages:
    """Stages A and B in two turns, each with the other as offset, then the tables; from the rows `train`."""
    offset, position, weight = rows.entries.log_mass[train], position[train], weight[train]
    shared = ConditionalLogit(rows.design.take(train), position, weight)
    fit = _fit_few if shared.design.index is None else _fit_many
    matrix, logits = fit(shared, rows.inputs[train], offset, seed, None if group is None else group[train])
    tables, logs = [], log_softmax(logits)
    for cells, codes in zip(frame.cells, rows.codes, strict=True):
        tables.append(matrices.fit_tables(cells, codes[train], logs, position, weight))
        logs = tables[-1].added_to(logs, codes[train], cells)
    return Stages(frame, shared.b, matrix, tuple(tables))


def _fit_few(
    shared: ConditionalLogit, inputs: Singles, offset: Reals, seed: int, group: Codes | None
) -> tuple[Floats, Reals]:
    """Stages A and B where all classes are entries: the matrix, and the logits of the rows."""
    many = len(offset) > 2 * FIRST_ROWS
    if many:
        some = generator(seed, "first rows of a map").permutation(len(offset))[:FIRST_ROWS]
        shared.start_from_rows(offset, some)
    matrix = matrices.ResidualMatrix(inputs, shared.position, shared.weight)
    own = shared.fit(offset, updates=2 if many else 4)
    residual = matrix.fit(offset + own, updates=4)
    own = shared.fit(offset + residual, updates=1)
    return matrix.matrix, offset + own + matrix.fit(offset + own, updates=2)


def _fit_many(
    shared: ConditionalLogit, inputs: Singles, offset: Reals, seed: int, group: Codes | None
) -> tuple[Floats, Reals]:
    """The same where leading classes and bands are entries; half of the rows choose the precision of the matrix."""
    design = shared.design
    matrix = matrices.LeadingMatrix(inputs, design.leading, shared.position, shared.weight, design.classes)
    first, second = _halves(len(offset), seed, group)
    shared.start_from_rows(offset, first)
    matrix.choose_precision(offset + design.linear(shared.b), first, second)
    own = shared.fit(offset, updates=2)
    residual = matrix.fit(offset + own)
    own = shared.fit(offset + residual, updates=1)
    return matrix.matrix, offset + own + matrix.fit(offset + own)


def _halves(rows: int, seed: int, group: Codes | None) -> tuple[Codes, Codes]:
    """Two parts of the rows in random order, of equal size but for groups, which are in one of them only."""
    rng = generator(seed, "halves of a map")
    half = min(max(rows // 2, 1), HALF)
    if group is None:
        order = rng.permutation(rows)
        return order[:half], order[half : 2 * half]
    unit = np.unique(group, return_inverse=True)[1]
    key = rng.permutation(int(unit.max()) + 1)[unit]
    order = np.argsort(key, kind="stable")
    end = int(np.searchsorted(key[order], key[order[half - 1]], side="right"))
    return order[:end], order[end : end + half]


@dataclass(frozen=True, eq=False)
class Locality:
    """Reference rows, prepared, and the neighbours of some of them; found without labels. None of it with no rows."""

    references: References | None
    rows: Prepared | None
    near: NDArray[np.intp]

    @classmethod
    def of(cls, rows: Prepared) -> Locality:
        """References among these rows, unless there are too many numbers to look at."""
        entries = rows.entries
        if entries.index is not None and entries.logs.size > LOCAL_SIZE:
            return cls(None, None, np.empty((0, 0), np.intp))
        references = References.of(rows.places)
        return cls(references, rows.take(references.rows), references.neighbours_of_sample())

    def trials(
        self, labels: Codes, weight: Singles, trains: Sequence[NDArray[np.bool_]], group: Codes | None = None
    ) -> list[Trial] | list[None]:
        """What decides the weights of the kernels, for each of several choices of training rows."""
        if self.references is None or self.rows is None or self.rows.entries.index is not None:
            return [None] * len(trains)
        chosen = self.references.rows
        group, usable = None if group is None else group[chosen], [train[chosen] for train in trains]
        return Trial.each(self.probabilities, labels[chosen], weight[chosen], usable, group)

    def fitted(
        self, stages: Stages, labels: Codes, weight: Singles, train: NDArray[np.bool_], trial: Trial | None = None
    ) -> tuple[Correction, SimplexKernels]:
        """Stage C, from the references among the training rows, and the kernels that are averaged with it."""
        classes = stages.frame.classes
        if self.references is None or self.rows is None:
            return Correction.none(classes), SimplexKernels.none(classes)
        chosen = self.references.rows
        logs, label, usable = stages.logs(self.rows), labels[chosen], train[chosen]
        surplus, expected = neighbours.counts(logs, label, weight[chosen])
        sample = np.flatnonzero(usable[: len(self.near)])
        ratios = neighbours.log_ratios(self.near[sample], usable, surplus, expected, np.exp(logs[sample]))
        b = neighbours.local_coefficients(ratios, logs[sample], label[sample], weight[chosen][sample])
        correction, logs = Correction.none(classes), logs[sample]
        if b.any():
            correction = Correction(self.references.at[usable], surplus[usable], expected[usable], b)
            logs = neighbours.corrected(logs, ratios, b)
        if trial is None:
            return correction, SimplexKernels.none(classes)
        return correction, SimplexKernels.fit(self.probabilities, trial, logs[np.searchsorted(sample, trial.rows)])

    @cached_property
    def probabilities(self) -> Singles:
        """Predicted probabilities of the references."""
        assert self.rows is not None
        return self.rows.probabilities


@dataclass(frozen=True, eq=False)
class Correction:
    """Stage C, fitted: where the training references are, what they hold, and how far that is believed."""

    at: Singles
    surplus: Reals
    expected: Reals
    coefficients: Floats

    @classmethod
    def none(cls, classes: int) -> Correction:
        """No correction."""
        nothing = np.empty((0, classes), np.float32)
        return cls(nothing[:, :0], nothing, nothing, np.zeros(len(neighbours.SIZES)))

    def added_to(self, logs: Reals, places: Singles) -> Reals:
        """Log probabilities of rows at these places, corrected."""
        if not len(self.at):
            return logs
        references = References(np.arange(len(self.at)), self.at)
        near = references.nearest(places, max(neighbours.SIZES))
        usable = np.ones(len(self.at), dtype=bool)
        ratios = neighbours.log_ratios(near, usable, self.surplus, self.expected, np.exp(logs))
        return neighbours.corrected(logs, ratios, self.coefficients)
