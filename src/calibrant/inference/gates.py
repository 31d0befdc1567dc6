"""Gates: does a model pass? One rule for test suites, builds and the command line."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

from calibrant.data import validation
from calibrant.data.forecasts import Forecast, Quantiles
from calibrant.data.predictions import Multiclass, Predictions
from calibrant.data.validation import fail
from calibrant.estimators.recommended import calibration_error
from calibrant.estimators.regression_coverage import coverage
from calibrant.estimators.regression_spread import ence
from calibrant.estimators.validation_study import calibration_slope, observed_expected, probability_cells
from calibrant.inference.intervals import Estimator, interval
from calibrant.inference.inversion.binary import Inversion
from calibrant.inference.validation_intervals import rate_limits
from calibrant.results.estimate import Estimate, Interval, Significance, printable
from calibrant.table.bintable import ALL_ROWS, BinTable
from calibrant.table.task import Spread, Unlabeled, task_of

End = Literal["lower", "estimate", "upper"]
Result = Literal["failed", "undecided", "passed"]

#: The results of a gate, the worst first: what is said, and the exit code of a command.
RESULTS: dict[Result, tuple[str, int]] = {
    "failed": ("failed", 1),
    "undecided": ("too few rows to decide", 3),
    "passed": ("passed", 0),
}

#: What a gate can limit: its name in sentences, the factor and the unit in which it is said.
QUANTITIES = {
    "error": ("calibration error", 100, " points"),
    "relative": ("calibration error relative to the base rate", 100, " %"),
    "oe": ("ratio of observed to expected events", 1, ""),
    "slope": ("calibration slope", 1, ""),
    "coverage": ("coverage of prediction intervals", 100, " %"),
    "ence": ("expected normalized calibration error (ENCE)", 1, ""),
}
#: Those of which a range is allowed, not everything up to a limit.
RANGES = ("oe", "slope", "coverage")

#: Checks that a printed decision lists at most.
#: Test: tests/inference/test_gates.py::test_of_many_failures_some_are_listed_and_the_rest_counted.
LISTED = 20


@dataclass(frozen=True)
class Check:
    """What one rule says of one number: its result and a sentence that gives the reason."""

    of: str
    name: str
    limit: float | tuple[float, float]
    by: End
    result: Result
    sentence: str

    def to_dict(self) -> dict[str, Any]:
        """Plain types only, ready for JSON."""
        limit = list(self.limit) if isinstance(self.limit, tuple) else self.limit
        group = None if self.name == ALL_ROWS else self.name
        rest = {"by": self.by, "result": self.result, "sentence": self.sentence}
        return {"of": self.of, "group": group, "limit": limit, **rest}


@dataclass(frozen=True)
class Decision:
    """The result of a gate: failed if any check fails, else undecided if any check is, else passed.

    Attributes
    ----------
    checks : tuple of Check
        One per rule and group of rows.
    warnings : tuple of str
        What makes a rule weaker than it looks.

    Examples
    --------
    >>> import calibrant as cal
    >>> gate, data = Gate((0.8, 1.25), of="oe"), cal.Binary([0] * 60 + [1] * 40, [0.4] * 100)
    >>> decision = gate.decide(gate.estimate(data))
    >>> decision.result, decision.exit_code
    ('undecided', 3)
    """

    checks: tuple[Check, ...]
    warnings: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.checks:
            fail("A gate without any check cannot decide.")

    @classmethod
    def of(cls, decisions: Iterable[Decision]) -> Decision:
        """Several decisions as one."""
        each = tuple(decisions)
        warnings = tuple(text for one in each for text in one.warnings)
        return cls(tuple(check for one in each for check in one.checks), warnings)

    @property
    def result(self) -> Result:
        """The worst result of all checks."""
        return self.ordered[0].result

    @property
    def exit_code(self) -> int:
        """0 passed, 1 failed, 3 undecided."""
        return RESULTS[self.result][1]

    @property
    def ordered(self) -> list[Check]:
        """The checks, the worst first."""
        return sorted(self.checks, key=lambda check: list(RESULTS).index(check.result))

    @property
    def lines(self) -> list[str]:
        """The result in words: one line with the reason, or with the numbers of results and a line for each reason."""
        warnings = [f"Warning: {warning}" for warning in self.warnings]
        if len(self.checks) == 1:
            return [f"Gate: {RESULTS[self.result][0]}. {self.checks[0].sentence}", *warnings]
        worst, counts = self.result, Counter(check.result for check in self.checks)
        numbers = ", ".join(f"{counts[result]:,} {words}" for result, (words, _) in RESULTS.items() if counts[result])
        listed = [check for check in self.ordered if check.result == worst or check.name == ALL_ROWS][:LISTED]
        more = counts[worst] - sum(check.result == worst for check in listed)
        return [
            f"Gate: {RESULTS[worst][0]}. Of {len(self.checks):,} checks: {numbers}.",
            *(f"  {RESULTS[check.result][0].capitalize()}. {check.sentence}" for check in listed),
            *([f"  {more:,} more: {RESULTS[worst][0]}."] if more else []),
            *warnings,
        ]

    @property
    def sentence(self) -> str:
        """`lines` as one text."""
        return " ".join(line.strip() for line in self.lines)

    def to_dict(self) -> dict[str, Any]:
        """Plain types only, ready for JSON; all checks are listed."""
        return {
            "result": self.result,
            "exit_code": self.exit_code,
            "by": self.checks[0].by,
            "limits": {check.of: check.to_dict()["limit"] for check in self.checks},
            "sentence": self.sentence,
            "warnings": list(self.warnings),
            "checks": [check.to_dict() for check in self.checks],
        }


@dataclass(frozen=True)
class Gate:
    """A rule that a number passes or fails, or that too few rows leave undecided.

    The confidence interval decides. The result is *failed* if the interval lies wholly outside of what is allowed (the
    number is shown to be bad), *passed* if it lies wholly inside (the number is shown to be good), and *undecided*
    otherwise: too few rows. The upper end of a lower bound is unknown, so a lower bound never passes. A test fails if
    its p-value is below the limit, and passes otherwise. NaN, and an estimate without an interval, are errors.

    Parameters
    ----------
    limit : float, or pair of floats
        The largest number to be accepted, or the smallest and the largest; for tests the significance level alpha.
    by : {"lower", "estimate", "upper"}
        "estimate" ignores the interval: about half of the models at the limit fail by chance. With "lower", proof that
        a model is bad is needed to fail it, so an undecided gate is accepted; with "upper", proof that it is good is
        needed to pass it, so an undecided gate is not accepted. The result is the same for both; see `accepts`.
    of : str
        What is limited: "error" (the calibration error as a probability), "relative" (the same divided by the base
        rate), "oe" (the ratio of observed to expected events), "slope" (the calibration slope), "coverage:0.9" (the
        coverage of central intervals of this nominal coverage) or "ence". For "oe", "slope" and "coverage" `limit` is a
        pair.

    Examples
    --------
    >>> import numpy as np
    >>> import calibrant as cal
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(2000)
    >>> error = headline_error(cal.Binary(rng.random(2000) < p**2, p))  # the true error is 1/6
    >>> print(Gate(0.02).decide(error).sentence)
    Gate: failed. The calibration error is between 15... and 19... points; the limit is 2 points (shown to be above it).
    >>> Gate(0.3).decide(error).result, Gate(0.165).decide(error).result
    ('passed', 'undecided')
    """

    limit: float | tuple[float, float]
    by: End = "lower"
    of: str = "error"

    def __post_init__(self) -> None:
        if self.by not in ("lower", "estimate", "upper"):
            fail(f"A gate decides by 'lower', 'estimate' or 'upper', got {self.by!r}.")
        if self._kind not in QUANTITIES or (self.nominal is None) == (self._kind == "coverage"):
            names = ", ".join(f"{name}:LEVEL" if name == "coverage" else name for name in QUANTITIES)
            fail(f"A gate can limit {names}, not {self.of!r}.")
        low, high = self.allowed
        if isinstance(self.limit, tuple) != (self._kind in RANGES):
            kind = "a range" if self._kind in RANGES else "one number"
            fail(f"The limit of {self.of} must be {kind}, got {self.limit!r}.")
        if not (low < high < math.inf and (high >= 0 if self._kind not in RANGES else low >= 0)):  # also where NaN
            fail(f"The limit of a gate must be a finite number of at least 0, or a rising pair, got {self.limit!r}.")
        if self._kind in ("error", "coverage") and not (high < 1 or (high == 1 and self._kind == "coverage")):
            fail(f"The limit of a gate on {self._kind} must lie in [0, 1), got {self.limit!r}.")

    @property
    def allowed(self) -> tuple[float, float]:
        """The smallest and the largest number that pass."""
        return self.limit if isinstance(self.limit, tuple) else (-math.inf, float(self.limit))

    @property
    def _kind(self) -> str:
        return self.of.partition(":")[0]

    @property
    def nominal(self) -> float | None:
        """The nominal coverage in the name of a limit of coverage."""
        level = self.of.partition(":")[2]
        try:
            return validation.fraction("the level of a limit of coverage", float(level)) if level else None
        except ValueError:
            fail(f"A limit of coverage needs a level in (0, 1), such as coverage:0.9, got {self.of!r}.")

    def accepts(self, decision: Decision) -> bool:
        """Whether a decision is good enough: one that has passed, or is undecided where proof is needed to fail."""
        return decision.result == "passed" or (decision.result == "undecided" and self.by == "lower")

    def decide(
        self, found: Estimate | Significance, groups: Mapping[Any, Estimate | Significance] | None = None
    ) -> Decision:
        """What the rule says of the result of all rows, and of those of groups."""
        parts = () if groups is None else groups.items()
        return Decision((self._check(ALL_ROWS, found), *(self._check(printable(name), one) for name, one in parts)))

    def _check(self, name: str, found: Estimate | Significance) -> Check:
        if isinstance(found, Significance):
            p, alpha = _number(found.p_value, name), self.allowed[1]
            words = "is below" if p < alpha else "is not below"
            prefix = "" if name == ALL_ROWS else f"{name}: "
            sentence = f"{prefix}p = {p:.3g} ({found.method}) {words} {alpha:g}."
            return Check("p-value", name, self.limit, self.by, "failed" if p < alpha else "passed", sentence)
        ends = self._ends(name, found)
        low, high = self.allowed
        if ends[0] > high or ends[1] < low:
            result: Result = "failed"
        else:
            result = "passed" if low <= ends[0] and ends[1] <= high else "undecided"
        sentence = "The" if name == ALL_ROWS else f"{name}: the"
        return Check(self.of, name, self.limit, self.by, result, f"{sentence} {self._words(ends, result)}")

    def _ends(self, name: str, found: Estimate) -> tuple[float, float]:
        """The ends of the interval that decides, infinite where unknown; twice the estimate if that decides."""
        if self.by == "estimate":
            value = _number(found.value, name)
            return value, value
        bounds = found.interval
        if bounds is None:
            fail(f"{name}: {found!r} has no interval, which should decide.")
        low = -math.inf if bounds.side == "upper" else _number(bounds.low, name)
        high = math.inf if bounds.side == "lower" else _number(bounds.high, name)
        return low, high

    def _words(self, ends: tuple[float, float], result: Result) -> str:
        said, factor, unit = QUANTITIES[self._kind]
        if self.nominal is not None:
            said = f"coverage of {100 * self.nominal:g} % prediction intervals"
        low, high = (f"{factor * end:.4g}" for end in ends)
        if self.by == "estimate":
            number = f"estimated at {low}{unit}"
        elif ends == (-math.inf, math.inf):
            number = "unknown"
        elif math.inf in ends:
            number = f"at least {low}{unit}, with no upper end"
        elif -math.inf in ends:
            number = f"at most {high}{unit}, with no lower end"
        else:
            number = f"between {low} and {high}{unit}"
        least, most = (f"{factor * end:.4g}" for end in self.allowed)
        if self._kind in RANGES:
            limit, where = f"{least} to {most}{unit} are allowed", ("outside", "inside")
        else:
            limit, where = f"the limit is {most}{unit}", ("above it", "below it")
        if self.by == "estimate":
            shown = "the estimate alone decides"
        elif result == "undecided":
            shown = f"not shown to be {where[0]}, not shown to be {where[1]}"
        else:
            shown = f"shown to be {where[0] if result == 'failed' else where[1]}"
        return f"{said} is {number}; {limit} ({shown})."

    def estimate(self, data: Predictions | BinTable, *, norm: float = 1, level: float = 0.95) -> Estimate:
        """The number that is limited, with its interval by the default method; other tasks raise an error."""
        kind = self._kind
        if kind == "error":
            return headline_error(data, norm=norm, level=level)
        forecasts = kind in ("coverage", "ence")
        served = isinstance(data, Forecast) if forecasts else _has_event(data)
        if not served or (kind == "ence" and isinstance(data, Quantiles)):
            needed = "predicted distributions" if forecasts else "the probability of an event"
            needed += ", not only quantiles" if kind == "ence" else ""
            fail(f"A limit of {self.of} needs {needed}; {data!r} has no such number.")
        if kind == "relative":
            return relative_error(data, norm=norm, level=level)
        if self.nominal is not None:
            return interval(partial(coverage, nominal=self.nominal), data, level=level)
        estimators: dict[str, Estimator] = {"oe": observed_expected, "slope": calibration_slope, "ence": ence}
        return interval(estimators[kind], data, level=level)

    def estimates(
        self, parts: Mapping[Any, Predictions | BinTable], *, norm: float = 1, level: float = 0.95
    ) -> dict[Hashable, Estimate]:
        """The number of each group; the ends that can show a group to be bad hold for all groups together (Bonferroni).

        The lower end shows that an upper limit is exceeded. The upper end shows that one group is good, and all of them
        have to be, which needs no adjustment. Of a range either end can show that a group is bad: both are adjusted.
        """
        if self._kind == "error":
            return headline_errors(parts, norm=norm, level=level)
        each = 1 - (1 - level) / max(1, len(parts))
        found = {name: self.estimate(part, norm=norm, level=each) for name, part in parts.items()}
        if self._kind in RANGES or len(parts) == 1:
            return found
        plain = {name: self.estimate(part, norm=norm, level=level) for name, part in parts.items()}
        return {name: _with_lower_end(plain[name], one.interval, len(parts)) for name, one in found.items()}


def headline_error(data: Predictions | BinTable, *, norm: float = 1, level: float = 0.95) -> Estimate:
    """The calibration error of any task, as a probability, with its confidence interval: what gates decide on.

    Parameters
    ----------
    data : Predictions or fine BinTable
        For multiclass data, the top label counts.
    norm : float
        For probabilities of an event or of the top label; other tasks have norm 1.
    level : float in (0, 1)

    Returns
    -------
    Estimate
        `calibration_error`, for predicted distributions that of their coverage, each with the default of `interval`.

    Examples
    --------
    >>> import numpy as np
    >>> import calibrant as cal
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(500)
    >>> headline_error(cal.Binary(rng.random(500) < p, p)).interval.low
    0.0
    """
    level = validation.fraction("level", level)
    task = task_of(data)
    if isinstance(data, Forecast):
        return interval(partial(calibration_error, method="coverage"), data, level=level)
    if isinstance(task, Spread):
        fail("The coverage of predicted distributions needs the rows, not a table of their spreads.")
    if isinstance(task, Unlabeled):
        return interval(calibration_error, data, level=level)
    one = data.top_label() if isinstance(data, Multiclass) else data
    return interval(partial(calibration_error, norm=norm), one, level=level)


def headline_errors(
    parts: Mapping[Any, Predictions | BinTable], *, norm: float = 1, level: float = 0.95, adjusted: bool = True
) -> dict[Hashable, Estimate]:
    """`headline_error` of each group; `adjusted`, all lower ends together hold with the level (Bonferroni).

    Upper ends are not adjusted: they show one group to be good, and all groups have to be.

    >>> import calibrant as cal
    >>> found = headline_errors({"at": cal.Binary([0, 1] * 50, [0.2, 0.7] * 50), "de": cal.Binary([0, 1], [0.4, 0.5])})
    >>> found["at"].n, found["at"].interval.level, found["at"].interval.assumption[-47:]
    (100, 0.95, '; the lower end holds for all 2 groups together')
    """
    level = validation.fraction("level", level)
    if not adjusted or len(parts) < 2:
        return {name: headline_error(part, norm=norm, level=level) for name, part in parts.items()}
    return {name: _one_of_many(part, norm, level, len(parts)) for name, part in parts.items()}


def relative_error(data: Predictions | BinTable, *, norm: float = 1, level: float = 0.95) -> Estimate:
    """The calibration error divided by the rate of events: 1.25 is an error of 125 % of the base rate.

    The ends are the most and the least that the intervals of both, at the level (1 + `level`) / 2, allow.
    """
    both = (1 + validation.fraction("level", level)) / 2
    error = headline_error(data, norm=norm, level=both)
    cells = probability_cells(data, None, needed_by="relative_error")
    rate = float(cells.observed.sum()) / cells.total
    least, most = rate_limits(data, lambda p: 0 * p + rate, both)
    ends = error.interval
    if ends is None:
        fail(f"{error!r} has no interval.")
    method, high = f"{ends.method} over mid-P limits of the rate", ends.high / least if least > 0 else math.inf
    bounds = Interval(ends.low / most, high, level=level, method=method, assumption=ends.assumption)
    value = error.value / rate if rate > 0 else math.inf
    name = f"{error.name} relative to the base rate"
    return Estimate(value, name=name, method=error.method, n=error.n, interval=bounds, details={"base_rate": rate})


def weak_limits(gates: Iterable[Gate], data: Predictions | BinTable) -> tuple[str, ...]:
    """Warnings of limits on the error that are not below the base rate: predicting "never" does not exceed them."""
    found: list[str] = []
    if not _has_event(data):
        return ()
    cells = probability_cells(data, None, needed_by="A gate")
    share = float(cells.observed.sum()) / cells.total
    rate, event, constant = (share, "events", 0) if share <= 0.5 else (1 - share, "rows without the event", 1)
    for gate in gates:
        limit = gate.allowed[1]
        if gate.of == "error" and limit >= rate:
            found.append(
                f"the limit of {100 * limit:.4g} points is not below the share of {event}, {100 * rate:.3g} %: "
                f"predicting {constant} for every row would not fail it. Limit the error relative to the base rate "
                "instead (on the command line: --limit relative=0.25), or the ratio of observed to expected events "
                "(--limit oe=0.8:1.25)."
            )
    return tuple(found)


def _has_event(data: Predictions | BinTable) -> bool:
    """Whether the data hold predicted probabilities of one event and its outcomes."""
    return not isinstance(data, Forecast | Multiclass) and not isinstance(task_of(data), Spread | Unlabeled)


def _one_of_many(part: Predictions | BinTable, norm: float, level: float, groups: int) -> Estimate:
    """`headline_error` of one of several groups, with a lower end that is adjusted for their number."""
    each = 1 - (1 - level) / groups
    if isinstance(part, Forecast) or isinstance(task_of(part), Spread | Unlabeled):
        found = headline_error(part, norm=norm, level=level)
        return _with_lower_end(found, headline_error(part, norm=norm, level=each).interval, groups)
    one = part.top_label() if isinstance(part, Multiclass) else part
    adjusted = Inversion(side="lower").interval(one, norm=norm, level=(1 + each) / 2)
    if adjusted.low > 0:
        return _with_lower_end(headline_error(one, norm=norm, level=level), adjusted, groups)
    # The lower end at the level itself is not needed, so both ends are found in less time as bounds of half the risk.
    found = interval(partial(calibration_error, norm=norm), one, level=(1 + level) / 2, method=Inversion(side="upper"))
    return _with_lower_end(found, adjusted, groups, level=level, method=repr(Inversion()), side="two-sided")


def _with_lower_end(found: Estimate, adjusted: Interval | None, groups: int, **changes: Any) -> Estimate:
    bounds = found.interval
    if bounds is None or adjusted is None:
        fail(f"{found!r} has no interval, which should decide.")
    words = f"{bounds.assumption}; the lower end holds for all {groups:,} groups together"
    return found.with_interval(replace(bounds, low=min(bounds.low, adjusted.low), assumption=words, **changes))


def _number(value: float, name: str) -> float:
    if math.isnan(value):
        fail(f"{name}: the result is NaN, so a gate cannot decide.")
    return value
