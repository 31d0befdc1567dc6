"""SQL expressions that maps are made of: dialects, and scores whose rows are those of a table.

`SqlScores` is for expressions what `recalibrate.inputs.Scores` is for arrays. Engines differ from NumPy in the last bit
of logarithms and exponentials. That does not matter to a smooth map, but a map with steps has them at training scores,
where one bit is a whole step. So steps are not looked up in a transformed score: the last number of the column that
lies below each step is found here, and the column is compared with it.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from calibrant.numerics.arrays import Floats
from calibrant.numerics.special import LOG_FLOOR
from calibrant.recalibrate.inputs import LARGEST_LOGIT, Scores

#: Exponents are kept within this range: PostgreSQL refuses the exponentials of larger ones, and of smaller ones too.
_EXPONENT = 700.0
#: Branches of each CASE. More make nested expressions less deep (SQLite's parser takes some dozen levels), but slower.
_BRANCHES = 4
#: Characters of the longest expressions that are written.
LONGEST = 8_000_000


@dataclass(frozen=True)
class Dialect:
    """What differs between dialects of SQL.

    Attributes
    ----------
    double : str
        The type of double precision.
    quote : str
        The mark around the name of a column; it is doubled within. (In double quotes, SQLite takes the name of a column
        that does not exist for a text.)
    greatest, least : str
        The functions that return the largest and the smallest of their arguments.
    digits : int, optional
        Significant digits of numbers; if None, as many as tell a number from all others, 17 at most. SQLite may miss
        numbers so written by one bit.
    """

    double: str
    quote: str = '"'
    greatest: str = "GREATEST"
    least: str = "LEAST"
    digits: int | None = None

    def column(self, name: str) -> str:
        """The name of a column, quoted."""
        return self.quote + name.replace(self.quote, 2 * self.quote) + self.quote

    def number(self, value: float) -> str:
        """A number of double precision: one without an exponent would be a decimal."""
        value = float(value)
        text = repr(value) if self.digits is None else f"{value:.{self.digits - 1}e}"
        text = text if "e" in text else f"{text}e0"
        return f"({text})" if text.startswith("-") else text  # two signs would begin a comment

    def as_double(self, expression: str) -> str:
        """The expression in double precision."""
        return f"CAST({expression} AS {self.double})"

    def at_least(self, expression: str, low: float) -> str:
        """The expression, or `low` where it is less."""
        return f"{self.greatest}({expression}, {self.number(low)})"

    def within(self, expression: str, low: float, high: float) -> str:
        """The expression, or the bound that it exceeds; infinite bounds are none."""
        expression = expression if low == -np.inf else self.at_least(expression, low)
        return expression if high == np.inf else f"{self.least}({expression}, {self.number(high)})"

    def exp(self, expression: str) -> str:
        """The exponential of an exponent of any size."""
        return f"EXP({self.within(expression, -_EXPONENT, _EXPONENT)})"

    def floored_log(self, expression: str) -> str:
        """The logarithm of a probability, of 0 too."""
        return f"LN({self.at_least(expression, np.exp(LOG_FLOOR))})"

    def expit(self, log_odds: str, *, largest: float = np.inf) -> str:
        """The probability at log odds whose size is at most about `largest`."""
        power = f"EXP(-{log_odds})" if largest < _EXPONENT / 2 else self.exp(f"-{log_odds}")
        return f"({self.number(1)} / ({self.number(1)} + {power}))"

    def two_classes(self, p: str) -> list[str]:
        """The probabilities of both classes, from that of the second."""
        return [f"({self.number(1)} - {p})", p]

    def kept_from_certainty(self, q: str, p: str, floor: float) -> str:
        """The probability q, kept between the lesser of p and the floor, and the greater of p and its complement."""
        low, high = self.within(p, -np.inf, floor), self.at_least(p, 1 - floor)
        return f"{self.least}({self.greatest}({q}, {low}), {high})"

    def all_at_least(self, q: Sequence[str], p: Sequence[str], floor: float) -> list[str]:
        """Probabilities q of several classes, none below the lesser of p and the floor, the others scaled."""
        require_short(len(q) * sum(map(len, q)))
        least = [self.within(part, -np.inf, floor) for part in p]
        spare = [self.at_least(f"{part} - {low}", 0) for part, low in zip(q, least, strict=True)]
        factor = f"(({self.number(1)} - {total(least)}) / {total(spare)})"
        return [f"({low} + {rest} * {factor})" for low, rest in zip(least, spare, strict=True)]

    def softmax(self, logits: Sequence[str]) -> list[str]:
        """The probabilities of logits."""
        require_short(len(logits) * sum(map(len, logits)))
        return [f"({self.number(1)} / {self._ratios(logits, k)})" for k in range(len(logits))]

    def normalised(self, p: Sequence[str]) -> list[str]:
        """Probabilities divided by their sum; the same for all classes where that is 0."""
        require_short(len(p) * sum(map(len, p)))
        whole, equal = total(p), self.number(1 / len(p))
        return [f"CASE WHEN {whole} > {self.number(0)} THEN {part} / {whole} ELSE {equal} END" for part in p]

    def log_softmax(self, logits: Sequence[str]) -> list[str]:
        """The logarithms of the probabilities of logits, at least -700."""
        require_short(len(logits) * sum(map(len, logits)))
        return [f"(-LN({self._ratios(logits, k)}))" for k in range(len(logits))]

    def log_sum_exp(self, logits: Sequence[str]) -> str:
        """The logarithm of the sum of exponentials of logits of any size."""
        require_short(len(logits) * sum(map(len, logits)))
        if len(logits) == 1:
            return logits[0]
        top = f"{self.greatest}({', '.join(logits)})"
        return f"({top} + LN({total(self.exp(f'{logit} - {top}') for logit in logits)}))"

    def _ratios(self, logits: Sequence[str], k: int) -> str:
        """The sum of the probabilities of all classes over that of class `k`."""
        return total(self.number(1) if j == k else self.exp(f"{logit} - {logits[k]}") for j, logit in enumerate(logits))

    def polynomial(self, x: str, coefficients: Sequence[float] | Floats) -> str:
        """The polynomial with these coefficients, the constant first."""
        *lower, result = (self.number(value) for value in coefficients)
        for coefficient in reversed(lower):
            result = f"({coefficient} + {x} * {result})"
        return result

    def beta_log_odds(self, x: str, a: float, b: float, c: float) -> str:
        """The log odds a log p - b log(1 - p) + c, at the log odds x of p."""
        rest = f"LN({self.number(1)} + {self.exp(f'-ABS({x})')})"  # -log p is this, or this and |x|
        parts = (
            f"{self.number(b)} * {self.at_least(x, 0)}",
            f"{self.number(a)} * {self.within(x, -np.inf, 0)}",
            f"{self.number(b - a)} * {rest}",
            self.number(c),
        )
        return total(parts)

    def case(self, searched: str, cuts: Floats, pieces: Sequence[str]) -> str:
        """Piece number k of the expressions where what is searched lies in (cuts[k - 1], cuts[k]].

        A cut of minus infinity, or not above the one before, has no piece; neighbours that are the same are one.
        """
        require_short(sum(map(len, pieces)) + len(cuts) * (len(searched) + 40))
        kept: list[tuple[float, str]] = []
        for cut, piece in zip([*cuts.tolist(), np.inf], pieces, strict=True):
            if cut == -np.inf or (kept and cut <= kept[-1][0]):
                continue
            if kept and kept[-1][1] == piece:
                kept.pop()
            kept.append((cut, piece))
        return self._nested_case(searched, kept)

    def _nested_case(self, searched: str, pieces: Sequence[tuple[float, str]]) -> str:
        """Expressions with their last numbers, nested so that a row is compared about log n times."""
        if len(pieces) == 1:
            return pieces[0][1]
        size = -(-len(pieces) // _BRANCHES)
        *groups, last = [pieces[start : start + size] for start in range(0, len(pieces), size)]
        branches = [
            f"WHEN {searched} <= {self.number(group[-1][0])} THEN {self._nested_case(searched, group)}"
            for group in groups
        ]
        return f"CASE {' '.join(branches)} ELSE {self._nested_case(searched, last)} END"

    def affine(self, z: Sequence[str], slopes: Sequence[float] | Floats, constant: float) -> str:
        """The sum of expressions times their slopes, and a constant."""
        require_short(sum(map(len, z)))
        return total([self.number(constant), self.mixture(slopes, z)])

    def mixture(self, shares: Sequence[float] | Floats, parts: Sequence[str]) -> str:
        """The sum of the parts times their shares."""
        return total(f"{self.number(share)} * {part}" for share, part in zip(shares, parts, strict=True))


DIALECTS = {
    "ansi": Dialect("DOUBLE PRECISION"),
    "duckdb": Dialect("DOUBLE"),
    "postgres": Dialect("DOUBLE PRECISION"),
    "spark": Dialect("DOUBLE", quote="`"),
    "sqlite": Dialect("REAL", quote="`", greatest="MAX", least="MIN", digits=18),
}


def total(terms: Iterable[str]) -> str:
    """The sum of expressions."""
    return f"({' + '.join(terms)})"


def require_short(length: int) -> None:
    """Refuse to write what no engine would read."""
    if length > LONGEST:
        message = (
            f"The map has too many parts for SQL: its expression would be about {length:,} characters long, and "
            f"at most {LONGEST:,} are written. Use predict_proba."
        )
        raise ValueError(message)


Reading = Literal["probability", "log_odds"]

#: Relative width of what rounding may do to a transformed score.
_ROUNDING = 1e-13


@dataclass(frozen=True)
class SqlScores:
    """Scores whose rows are those of a table: expressions in place of arrays.

    Attributes
    ----------
    columns : tuple of str
        Expressions in double precision: one, the second class's, or one per class.
    logits : bool
        Whether they are logits.
    dialect : Dialect
    exact : bool
        Whether the engine finds the very numbers that NumPy finds: not those of transformed columns.
    """

    columns: tuple[str, ...]
    logits: bool
    dialect: Dialect
    exact: bool = True

    @property
    def classes(self) -> int:
        """Number of classes: two for a single column."""
        return max(len(self.columns), 2)

    @property
    def _bounded(self) -> tuple[str, ...]:
        """The columns, logits within their bounds."""
        if not self.logits:
            return self.columns
        return tuple(self.dialect.within(column, -LARGEST_LOGIT, LARGEST_LOGIT) for column in self.columns)

    @property
    def _variable(self) -> str:
        """The probability of the second class, or its log odds for logits: what steps are looked up in."""
        if len(self.columns) == 1:
            return self.columns[0]
        first, second = self._bounded
        return f"({second} - {first})" if self.logits else f"({second} / ({first} + {second}))"

    @property
    def largest_log_odds(self) -> float:
        """Bound of the size of the log odds."""
        return 2 * LARGEST_LOGIT if self.logits else -LOG_FLOOR

    @property
    def log_odds(self) -> str:
        """Log odds of the second class."""
        if self.logits:
            return self._bounded[0] if len(self.columns) == 1 else self._variable
        log = self.dialect.floored_log
        if len(self.columns) == 1:
            p = self.columns[0]
            return f"({log(p)} - {log(f'{self.dialect.number(1)} - {p}')})"
        return f"({log(self.columns[1])} - {log(self.columns[0])})"

    def log_odds_within(self, low: float, high: float) -> str:
        """Log odds of the second class, clipped."""
        largest = self.largest_log_odds
        return self.dialect.within(
            self.log_odds, low if low > -largest else -np.inf, high if high < largest else np.inf
        )

    @property
    def probability(self) -> str:
        """Probability of the second class."""
        return self.dialect.expit(self.log_odds) if self.logits else self._variable

    @property
    def log_probabilities(self) -> list[str]:
        """Logarithms of the probabilities of all classes; logits as they are."""
        if self.logits:
            return [self.dialect.number(0), *self._bounded] if len(self.columns) == 1 else list(self._bounded)
        if len(self.columns) > 1:
            return [self.dialect.floored_log(column) for column in self.columns]
        return [self.dialect.floored_log(p) for p in self.probabilities]

    @property
    def probabilities(self) -> list[str]:
        """Probabilities of all classes."""
        if self.classes > 2:
            if self.logits:
                return self.dialect.softmax(self._bounded)
            return [f"({column} / {total(self.columns)})" for column in self.columns]
        if self.logits:
            return [self.dialect.expit(f"(-{self.log_odds})"), self.probability]
        return [f"({self.dialect.number(1)} - {self._variable})", self._variable]

    def one_vs_rest(self, k: int) -> SqlScores:
        """The event that the class is `k` of three or more, as one column."""
        if not self.logits:
            return SqlScores((self.probabilities[k],), logits=False, dialect=self.dialect, exact=False)
        rest = self.dialect.log_sum_exp([column for j, column in enumerate(self._bounded) if j != k])
        return SqlScores((f"({self._bounded[k]} - {rest})",), logits=True, dialect=self.dialect, exact=False)

    def steps(self, reading: Reading, edges: Floats, pieces: Sequence[str]) -> str:
        """Piece number k of the expressions where the score lies in (edges[k - 1], edges[k]]."""
        searched, cuts = self._cuts(reading, edges, below=False)
        return self.dialect.case(searched, cuts, pieces)

    def steps_at_knots(self, reading: Reading, knots: Floats, pieces: Sequence[str]) -> str:
        """Pieces before the first knot, at it, between it and the second, at the second, ..., after the last."""
        searched, before = self._cuts(reading, np.nextafter(knots, -np.inf), below=True)
        cuts = np.stack([before, self._cuts(reading, knots, below=False)[1]], axis=1).ravel()
        return self.dialect.case(searched, np.maximum.accumulate(cuts), pieces)

    def interpolated(self, knots: Floats, values: Floats, *, of: Reading = "probability") -> str:
        """The function of a reading that is linear between the knots and constant beyond, as `np.interp`."""
        read = getattr(self, of)
        require_short((50 + len(read)) * len(knots))
        at = [self.dialect.number(value) for value in values]
        lines = [self._line(read, *ends) for ends in zip(knots, values, np.diff(knots), np.diff(values), strict=False)]
        if of == "log_odds" or (self.exact and not self.logits):
            return self.steps(of, knots, [at[0], *lines, at[-1]])
        # What rounding does to the probability may be much of a short line, but must not matter at the knots.
        pieces = itertools.chain.from_iterable(zip(at, [*lines, at[-1]], strict=True))
        return self.steps_at_knots(of, knots, [at[0], *pieces])

    def _line(self, read: str, knot: float, value: float, width: float, rise: float) -> str:
        """The line through a knot."""
        number = self.dialect.number
        with np.errstate(over="ignore"):
            slope = rise / width
        if not rise or not np.isfinite(slope):
            return number(value)
        return f"({number(value)} + {number(slope)} * ({read} - {number(knot)}))"

    def _cuts(self, reading: Reading, edges: Floats, *, below: bool) -> tuple[str, Floats]:
        """The expression to be compared, and the largest of its values at which the reading is at most each edge."""
        if not self.exact or (reading == "log_odds" and len(self.columns) == 2 and not self.logits):
            room = _ROUNDING * (edges * (1 - edges) if reading == "probability" else np.maximum(np.abs(edges), 1))
            room = room + 2 * np.spacing(np.abs(edges))
            return getattr(self, reading), edges - room if below else edges + room
        largest = self.largest_log_odds if self.logits else 1.0

        def read(values: Floats) -> Floats:
            scores = Scores(values, self.logits)
            read: Floats = np.asarray(getattr(scores, reading), dtype=np.float64)
            return read

        return self._variable, last_at_most(read, edges, -largest if self.logits else 0.0, largest)


def last_at_most(function: Callable[[Floats], NDArray[Any]], limits: NDArray[Any], low: float, high: float) -> Floats:
    """The largest number in [low, high] at which a rising function is at most each limit.

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
