"""What a verdict is made from. Sentence, findings and numbers all read the same evidence, so they cannot disagree."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import isfinite

from calibrant.reporting import contents
from calibrant.reporting.names import plural
from calibrant.reporting.rounding import above, count, mapped, p_words, percent
from calibrant.results.estimate import Component, Value

#: Significance level of all tests of a report together.
#: Test: tests/reporting/verdicts/test_severity.py::test_calibrated_models_are_accused_in_one_of_twenty_reports.
ALPHA = 0.05
#: A row that makes up this share of the mean squared standardised error is named.
#: Test: tests/reporting/verdicts/test_forecasts.py::test_one_row_is_named_from_a_fifth_of_the_error_on.
DOMINANT = 0.2
#: Fewer rows, or fewer events or non-events, cannot fit and judge a map.
#: Test: tests/reporting/verdicts/test_answers.py::test_a_map_takes_a_hundred_rows_with_twenty_of_each_outcome.
FEWEST_ROWS, FEWEST_EVENTS = 100, 20


@dataclass(frozen=True)
class VerdictTest:
    """The test of the verdict: its name for readers, its p-value, and the simulated samples behind it, if any.

    `adjusted` is the p-value after adjustment for all `tests` of the report, where there are several. `components` are
    the statements that the test combines, and `decided` the one that its p-value rests on.
    """

    name: str
    p_value: float
    draws: int | None = None
    adjusted: float | None = None
    tests: int = 1
    components: tuple[Component, ...] = ()
    decided: Component | None = None

    def clear(self, name: str) -> Component | None:
        """A component that rejects by itself, within its own share of the level."""
        return next((one for one in self.components if one.name == name and one.p_value <= one.share * ALPHA), None)

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

    `untested` is a clause that says why there is no `test`; `cells` is the number of cells of a table, None for rows;
    `effective_n` is the effective sample size (Kish) of weighted rows; `figures` are the sections beside groups, time
    and recalibration; `adjusted` are the p-values of all tests of the report (see `severity.judged_together`);
    `numbers` are the large numbers of the page, and `audited` is the audit by features, whose error rate is separate.
    """

    n: int
    test: VerdictTest | None = None
    untested: str = ""
    words: Words = field(default_factory=Words)
    tolerance: float | None = None
    groups: tuple[contents.Groups, ...] = ()
    over_time: contents.OverTime | None = None
    recalibration: contents.Recalibration | None = None
    figures: tuple[contents.Section | None, ...] = ()
    cells: int | None = None
    effective_n: float | None = None
    clusters: int | None = None
    adjusted: Mapping[str, float] = field(default_factory=dict)
    numbers: tuple[contents.Number, ...] = ()
    audited: contents.Audited | None = None

    @property
    def counted(self) -> str:
        """The number of rows, as the user calls them."""
        return f"{count(self.n)} {plural(self.words.row, self.n)}"

    @property
    def empty(self) -> bool:
        """Whether there is nothing to judge."""
        return self.n == 0

    @property
    def looks(self) -> tuple[contents.Number, ...]:
        """Large numbers that exclude their ideal where the test of all of them together does not reject."""
        return () if self.rejects else tuple(one for one in self.numbers if one.off)

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

    `events` of weighted rows are their share times the number of rows; `error` is the mean absolute calibration error
    (L1) with the interval of the true error; `intercept` is calibration in the large. `distinct` scores are None where
    a table does not tell, and `largest_gap` is known only where they are few. `top` holds the rows above the 95th
    percentile of the scores. Below `undetected` the test would usually not reject. `certain` is the share of rows
    predicted exactly 0 or 1; of these, `impossible_events` were predicted 0 and came out 1. `levels` are the
    confidences of the intervals of ratio and slope; `needed` rows would rule out what these cannot.
    """

    events: float = 0.0
    predicted: float = 0.0
    observed: Value | None = None
    error: Value | None = None
    ratio: Value | None = None
    slope: Value | None = None
    intercept: Value | None = None
    threshold: contents.Threshold | None = None
    ranges: tuple[contents.Bin, ...] = ()
    distinct: int | None = None
    largest_gap: contents.Bin | None = None
    only_score: float | None = None
    decisions: Decisions | None = None
    top: contents.Bin | None = None
    undetected: float | None = None
    certain: float = 0.0
    impossible_events: float = 0.0
    impossible_others: float = 0.0
    bin_counts: contents.BinCounts | None = None
    confidence: bool = False
    levels: tuple[float, float] = (0.95, 0.95)
    needed: int | None = None
    accuracy: Value | None = None
    """With its interval, where it is not a count."""

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
        """Whether higher scores go with fewer events: the interval of the slope ends nearer to the estimate than to 0.

        An estimate that is normal lies four standard errors below 0 then. An interval that only just excludes 0 is no
        reason to suspect the wrong column: scores that say nothing have one in 2.5 % of samples.
        """
        if not self.rejects or self.slope is None or self.slope.high is None:
            return False
        value = self.slope.value
        return value < 0 and self.slope.high < (value / 2 if isfinite(value) else 0)

    @property
    def uninformative(self) -> bool:
        """Whether higher scores do not go with more events: the interval of the slope holds 0 or less, and no 1/2."""
        low, high = (None, None) if self.slope is None else (self.slope.low, self.slope.high)
        return self.rejects and not self.backwards and low is not None and high is not None and low <= 0 and high < 0.5

    @property
    def tilted(self) -> bool:
        """Whether a map of two parameters, on rows it was not fitted on, moves predictions by half of the error.

        Only then is the error that of the slope; a wave, for example, leaves its error as it was.
        """
        if self.slope is None or not self.slope.excludes(1.0) or self.error is None or self.recalibration is None:
            return False
        line = next((one for one in self.recalibration.maps if one.parameters == 2), None)
        moved = None if line is None or not above(line.gain) else line.moved
        return moved is not None and moved >= self.error.value / 2

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
        gap = mapped(self.ratio, lambda end: self.predicted * (1 - end))
        return replace(gap, value=self.predicted - self.base_rate)


@dataclass(frozen=True)
class JudgedAnswers(Probabilities):
    """Answers with a confidence and a judge's score, of which few have a gold label; `rarer_gold` is of the rarer kind.

    Everything is about all answers, so that `events` are the estimated accuracy times their number. `sampled` says
    whether the probabilities of being labelled were given; `unlabelled` are groups without a gold label.
    """

    gold: int = 0
    rarer_gold: float = 0.0
    sampled: bool = False
    unlabelled: tuple[str, ...] = ()

    @property
    def enough_gold(self) -> bool:
        """Whether gold labels suffice to fit and judge a map."""
        return self.gold >= FEWEST_ROWS and self.rarer_gold >= FEWEST_EVENTS


@dataclass(frozen=True)
class ProbabilityVectors(Shared):
    """Probability vectors. `test` is that of whole vectors; `top` is the evidence on the top label.

    `decisions` is the share of right predictions, where vectors hold only 0 and 1; `impossible` counts rows of a class
    that was predicted with a probability of exactly 0.
    """

    number: int = 2
    top: Probabilities = field(default_factory=lambda: Probabilities(0))
    classes: contents.Classes | None = None
    decisions: Value | None = None
    impossible: int = 0

    @property
    def mean_error(self) -> Value | None:
        """That of the top label."""
        return self.top.error

    @property
    def base_rate(self) -> float:
        """Share of right predictions."""
        return self.top.base_rate

    @property
    def predicted(self) -> float:
        """Mean confidence."""
        return self.top.predicted

    @property
    def class_rows(self) -> tuple[contents.GroupRow, ...]:
        """Every class against the rest."""
        return () if self.classes is None else self.classes.rows


@dataclass(frozen=True)
class Forecasts(Shared):
    """Predicted distributions of a number. `test` is of all that they claim; of a table of spreads, of these alone.

    `ratio` is the root mean squared standardised error; `bias` the mean of
    (y - mean) / std, positive where forecasts are too low; `ence_null` the range of a calibrated forecaster;
    `coverage` the share of outcomes in the central interval of nominal coverage `level`; `variation` the coefficient of
    variation of the predicted spreads; `zero_spread` the rows with a spread of 0 and an error above 0. One row makes up
    `largest_share` of the mean squared standardised error. `ties` is a clause on outcomes that equal quantiles,
    `warning` one on neighbours that depend on each other; where rows reject then, `of_blocks` is the p-value over
    blocks of neighbours.
    """

    ratio: Value | None = None
    bias: Value | None = None
    ence: float | None = None
    ence_null: tuple[float, float] | None = None
    coverage: Value | None = None
    level: float = 0.9
    variation: float | None = None
    outputs: int = 1
    zero_spread: int = 0
    largest_share: float | None = None
    largest_row: int | None = None
    largest_error: float | None = None
    largest_spread: float | None = None
    ties: str = ""
    warning: str = ""
    of_blocks: float | None = None

    @property
    def ence_when_calibrated(self) -> str:
        """Its range for a calibrated forecaster, in percent."""
        low, high = self.ence_null or (0.0, 0.0)
        return percent(Value((low + high) / 2, low, high)).ends

    @property
    def dominated(self) -> bool:
        """Whether one row makes up so much of the mean squared standardised error that it decides the means."""
        return self.largest_share is not None and self.largest_share >= DOMINANT and self.n >= 2 / DOMINANT


@dataclass(frozen=True)
class Unlabeled(Shared):
    """Positive and unlabeled rows, at an assumed share of positives.

    `ratio` is that share over the mean prediction of unlabeled rows, with an interval of sampling only; `errors` belong
    to the shares `priors`; `frequency` is the label frequency, where it was given instead of the share; `impossible` of
    the score `ranges` imply a share of positives above 1, by their whole interval.
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
