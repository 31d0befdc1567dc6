"""Expressions that fitted maps are made of, and scores as expressions of columns.

Engines differ from NumPy in the last bit of logarithms and exponentials. That does not matter to a smooth map, but a
map with steps has them at training scores, where one bit is a whole step. So steps are not looked up in a transformed
score: the last number of the column that lies below each step is found here, and the column is compared with it.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from calibrant.data.features import Feature
from calibrant.data.validation import fail
from calibrant.numerics.arrays import LOG_FLOOR, Floats
from calibrant.numerics.boosting import NO_CUT, Table
from calibrant.recalibrate.inputs import LARGEST_LOGIT, Scores

#: Exponents are kept within this range: PostgreSQL refuses the exponentials of larger ones, and of smaller ones too.
#: Derived: just below 708.4, the logarithm of one over the smallest normal double, and 709.8, that of the largest.
_EXPONENT = 700.0
#: Branches of each CASE. More make nested expressions less deep (SQLite's parser takes some dozen levels), but slower.
#: Speed: comparisons per row against levels of nesting; no result depends on it.
_BRANCHES = 4
#: Characters of the longest expressions that are written.
#: Test: tests/recalibrate/test_expressions.py::test_long_expressions_are_refused.
LONGEST = 8_000_000
#: Characters of a number, and of what stands around each part, about.
#: Derived: seventeen digits, a sign, a point and an exponent; an operator or a comma with spaces.
_NUMBER, _MARKS = 24, 4


def _operator(kind: str) -> Callable[[Expression, Operand], Expression]:
    return lambda self, other: Expression(kind, (self, operand(other)))


def _reflected(kind: str) -> Callable[[Expression, Operand], Expression]:
    return lambda self, other: Expression(kind, (operand(other), self))


@dataclass(frozen=True)
class Expression:
    """A node of the tree: an operation and its parts.

    It is a "number", a "column" (its value says which), a "cast" to double precision, an operator, a function, "AND" or
    a "case": a condition and a value for each branch, then perhaps the value where none holds, which else is missing.
    Of columns of features it is also "IN" (its texts), "holds" (a truth value) or "IS NULL".
    """

    kind: str
    parts: tuple[Expression, ...] = ()
    value: float = 0.0
    texts: tuple[str, ...] = ()
    #: Characters of its text, about. Parts may be shared, their texts not.
    size: int = field(default=_NUMBER, init=False, compare=False)

    def __post_init__(self) -> None:
        if self.parts:
            size = sum(part.size + _MARKS for part in self.parts) + sum(len(text) + _MARKS for text in self.texts)
            object.__setattr__(self, "size", size)
            if size > LONGEST:
                long = f"its expression would be more than {LONGEST:,} characters long"
                fail(f"The map has too many parts for SQL: {long}. Use predict_proba.", ValueError)

    def __neg__(self) -> Expression:
        return Expression("negative", (self,))

    __add__, __radd__ = _operator("+"), _reflected("+")
    __sub__, __rsub__ = _operator("-"), _reflected("-")
    __mul__, __rmul__ = _operator("*"), _reflected("*")
    __truediv__, __rtruediv__ = _operator("/"), _reflected("/")
    __le__, __ge__, __lt__, __gt__ = map(_operator, ("<=", ">=", "<", ">"))


Operand = Expression | float


def number(value: float) -> Expression:
    """A number of double precision."""
    return Expression("number", value=float(value))


def operand(value: Operand) -> Expression:
    """The expression, or a number as one."""
    return value if isinstance(value, Expression) else number(value)


def function(name: Literal["LN", "EXP", "ABS", "GREATEST", "LEAST", "AND", "cast"], *parts: Operand) -> Expression:
    """A function of expressions."""
    return Expression(name, tuple(map(operand, parts)))


def total(terms: Iterable[Expression]) -> Expression:
    """The sum of expressions, from left to right."""
    listed = tuple(terms)
    return listed[0] if len(listed) == 1 else Expression("+", listed)


def within(x: Expression, low: float, high: float) -> Expression:
    """The expression, or the bound that it exceeds; infinite bounds are none."""
    x = x if low == -np.inf else function("GREATEST", x, low)
    return x if high == np.inf else function("LEAST", x, high)


def exp(x: Expression) -> Expression:
    """The exponential of an exponent of any size."""
    return function("EXP", within(x, -_EXPONENT, _EXPONENT))


def floored_log(p: Expression) -> Expression:
    """The logarithm of a probability, of 0 too."""
    return function("LN", function("GREATEST", p, np.exp(LOG_FLOOR)))


def expit(log_odds: Expression, *, largest: float = np.inf) -> Expression:
    """The probability at log odds whose size is at most about `largest`."""
    return 1.0 / (1.0 + (function("EXP", -log_odds) if largest < _EXPONENT / 2 else exp(-log_odds)))


def kept_from_certainty(q: Expression, p: Expression, floor: float) -> Expression:
    """The probability q, kept between the lesser of p and the floor, and the greater of p and its complement."""
    low, high = within(p, -np.inf, floor), function("GREATEST", p, 1 - floor)
    return function("LEAST", function("GREATEST", q, low), high)


def all_at_least(q: Sequence[Expression], p: Sequence[Expression], floor: float) -> list[Expression]:
    """Multiclass probabilities q, none below the lesser of p and the floor, the others scaled."""
    least = [within(part, -np.inf, floor) for part in p]
    spare = [function("GREATEST", part - low, 0.0) for part, low in zip(q, least, strict=True)]
    factor = (1.0 - total(least)) / total(spare)
    return [low + rest * factor for low, rest in zip(least, spare, strict=True)]


def softmax(logits: Sequence[Expression]) -> list[Expression]:
    """The probabilities of logits."""
    return [1.0 / _ratios(logits, k) for k in range(len(logits))]


def log_softmax(logits: Sequence[Expression]) -> list[Expression]:
    """The logarithms of the probabilities of logits, at least -700."""
    return [-function("LN", _ratios(logits, k)) for k in range(len(logits))]


def _ratios(logits: Sequence[Expression], k: int) -> Expression:
    """The sum of the probabilities of all classes over that of class `k`."""
    return total(number(1) if j == k else exp(logit - logits[k]) for j, logit in enumerate(logits))


def normalised(p: Sequence[Expression]) -> list[Expression]:
    """Probabilities divided by their sum; the same for all classes where that is 0."""
    whole = total(p)
    return [Expression("case", (whole > 0.0, part / whole, number(1 / len(p)))) for part in p]


def log_sum_exp(logits: Sequence[Expression]) -> Expression:
    """The logarithm of the sum of exponentials of logits of any size."""
    if len(logits) == 1:
        return logits[0]
    top = function("GREATEST", *logits)
    return top + function("LN", total(exp(logit - top) for logit in logits))


def polynomial(x: Expression, coefficients: Sequence[float] | Floats) -> Expression:
    """The polynomial with these coefficients, the constant first."""
    *lower, result = map(number, coefficients)
    for coefficient in reversed(lower):
        result = coefficient + x * result
    return result


def beta_log_odds(x: Expression, a: float, b: float, c: float) -> Expression:
    """The log odds a log p - b log(1 - p) + c, at the log odds x of p."""
    rest = function("LN", 1.0 + exp(-function("ABS", x)))  # -log p is this, or this and |x|
    above, below = function("GREATEST", x, 0.0), within(x, -np.inf, 0.0)
    return total([b * above, a * below, (b - a) * rest, number(c)])


def mixture(shares: Sequence[float] | Floats, parts: Sequence[Expression]) -> Expression:
    """The sum of the parts times their shares."""
    return total(float(share) * part for share, part in zip(shares, parts, strict=True))


def pieces_by_cuts(searched: Expression, cuts: Floats, pieces: Sequence[Expression]) -> Expression:
    """Piece number k of the expressions where what is searched lies in (cuts[k - 1], cuts[k]].

    A cut of minus infinity, or not above the one before, has no piece; neighbours that are the same are one.
    """
    kept: list[tuple[float, Expression]] = []
    for cut, piece in zip([*cuts.tolist(), np.inf], pieces, strict=True):
        if cut == -np.inf or (kept and cut <= kept[-1][0]):
            continue
        if kept and kept[-1][1] == piece:
            kept.pop()
        kept.append((cut, piece))
    return _nested(searched, kept)


def _nested(searched: Expression, pieces: Sequence[tuple[float, Expression]]) -> Expression:
    """Expressions with their last numbers, nested so that a row is compared about log n times."""
    if len(pieces) == 1:
        return pieces[0][1]
    size = -(-len(pieces) // _BRANCHES)
    *groups, last = [pieces[start : start + size] for start in range(0, len(pieces), size)]
    branches = [part for group in groups for part in (searched <= group[-1][0], _nested(searched, group))]
    return Expression("case", (*branches, _nested(searched, last)))


Reading = Literal["probability", "log_odds"]

#: Relative width of what rounding may do to a transformed score.
#: Derived: some hundred units in the last place of a double, 1.1e-16.
_ROUNDING = 1e-13


@dataclass(frozen=True)
class ScoreExpressions:
    """Scores whose rows are those of a table: one column of double precision, the second class's, or one per class."""

    columns: tuple[Expression, ...]
    logits: bool
    #: Whether the engine finds the very numbers that NumPy finds: not those of transformed columns.
    exact: bool = True

    @property
    def classes(self) -> int:
        """Number of classes: two for a single column."""
        return max(len(self.columns), 2)

    @property
    def _bounded(self) -> tuple[Expression, ...]:
        """The columns, logits within their bounds."""
        if not self.logits:
            return self.columns
        return tuple(within(column, -LARGEST_LOGIT, LARGEST_LOGIT) for column in self.columns)

    @property
    def _variable(self) -> Expression:
        """The probability of the second class, or its log odds for logits: what steps are looked up in."""
        if len(self.columns) == 1:
            return self.columns[0]
        first, second = self._bounded
        return second - first if self.logits else second / (first + second)

    @property
    def largest_log_odds(self) -> float:
        """Bound of the size of the log odds."""
        return 2 * LARGEST_LOGIT if self.logits else -LOG_FLOOR

    @property
    def log_odds(self) -> Expression:
        """Log odds of the second class."""
        if self.logits:
            return self._bounded[0] if len(self.columns) == 1 else self._variable
        if len(self.columns) == 1:
            return floored_log(self.columns[0]) - floored_log(1.0 - self.columns[0])
        return floored_log(self.columns[1]) - floored_log(self.columns[0])

    def log_odds_within(self, low: float, high: float) -> Expression:
        """Log odds of the second class, clipped."""
        largest = self.largest_log_odds
        return within(self.log_odds, low if low > -largest else -np.inf, high if high < largest else np.inf)

    @property
    def probability(self) -> Expression:
        """Probability of the second class."""
        return expit(self.log_odds) if self.logits else self._variable

    @property
    def log_probabilities(self) -> list[Expression]:
        """Logarithms of the probabilities of all classes; logits as they are."""
        if self.logits:
            return [number(0), *self._bounded] if len(self.columns) == 1 else list(self._bounded)
        return [floored_log(p) for p in (self.columns if len(self.columns) > 1 else self.probabilities)]

    @property
    def probabilities(self) -> list[Expression]:
        """Probabilities of all classes."""
        if self.classes > 2:
            if self.logits:
                return softmax(self._bounded)
            whole = total(self.columns)
            return [column / whole for column in self.columns]
        if self.logits:
            return [expit(-self.log_odds), self.probability]
        return [1.0 - self._variable, self._variable]

    def one_vs_rest(self, k: int) -> ScoreExpressions:
        """The event that the class is `k` of three or more, as one column."""
        if not self.logits:
            return ScoreExpressions((self.probabilities[k],), logits=False, exact=False)
        rest = log_sum_exp([column for j, column in enumerate(self._bounded) if j != k])
        return ScoreExpressions((self._bounded[k] - rest,), logits=True, exact=False)

    def steps(self, reading: Reading, edges: Floats, pieces: Sequence[Operand] | Floats) -> Expression:
        """Piece number k where the score lies in (edges[k - 1], edges[k]]."""
        searched, cuts = self._cuts(reading, edges, below=False)
        return pieces_by_cuts(searched, cuts, list(map(operand, pieces)))

    def steps_at_knots(self, reading: Reading, knots: Floats, pieces: Sequence[Operand] | Floats) -> Expression:
        """Pieces before the first knot, at it, between it and the second, at the second, ..., after the last."""
        searched, before = self._cuts(reading, np.nextafter(knots, -np.inf), below=True)
        cuts = np.stack([before, self._cuts(reading, knots, below=False)[1]], axis=1).ravel()
        return pieces_by_cuts(searched, np.maximum.accumulate(cuts), list(map(operand, pieces)))

    def interpolated(self, knots: Floats, values: Floats, *, of: Reading = "probability") -> Expression:
        """The function of a reading that is linear between the knots and constant beyond, as `np.interp`."""
        read, at = getattr(self, of), [number(value) for value in values]
        ends = zip(knots, values, np.diff(knots), np.diff(values), strict=False)
        lines = [_line(read, *map(float, each)) for each in ends]
        if of == "log_odds" or (self.exact and not self.logits):
            return self.steps(of, knots, [at[0], *lines, at[-1]])
        # What rounding does to the probability may be much of a short line, but must not matter at the knots.
        pieces = itertools.chain.from_iterable(zip(at, [*lines, at[-1]], strict=True))
        return self.steps_at_knots(of, knots, [at[0], *pieces])

    def _cuts(self, reading: Reading, edges: Floats, *, below: bool) -> tuple[Expression, Floats]:
        """The expression to be compared, and the largest of its values at which the reading is at most each edge."""
        if not self.exact or (reading == "log_odds" and len(self.columns) == 2 and not self.logits):
            room = _ROUNDING * (edges * (1 - edges) if reading == "probability" else np.maximum(np.abs(edges), 1))
            room = room + 2 * np.spacing(np.abs(edges))
            return getattr(self, reading), edges - room if below else edges + room
        largest = self.largest_log_odds if self.logits else 1.0

        def read(values: Floats) -> Floats:
            scores = Scores(values, self.logits)
            return np.asarray(getattr(scores, reading), dtype=np.float64)

        return self._variable, last_at_most(read, edges, -largest if self.logits else 0.0, largest)


