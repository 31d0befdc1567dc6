"""Scores as SQL expressions: what `inputs.Scores` is for arrays.

Engines differ from NumPy in the last bit of logarithms and exponentials. That does not matter to a smooth map, but a
map with steps has them at training scores, where one bit is a whole step. So steps are not looked up in a transformed
score: the last number of the column that lies below each step is found here, and the column is compared with it.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from calibrant.numerics.arrays import Floats
from calibrant.numerics.special import LOG_FLOOR
from calibrant.recalibrate.inputs import LARGEST_LOGIT, Scores
from calibrant.recalibrate.sql_dialects import Dialect, require_short, total

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
