"""What a verdict is made from. Sentence, findings and numbers all read the same evidence, so they cannot disagree."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from calibrant.reporting.contents import (
    Bin,
    BinCounts,
    Classes,
    GroupRow,
    Groups,
    OverTime,
    Recalibration,
    Section,
    Threshold,
)
from calibrant.reporting.rounding import p_words
from calibrant.results.estimate import Value

#: Significance level of all tests of a report together; and of a secondary test of forecasts by itself.
#: Test: tests/reporting/verdicts/test_severity.py::test_secondary_tests_of_forecasts_have_a_fifth_of_the_weight.
ALPHA, SECONDARY = 0.05, 0.01
#: A row that makes up this share of the mean squared standardised error is named.
#: Test: tests/reporting/verdicts/test_forecasts.py::test_one_row_is_named_from_a_fifth_of_the_error_on.
DOMINANT = 0.2
#: Fewer rows, or fewer events or non-events, cannot fit and judge a map.
#: Test: tests/reporting/verdicts/test_answers.py::test_a_map_takes_a_hundred_rows_with_twenty_of_each_outcome.
FEWEST_ROWS, FEWEST_EVENTS = 100, 20


@dataclass(frozen=True)
class VerdictTest:
    """The test of the verdict: its name for readers, its p-value, and the simulated samples behind it, if any.

    `adjusted` is the p-value after adjustment for all `tests` of the report, where there are several.
    """

    name: str
    p_value: float
    draws: int | None = None
    adjusted: float | None = None
    tests: int = 1

    @property
    def rejects(self) -> bool:
        """Whether calibration is rejected."""
        return (self.p_value if self.adjusted is None else self.adjusted) < ALPHA

    @property
    def in_words(self) -> str:
        """The p-value; the adjusted one too, where it decides otherwise."""
        own = p_words(self.p_value, self.draws)
        if self.adjusted is None or self.rejects or not self.p_value < ALPHA:
            return own
        return f"{own}; adjusted for the {self.tests} tests of this report, {p_words(self.adjusted)}"


@dataclass(frozen=True)
class Words:
    """What the user calls a row and an event, in the singular, and where the rows come from."""

    row: str = "row"
    event: str = "event"
    source: str = ""


@dataclass(frozen=True)
class Decisions:
    """Scores of only 0 and 1: rows and observed frequency of each."""

    ones: int
    rate_of_ones: Value | None
    zeros: int
    rate_of_zeros: Value | None


@dataclass(frozen=True)
class Shared:
    """Evidence that every kind of report has.

    Attributes
    ----------
    n : int
        Rows.
    test : VerdictTest or None
        None where no test is possible.
    tolerance : float or None
        The largest error that the user accepts, as a fraction.
    cells : int or None
        Cells of the table that the report was made from; None for rows.
    effective_n : float or None
        Kish's number of rows, where they have weights.
    clusters : int or None
    figures : tuple of sections
        Sections beside groups, time and recalibration.
    untested : str
        Why there is no test, as a clause.
    adjusted : mapping of str to float
        The p-values of all tests of the report, adjusted for each other (see `severity.judged_together`).
    """

    n: int
    test: VerdictTest | None = None
    untested: str = ""
    words: Words = field(default_factory=Words)
    tolerance: float | None = None
    groups: tuple[Groups, ...] = ()
    over_time: OverTime | None = None
    recalibration: Recalibration | None = None
    figures: tuple[Section | None, ...] = ()
    cells: int | None = None
    effective_n: float | None = None
    clusters: int | None = None
    adjusted: Mapping[str, float] = field(default_factory=dict)

    @property
    def empty(self) -> bool:
        """Whether there is nothing to judge."""
        return self.n == 0

    @property
    def rejects(self) -> bool:
        """Whether the test of the verdict rejects calibration."""
        return self.test is not None and self.test.rejects

    @property
    def mean_error(self) -> Value | None:
        """The mean calibration error, where the task has one; with the interval of the true error."""
        return None

    @property
    def most(self) -> float | None:
        """The upper end of its interval."""
        return None if self.mean_error is None else self.mean_error.high


@dataclass(frozen=True)
class Probabilities(Shared):
    """Predicted probabilities of an event, or (`confidence`) of the predicted class being right.

    Attributes
    ----------
    events : float
        Observed events; for weighted rows their share times the number of rows.
    predicted : float
        Mean prediction.
    error : Value or None
        The mean absolute calibration error (L1), with the interval of the true error.
    ratio, slope, intercept : Value or None
        Observed : expected, calibration slope, calibration in the large.
    ranges : tuple of Bin
        Where the error sits.
    distinct : int or None
        Distinct scores; None where it is not known (a table of a grid).
    largest_gap : Bin or None
        The score with the largest gap, where there are at most 20.
    only_score : float or None
        The score, where all rows have the same.
    decisions : Decisions or None
        Where scores are only 0 and 1.
    top : Bin or None
        The rows above the 95th percentile of the scores.
    undetected : float or None
        The error below which the test would usually not reject.
    certain : float
        Share of rows predicted exactly 0 or 1.
    impossible_events, impossible_others : float
        Rows predicted 0 that came out 1, and predicted 1 that came out 0.
    """

    events: float = 0.0
    predicted: float = 0.0
    observed: Value | None = None
    error: Value | None = None
    ratio: Value | None = None
    slope: Value | None = None
    intercept: Value | None = None
    threshold: Threshold | None = None
    ranges: tuple[Bin, ...] = ()
    distinct: int | None = None
    largest_gap: Bin | None = None
    only_score: float | None = None
    decisions: Decisions | None = None
    top: Bin | None = None
    undetected: float | None = None
    certain: float = 0.0
    impossible_events: float = 0.0
    impossible_others: float = 0.0
    bin_counts: BinCounts | None = None
    confidence: bool = False

    @property
    def base_rate(self) -> float:
        """Observed frequency."""
        return self.events / self.n if self.n else 0.0

    @property
    def rarer(self) -> float:
        """The frequency of the rarer outcome, to which errors are compared."""
        return min(self.base_rate, 1 - self.base_rate)

    @property
    def rare(self) -> bool:
        """Whether one of the outcomes is so rare that errors in points say little."""
        return self.rarer < 0.05

    @property
    def backwards(self) -> bool:
        """Whether higher scores go with fewer events: calibration is rejected, and the slope is below 0 for sure."""
        return self.rejects and self.slope is not None and self.slope.high is not None and self.slope.high < 0

    @property
    def mean_error(self) -> Value | None:
        """L1."""
        return self.error

    @property
    def expected(self) -> float:
        """Events predicted."""
        return self.predicted * self.n

    @property
    def gap(self) -> Value | None:
        """Mean prediction less observed frequency; its interval is that of observed : expected, on this scale."""
        if self.ratio is None:
            return None
        ends = [None if end is None else self.predicted * (1 - end) for end in (self.ratio.high, self.ratio.low)]
        return Value(self.predicted - self.base_rate, *ends)


@dataclass(frozen=True)
class ProbabilityVectors(Shared):
    """Probability vectors. `test` is that of whole vectors; `top` is the evidence on the top label.

    Attributes
    ----------
    decisions : Value or None
        Share of right predictions, where vectors hold only 0 and 1.
    impossible : int
        Rows of a class that was predicted with a probability of exactly 0.
    """

    number: int = 2
    top: Probabilities | None = None
    classes: Classes | None = None
    decisions: Value | None = None
    impossible: int = 0

    @property
    def empty(self) -> bool:
        """Whether there is no row, or no evidence on the top label."""
        return self.n == 0 or self.top is None

    @property
    def mean_error(self) -> Value | None:
        """That of the top label."""
        return None if self.top is None else self.top.error

    @property
    def class_rows(self) -> tuple[GroupRow, ...]:
        """Every class against the rest."""
        return () if self.classes is None else self.classes.rows


@dataclass(frozen=True)
class Forecasts(Shared):
    """Predicted distributions of a number. `test` is of the spread, or of F(y) where there is no standard deviation.

    Attributes
    ----------
    ratio : Value or None
        Root mean squared standardised error; None where the forecasts have no standard deviation.
    by_spread : bool
        Whether `test` is of the ratio.
    bias, bias_p : Value and float, or None
        Mean standardised error, (y - mean) / std, positive where forecasts are too low; and the p-value that it is 0.
    ence, ence_null, spread_p : optional
        ENCE, the range of a calibrated forecaster, and the p-value of the test of errors by predicted spread.
    shape_p : float or None
        The p-value of the uniformity of F(y), where `test` is of the spread.
    coverage, level : Value or None, float
        Share of outcomes in the central interval of nominal coverage `level`.
    variation : float or None
        Coefficient of variation of the predicted spreads.
    outputs : int
        Outputs of each row.
    zero_spread : int
        Rows with a predicted spread of 0 and an error above 0.
    largest_share, largest_row, largest_error, largest_spread
        The row that makes up most of the mean squared standardised error.
    """

    ratio: Value | None = None
    by_spread: bool = True
    bias: Value | None = None
    bias_p: float | None = None
    ence: float | None = None
    ence_null: tuple[float, float] | None = None
    spread_p: float | None = None
    shape_p: float | None = None
    coverage: Value | None = None
    level: float = 0.9
    variation: float | None = None
    outputs: int = 1
    zero_spread: int = 0
    largest_share: float | None = None
    largest_row: int | None = None
    largest_error: float | None = None
    largest_spread: float | None = None

    @property
    def dominated(self) -> bool:
        """Whether one row makes up so much of the mean squared standardised error that it decides the means."""
        return self.largest_share is not None and self.largest_share >= DOMINANT and self.n >= 2 / DOMINANT

    @property
    def secondary(self) -> dict[str, float | None]:
        """P-values of what is tested beside the test of the verdict."""
        return {"bias": self.bias_p, "single rows": self.spread_p, "shape": self.shape_p}

    def also_rejected(self, name: str) -> bool:
        """Whether a secondary test rejects: at 1 %, or after adjustment for all tests of the report."""
        p = self.secondary[name]
        return p is not None and (self.adjusted[name] < ALPHA if name in self.adjusted else p < SECONDARY)


@dataclass(frozen=True)
class Unlabeled(Shared):
    """Positive and unlabeled rows, at an assumed share of positives.

    Attributes
    ----------
    positives, unlabeled : int
    prior, largest_prior : float
    predicted : float
        Mean prediction of the unlabeled rows.
    ratio : Value or None
        The assumed share over the mean prediction; its interval is of sampling only.
    error : Value or None
    priors, errors : tuple
        The error over a range of shares.
    frequency : float or None
        The label frequency, where it was given instead of the share.
    impossible, ranges : int
        Score ranges whose implied share of positives is above 1, its interval too; and all of them.
    """

    positives: int = 0
    unlabeled: int = 0
    prior: float = 0.5
    largest_prior: float | None = None
    predicted: float = 0.0
    ratio: Value | None = None
    error: Value | None = None
    priors: tuple[float, ...] = ()
    errors: tuple[Value, ...] = ()
    frequency: float | None = None
    impossible: int = 0
    ranges: int = 0

    @property
    def empty(self) -> bool:
        """Whether labelled positives or unlabeled rows are missing."""
        return self.positives == 0 or self.unlabeled == 0

    @property
    def mean_error(self) -> Value | None:
        """PU-ECE at the assumed share."""
        return self.error
