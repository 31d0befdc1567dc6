r"""Confusions between classes: penalised matrices on log probabilities, and tables of two log odds.

`ResidualMatrix`, for few classes, is a full matrix with one precision chosen by marginal likelihood. `LeadingMatrix`,
for many classes, leads from a few principal scores to the leading classes of each row. For its many parameters the
marginal likelihood misjudges the shrinkage, so the precision is chosen on rows that no part of the map has seen.

`PairTables` asks whether the odds of one pair of classes depend on where another pair stands. The log
odds of the leading pairs of classes are divided into cells. In each round every pair is offered the tables of its own
cells by the cells of each other pair. With residuals r = y - q and log odds d of the pair (a, b), the sums

.. math:: G = \sum_i w_i (r_{ia} - r_{ib}), \qquad V = \sum_i w_i \bigl[q_{ia} + q_{ib} - (q_{ia} - q_{ib})^2\bigr]

of every cell give :math:`X^2 = \sum G^2 / V`, and the table with the largest excess of it over its degrees of freedom
adds :math:`\tfrac12 (1 - \mathrm{df}/X^2)\, G / V` to the logit of a and takes it from that of b.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import fmin_l_bfgs_b, minimize
from scipy.sparse import csr_array

from calibrant.numerics.arrays import Codes, Floats, Reals, Singles, log_softmax, row_max, row_sum, softmax
from calibrant.numerics.multiclass_features import LEADING

#: Precisions that are tried, strong to weak. Test:
#: tests/numerics/test_multiclass_map.py::test_shares_recovered_with_these_constants.
PRECISIONS = 4000.0 / 2.5 ** np.arange(7)
#: Steps of L-BFGS of each trial, and of the final fits. Test:
#: tests/numerics/test_multiclass_map.py::test_shares_recovered_with_these_constants.
TRIAL_ITERATIONS, FINAL_ITERATIONS = 5, 6
#: Trials end after two losses in a row, or one of this many units of log-likelihood. Speed:
#: benchmarks/variational_many.py; losses grow from there on.
_GREAT_LOSS = 8.0
#: Up to this many classes all logits are formed and the leading ones taken; with more they are formed one by one.
#: Speed: benchmarks/variational_many.py; no result depends on it.
_ALL_AT_ONCE = 200
#: Rows that are worked on at once. Speed: benchmarks/variational_many.py; no result depends on it.
_ROWS = 4096


@dataclass(eq=False)
class LeadingMatrix:
    """Ridged (r, K) matrix from inputs (n, r) to the leading classes of each row; precision 0 where it is not used.

    `index`, (n, M), is the class of each entry, leading classes first, and `position` the entry that was observed.
    """

    inputs: Singles
    index: NDArray[np.int32]
    position: Codes
    weight: Singles
    classes: int
    precision: float = 0.0

    def __post_init__(self) -> None:
        self.matrix = np.zeros((self.inputs.shape[1], self.classes))

    def choose_precision(self, offset: Reals, train: Codes, judge: Codes) -> None:
        """The precision that, fitted to the rows `train`, predicts the rows `judge` best; 0 if none gains.

        The offset must be that of a map which has not seen the rows `judge` either.
        """
        fitted, held = self._take(train), self._take(judge)
        information, best, losses = fitted._information(offset[train]), held._log_likelihood(offset[judge]), 0
        for precision in PRECISIONS:
            fitted.precision = float(precision)
            fitted._optimise(offset[train], information, TRIAL_ITERATIONS)
            now = held._log_likelihood(offset[judge] + leading_logits(held.inputs, fitted.matrix, held.index))
            if now > best:
                best, losses = now, 0
                self.precision, self.matrix = float(precision), fitted.matrix
            else:
                losses += 1
            if losses == 2 or now < best - _GREAT_LOSS:
                break

    def fit(self, offset: Reals) -> Reals:
        """The matrix at the chosen precision; its contribution to the logits of the entries."""
        if not self.precision:
            return np.zeros_like(offset)
        self._optimise(offset, self._information(offset), FINAL_ITERATIONS)
        return leading_logits(self.inputs, self.matrix, self.index)

    def _take(self, rows: Codes) -> LeadingMatrix:
        return LeadingMatrix(self.inputs[rows], self.index[rows], self.position[rows], self.weight[rows], self.classes)

    def _log_likelihood(self, logits: Reals) -> float:
        logs = log_softmax(logits)[np.arange(len(logits)), self.position]
        return float(logs.astype(np.float64) @ self.weight)

    def _information(self, offset: Reals) -> Floats:
        """The diagonal of the information matrix, (r, K)."""
        p = np.exp(log_softmax(offset))
        return np.maximum(self._pulled(p * (1 - p) * self.weight[:, None], self.inputs**2), 1e-9)

    def _pulled(self, q: Reals, inputs: Reals) -> Floats:
        """Sums over rows of inputs times q of the leading classes, by class: (r, K)."""
        n = len(q)
        leading, ends = np.ascontiguousarray(self.index[:, :LEADING]), np.arange(0, n * LEADING + 1, LEADING)
        by_class = csr_array((q[:, :LEADING].ravel(), leading.ravel(), ends), shape=(n, self.classes))
        return np.asarray(by_class.T @ inputs, dtype=np.float64).T

    def _optimise(self, offset: Reals, information: Floats, iterations: int) -> None:
        rows, shape = np.arange(len(offset)), self.matrix.shape
        outcome = np.zeros_like(offset)
        outcome[rows, self.position] = self.weight
        observed, unit = self._pulled(outcome, self.inputs), 1 / np.sqrt(information + self.precision)

        def objective(x: Floats) -> tuple[float, Floats]:
            matrix = x.reshape(shape) * unit
            logits = offset + leading_logits(self.inputs, matrix, self.index)
            logits -= row_max(logits)
            hit = logits[rows, self.position].astype(np.float64)
            p = np.exp(logits, out=logits)
            total = row_sum(p)
            loss = float(self.weight @ (np.log(total[:, 0], dtype=np.float64) - hit))
            p *= self.weight[:, None] / total
            gradient = self._pulled(p, self.inputs) - observed + self.precision * matrix
            return loss + 0.5 * self.precision * float((matrix**2).sum()), (gradient * unit).ravel()

        options = {"maxiter": iterations, "maxcor": 8, "ftol": 1e-6, "gtol": 2e-2}
        found = minimize(objective, (self.matrix / unit).ravel(), jac=True, method="L-BFGS-B", options=options)
        self.matrix = found.x.reshape(shape) * unit


def leading_logits(inputs: Reals, matrix: Floats, index: NDArray[np.int32]) -> Reals:
    """Inputs times the columns of the matrix that belong to the leading classes; zero for the other entries."""
    result = np.zeros(index.shape, np.float32)
    leading = index[:, :LEADING]
    if matrix.shape[1] <= _ALL_AT_ONCE:
        result[:, :LEADING] = np.take_along_axis(inputs @ matrix.astype(np.float32), leading, axis=1)
        return result
    columns = np.ascontiguousarray(matrix.T, np.float32)
    for start in range(0, len(inputs), _ROWS):
        rows = slice(start, start + _ROWS)
        result[rows, :LEADING] = np.einsum("nr,nmr->nm", inputs[rows], columns[leading[rows]])
    return result


#: The first precision, as a share of the mean information. It is weak on purpose: from a strong start the marginal
#: likelihood sticks there and misses signal, from a weak one it still shrinks to nothing on calibrated rows. Test:
#: tests/numerics/test_multiclass_map.py::test_shares_recovered_with_these_constants.
WEAK_START = 0.02
#: Steps of L-BFGS between two precisions. Test:
#: tests/numerics/test_multiclass_map.py::test_shares_recovered_with_these_constants.
ITERATIONS = 12


class ResidualMatrix:
    """Ridged k x k matrix on standardised log probabilities, one precision by marginal likelihood.

    The information matrix is approximated by a Kronecker product of that of the classes and that of the inputs. Weights
    add up to the effective number of rows.
    """

    def __init__(self, inputs: Singles, labels: Codes, weight: Singles) -> None:
        self.inputs, self.weight, rows = inputs, weight, np.arange(len(labels))
        self.columns, self.observed_places = np.ascontiguousarray(inputs.T), labels * len(labels) + rows
        outcome = np.zeros(inputs.shape, np.float32)
        outcome[rows, labels] = weight
        self.observed = (inputs.T @ outcome).astype(np.float64)
        values, self.axes = np.linalg.eigh(((inputs * weight[:, None]).T @ inputs).astype(np.float64))
        self.spread = np.maximum(values, 1e-9)
        self.precision = 0.0
        self.matrix = np.zeros((inputs.shape[1],) * 2)

    def fit(self, offset: Reals, *, updates: int) -> Reals:
        """Fit the matrix and its precision alternately; the contribution to the logits."""
        p = softmax(offset)
        weighted = p * self.weight[:, None]
        curvature = np.diag(weighted.sum(axis=0, dtype=np.float64)) - weighted.T @ p
        values, turn = np.linalg.eigh(curvature / self.weight.sum(dtype=np.float64))
        information = self.spread[:, None] * np.maximum(values, 1e-12)
        if not self.precision:
            self.precision = float(information.mean()) * WEAK_START
        for _ in range(updates):
            self.matrix = self._optimum(offset, information, turn)
            old, size = self.precision, float((self.matrix**2).sum())
            effective = float((information / (information + old)).sum())
            moved = ((effective + 0.5) / (old * size + 0.5)) ** 1.5
            self.precision = float(np.clip(old * moved, 1e-2, 1e7))
            if abs(np.log(self.precision / old)) < 0.2:
                break
        return self.inputs @ self.matrix.astype(np.float32)

    def _optimum(self, offset: Reals, information: Floats, turn: Floats) -> Floats:
        unit = 1 / np.sqrt(information + self.precision)
        shape = self.matrix.shape
        offset = np.ascontiguousarray(offset.T)  # what is done per row is faster with rows as columns
        start = slope = ((self.axes.T @ self.matrix @ turn) / unit).ravel()  # values are asked for before slopes

        def objective(x: Floats) -> float:
            nonlocal slope
            matrix = self.axes @ (x.reshape(shape) * unit) @ turn.T
            logits = offset + matrix.T.astype(np.float32) @ self.columns
            logits -= logits.max(axis=0)
            hit = logits.ravel()[self.observed_places].astype(np.float64)
            p = np.exp(logits, out=logits)
            total = p.sum(axis=0)
            loss = float(self.weight @ (np.log(total, dtype=np.float64) - hit))
            p *= self.weight / total
            gradient = self.columns @ p.T - self.observed + self.precision * matrix
            loss += 0.5 * self.precision * float((matrix**2).sum())
            slope = ((self.axes.T @ gradient @ turn) * unit).ravel()
            return loss

        options = {"m": 8, "factr": 1e-5 / np.finfo(float).eps, "pgtol": 2e-2, "maxiter": ITERATIONS}
        # `minimize` calls the same code, and takes a quarter longer.
        found = fmin_l_bfgs_b(objective, start, fprime=lambda x: slope, **options)[0]
        result: Floats = self.axes @ (found.reshape(shape) * unit) @ turn.T
        return result


#: Numbers of pairs of classes and of cells of their log odds, coarse cells first. Test:
#: tests/numerics/test_multiclass_map.py::test_shares_recovered_with_these_constants.
STAGES = ((45, 4), (15, 8))
#: Rounds per stage, at most. Speed: rounds end where no table gains enough; twelve bound the time where many do.
ROUNDS = 12
#: Excess of the chi-square over its degrees of freedom, in standard deviations: for use, and to be looked at again.
#: Test: tests/numerics/test_multiclass_map.py::test_shares_recovered_with_these_constants.
USED, KEPT = 7.0, 4.0
#: Information below which a cell is not used. Derived: five expected events, as in Pearson's test.
LEAST_INFORMATION = 5.0
#: Units of log-likelihood that each table of a round must gain. Derived: what noise gains on average in the sixteen
#: cells of a coarse table.
LEAST_GAIN = 8.0
#: Share of the Newton step that a table takes, and its largest size. Test:
#: tests/numerics/test_multiclass_map.py::test_shares_recovered_with_these_constants.
_STEP, _LARGEST = 0.5, 1.5
#: Rows of a higher top confidence are left out. Derived: they hold less than 4 % of the information of an even row.
_CONFIDENT = float(np.log(0.99))
#: From about how many rows edges of cells are found. Speed: benchmarks/variational.py; edges move by sampling error.
_EDGE_ROWS = 4000


@dataclass(frozen=True, eq=False)
class PairCells:
    """Pairs of classes, (F,), and edges (F, B - 1) of cells of their log odds; infinite where there are fewer cells."""

    first: Codes
    second: Codes
    edges: Floats

    @classmethod
    def of(cls, logs: Singles, pairs: int, cells: int) -> PairCells:
        """The pairs with the largest sum of products of their probabilities."""
        p = np.exp(logs)
        first, second = np.triu_indices(logs.shape[1], 1)
        chosen = np.sort(np.argsort(-(p.T @ p)[first, second], kind="stable")[:pairs])
        first, second = first[chosen], second[chosen]
        some = logs[:: max(1, len(logs) // _EDGE_ROWS)]
        edges = [_edges(some[:, a] - some[:, b], cells) for a, b in zip(first, second, strict=True)]
        return cls(first, second, np.array(edges))

    @property
    def cells(self) -> int:
        """Number of cells of each pair."""
        return self.edges.shape[1] + 1

    def codes(self, logs: Singles) -> NDArray[np.uint8]:
        """The cell of each row for each pair, (n, F)."""
        result = np.empty((len(logs), len(self.first)), np.uint8)
        for j, edges in enumerate(self.edges):
            odds = logs[:, self.first[j]] - logs[:, self.second[j]]
            result[:, j] = np.searchsorted(edges, odds, side="right")
        return result


def _edges(odds: Reals, cells: int) -> Floats:
    """Zero and quantiles on either side of it, filled up with infinity."""
    half, found = cells // 2, [np.zeros(1)]
    for side in (odds[odds < 0], odds[odds >= 0]):
        if len(side) > 8 * half:
            place = np.arange(1, half) / half * (len(side) - 1)
            found.append(np.interp(place, np.arange(len(side)), np.sort(side)))
    edges = np.unique(np.concatenate(found))
    return np.append(edges, np.full(cells - 1 - len(edges), np.inf))


@dataclass(frozen=True, eq=False)
class PairTables:
    """Fitted tables: values (T, B, B), by cell of the pair and of the other, that add to the log odds of the pair."""

    pair: Codes
    other: Codes
    values: Floats

    def added_to(self, logs: Reals, codes: NDArray[np.uint8], cells: PairCells) -> Reals:
        """Log probabilities with the tables added; those given where there are no tables."""
        if not len(self.pair):
            return logs
        result = logs.copy()
        for pair, other, values in zip(self.pair, self.other, self.values.astype(np.float32), strict=True):
            move = np.take(values, codes[:, pair] * np.uint8(cells.cells) + codes[:, other])
            result[:, cells.first[pair]] += move
            result[:, cells.second[pair]] -= move
        return log_softmax(result)


def fit_tables(cells: PairCells, codes: NDArray[np.uint8], logs: Reals, labels: Codes, weight: Singles) -> PairTables:
    """Tables for the interactions that stand out in these rows."""
    some = np.flatnonzero(row_max(logs)[:, 0] < _CONFIDENT)
    codes, logs, labels, weight = codes[some], logs[some], labels[some], weight[some]
    live, total = np.arange(len(cells.first)), dict[tuple[int, int], Floats]()
    information = _cell_sums(cells, codes, live, lambda rows: _information(cells, logs[rows], weight[rows]))
    for _ in range(ROUNDS):
        gap = _cell_sums(cells, codes, live, partial(_gaps, cells, live, logs, labels, weight))
        found, again = _candidates(gap, information[live], live)
        live = live[again]
        if not found:
            break
        one = PairTables(*(np.array(part) for part in zip(*found, strict=True)))
        step, logs = _step_that_gains(one, cells, codes, logs, labels, weight)
        if not step:
            break
        for pair, other, values in found:
            total[pair, other] = total.get((pair, other), np.zeros_like(values)) + step * values
    keys = np.array(list(total), dtype=np.intp).reshape(-1, 2)
    values = np.array(list(total.values())).reshape(-1, cells.cells, cells.cells)
    return PairTables(keys[:, 0], keys[:, 1], values)


def _step_that_gains(
    tables: PairTables, cells: PairCells, codes: NDArray[np.uint8], logs: Reals, labels: Codes, weight: Singles
) -> tuple[float, Reals]:
    """The first of the halved steps that gains enough, and the log probabilities after it; 0 if none does."""
    rows = np.arange(len(labels))
    before, step = logs[rows, labels].astype(np.float64), 1.0
    while step > 0.1:
        part = PairTables(tables.pair, tables.other, step * tables.values)
        trial = part.added_to(logs, codes, cells)
        gain = float(weight @ (trial[rows, labels].astype(np.float64) - before))
        if gain > LEAST_GAIN * step * len(tables.pair):
            return step, trial
        step /= 2
    return 0.0, logs


def _candidates(
    gap: Floats, information: Floats, live: Codes
) -> tuple[list[tuple[int, int, Floats]], NDArray[np.bool_]]:
    """The best table of each live pair if it stands out, and which pairs are worth another look."""
    usable = information > LEAST_INFORMATION
    safe = np.where(usable, information, 1.0)
    square = np.where(usable, gap**2 / safe, 0.0).sum(axis=(1, 3))
    freedom = np.maximum(usable.sum(axis=(1, 3)), 1)
    spread = np.maximum(np.where(usable, 2 + 1 / safe, 0.0).sum(axis=(1, 3)), 2.0)
    score = (square - freedom) / np.sqrt(spread)
    best = score.argmax(axis=1)
    found = []
    for i, j in enumerate(best):
        if score[i, j] > USED:
            shrunk = _STEP * (1 - freedom[i, j] / square[i, j])
            values = np.where(usable[i, :, j], shrunk * gap[i, :, j] / safe[i, :, j], 0.0)
            found.append((int(live[i]), int(j), np.clip(values, -_LARGEST, _LARGEST)))
    return found, score[np.arange(len(live)), best] > KEPT


def _gaps(cells: PairCells, live: Codes, logs: Reals, labels: Codes, weight: Singles, rows: slice) -> Reals:
    """Weighted residuals of the first class of each live pair less those of the second."""
    first, second, label = cells.first[live], cells.second[live], labels[rows, None]
    q = np.exp(logs[rows])
    gap = np.take(q, second, axis=1) - np.take(q, first, axis=1)
    gap += label == first
    gap -= label == second
    return gap * weight[rows, None]


def _information(cells: PairCells, logs: Reals, weight: Singles) -> Reals:
    """Weighted variances of the same for all pairs; they change so little that those of the first round are kept."""
    q = np.exp(logs)
    a, b = np.take(q, cells.first, axis=1), np.take(q, cells.second, axis=1)
    return (a + b - (a - b) ** 2) * weight[:, None]


def _cell_sums(cells: PairCells, codes: NDArray[np.uint8], live: Codes, values: Callable[[slice], Reals]) -> Floats:
    """Sums of values (rows, live) by cell of each live pair and cell of every pair: (live, B, F, B).

    They are products of indicator columns, which are made block by block.
    """
    size, pairs = cells.cells, len(cells.first)
    total = np.zeros((len(live) * size, pairs * size))
    unit = np.eye(size, dtype=np.float32)
    for start in range(0, len(codes), _ROWS):
        rows = slice(start, start + _ROWS)
        column = np.take(unit, codes[rows], axis=0)
        own = column if len(live) == pairs else np.take(column, live, axis=1)
        own = own.reshape(len(column), -1) * np.repeat(values(rows), size, axis=1)
        total += own.T @ column.reshape(len(column), -1)
    return total.reshape(len(live), size, pairs, size)