def _line(read: Expression, knot: float, value: float, width: float, rise: float) -> Expression:
    """The line through a knot."""
    with np.errstate(over="ignore"):
        slope = float(np.float64(rise) / np.float64(width))
    return value + slope * (read - knot) if rise and np.isfinite(slope) else number(value)


def last_at_most(function: Callable[[Floats], NDArray[Any]], limits: NDArray[Any], low: float, high: float) -> Floats:
    """The largest number in [low, high] at which an increasing function is at most each limit.

    Minus infinity where there is none, infinity where all are. Found by bisection of all numbers of floating point.
    """
    below = np.full(len(limits), _ordinal(np.array(low)))
    above = np.full(len(limits), _ordinal(np.array(high)))
    none = function(np.full(len(limits), low)) > limits
    every = function(np.full(len(limits), high)) <= limits
    while np.any(above > below + 1):
        middle = (below & above) + ((below ^ above) >> 1)  # their sum may overflow
        fits = function(_of_ordinal(middle)) <= limits
        below, above = np.where(fits, middle, below), np.where(fits, above, middle)
    return np.where(none, -np.inf, np.where(every, np.inf, _of_ordinal(below)))


def _ordinal(values: Floats) -> NDArray[np.int64]:
    """The rank of each number among all numbers of floating point, 0 for zero."""
    bits = np.abs(values).view(np.int64)
    return np.where(values < 0, -bits, bits)


def _of_ordinal(rank: NDArray[np.int64]) -> Floats:
    """The number of each rank."""
    size: Floats = np.abs(rank).view(np.float64)
    return np.where(rank < 0, -size, size)


#: Numbers of a feature are below this; what is not is missing: NULL, or not a number, which engines sort last.
#: Derived: the largest double, 1.798e308, rounded down.
_LARGEST_NUMBER = 1.7e308


@dataclass(frozen=True)
class CodedColumn:
    """A feature and its column as an expression."""

    feature: Feature
    column: Expression

    @property
    def missing(self) -> Expression:
        """Whether it is missing; numbers are not asked."""
        return Expression("IS NULL", (self.column,))

    def pick(self, cells: NDArray[Any], values: Sequence[Expression]) -> Expression:
        """The value of the cell that the code belongs to."""
        feature, missing = self.feature, values[int(cells[-1])]
        if feature.kind == "flag":
            yes, no = values[int(cells[1])], values[int(cells[0])]
            return Expression("case", (Expression("holds", (self.column,)), yes, self.missing, missing, no))
        if feature.kind == "number":
            branches: list[Expression] = []
            for code, cut in enumerate([*feature.cuts, _LARGEST_NUMBER]):
                if code == len(feature.cuts) or cells[code] != cells[code + 1]:
                    branches += [function("cast", self.column) < cut, values[int(cells[code])]]
            return Expression("case", (*branches, missing))
        branches = [self.missing, missing]
        other = int(cells[-2])
        for cell in sorted({int(cell) for cell in cells[:-2]} - {other}):
            names = [name for name, own in zip(feature.values, cells, strict=False) if own == cell]
            branches += [Expression("IN", (self.column,), texts=tuple(names)), values[cell]]
        return Expression("case", (*branches, values[other]))

    def split(self, cut: int, ranks: NDArray[Any] | None, left: Expression, right: Expression) -> Expression:
        """The left expression where the rank of the code is at most the cut, else the right one."""
        codes = np.arange(self.feature.size) if ranks is None else ranks
        return self.pick((codes > cut).astype(np.int64), [left, right])


def table_expression(table: Table, columns: Sequence[CodedColumn], scale: float) -> Expression:
    """The value of a row's cell, times a factor."""
    first, values = columns[table.features[0]], scale * table.value
    if len(table.features) == 1:
        return first.pick(table.cells[0], [number(value) for value in values])
    second = columns[table.features[1]]
    lines = [second.pick(table.cells[1], [number(value) for value in line]) for line in values]
    return first.pick(table.cells[0], lines)


def tree_expression(
    node: int,
    feature: NDArray[Any],
    cut: NDArray[Any],
    value: Floats,
    ranks: Mapping[int, NDArray[Any]],
    columns: Sequence[CodedColumn],
) -> Expression:
    """The value of a row's leaf in one tree, below a node."""
    if node >= len(feature):
        return number(float(value[node - len(feature)]))
    left, right = (
        tree_expression(child, feature, cut, value, ranks, columns) for child in (2 * node + 1, 2 * node + 2)
    )
    if cut[node] == NO_CUT or left == right:
        return left
    own = int(feature[node])
    return columns[own].split(int(cut[node]), ranks.get(own), left, right)
