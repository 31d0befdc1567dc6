"""What a report contains: plain results that words, tables and figures are made from, and why some are left out.

Every section is a frozen dataclass of numbers and short texts. A section that cannot be made raises `CannotBuild`;
`Contents.omitted` says why. Probabilities and errors are fractions here; percentage points are a matter of words.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar

from numpy.linalg import LinAlgError

from calibrant.data.validation import UnsupportedPredictions
from calibrant.inference import changes_over_time
from calibrant.results.estimate import Significance, Value, printable

Severity = Literal["problem", "caution", "note"]
State = Literal["not calibrated", "small", "not significant", "too few", "cannot be judged"]
Direction = Literal[
    "too high", "too low", "too extreme", "too moderate", "over-confident", "under-confident",
    "too narrow", "too wide", "backwards", "uninformative", "mixed", "not flagged",
]  # fmt: skip
Axis = Literal["log odds", "linear"]
Kind = Literal["binary", "top label", "classes", "regression", "unlabeled", "judged"]


@dataclass(frozen=True)
class Facts:
    """The line of facts below the title; what is None is left out.

    `row` and `event` are what the user calls one row and one event, in the singular.
    """

    rows: int
    row: str = "row"
    event: str = "event"
    events: float | None = None
    base_rate: float | None = None
    mean_prediction: float | None = None
    effective_rows: float | None = None
    clusters: int | None = None
    period: str | None = None
    model: str | None = None
    source: str | None = None
    classes: int | None = None
    labels: int | None = None


@dataclass(frozen=True)
class Verdict:
    """The answer: a state, one sentence, the most important exception, and three short answers.

    `rule` names the row of the truth table that decided ("B8"), so that tests and readers of JSON can tell.
    """

    rule: str
    state: State
    severity: Severity
    direction: Direction | None
    sentence: str
    second: str = ""
    how_sure: str = ""
    what_it_means: str = ""
    what_to_do: str = ""

    def __str__(self) -> str:
        return printable(f"{self.sentence} {self.second}".strip())


@dataclass(frozen=True)
class Number:
    """One of the three large numbers: value with interval, its ideal, what lies on either side, and one explanation.

    `level` is the confidence of the interval.
    """

    name: str
    value: Value
    ideal: float
    unit: Literal["points", "ratio", "percent", "none"]
    below: str
    above: str
    text: str
    level: float = 0.95

    @property
    def off(self) -> bool:
        """Whether the interval excludes the ideal."""
        return self.value.excludes(self.ideal)


@dataclass(frozen=True)
class Bin:
    """Rows whose score lies in (low, high]: mean prediction, observed frequency and its interval."""

    low: float
    high: float
    n: float
    events: float
    predicted: float
    observed: Value
    share: float | None = None
    """Share of the sum of absolute gaps that these rows carry, where asked for."""

    @property
    def off(self) -> bool:
        """Whether the interval of the observed frequency excludes the mean prediction."""
        return self.observed.excludes(self.predicted)


@dataclass(frozen=True)
class Band:
    """Lower and upper limits at each score."""

    score: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]


@dataclass(frozen=True)
class Curve:
    """The isotonic (CORP) curve by its blocks, and the band in which the true curve lies."""

    low: tuple[float, ...]
    high: tuple[float, ...]
    rate: tuple[float, ...]
    confidence: Band | None = None


@dataclass(frozen=True)
class Threshold:
    """Rows around a decision threshold, and all rows above it."""

    at: float
    around: Bin | None
    above: Bin | None


@dataclass(frozen=True)
class Reliability:
    """The reliability diagram, where the error sits, and the decision threshold.

    `bins` and `histogram` lack the axis of log odds where fewer than two scores lie between 0 and 1.
    """

    curve: Curve
    consistency: Band | None
    bins: Mapping[Axis, tuple[Bin, ...]]
    histogram: Mapping[Axis, tuple[tuple[float, float, float], ...]]
    """Low, high, rows."""
    ranges: tuple[Bin, ...]
    axis: Axis
    distinct: int | None = None
    threshold: Threshold | None = None
    top: Bin | None = None
    """The rows with the highest scores, about one in twenty."""
    note: str = ""
    """What is to be said of intervals that exclude their nominal value where nothing is significant."""


@dataclass(frozen=True)
class NetBenefit:
    """What acting on the predictions is worth at thresholds around the user's own, in true positives per row."""

    at: float
    thresholds: tuple[float, ...]
    values: tuple[Value, ...]
    treat_all: tuple[float, ...]

    @property
    def own(self) -> int:
        """The place of the user's threshold."""
        return min(range(len(self.thresholds)), key=lambda k: abs(self.thresholds[k] - self.at))


@dataclass(frozen=True)
class Period(changes_over_time.Period):
    """Observed and expected events in one period, and whether they differ beyond chance."""

    flagged: bool


@dataclass(frozen=True)
class Change(changes_over_time.Change):
    """The most likely point of change, and whether there is one; `first` is the index of the first period after it."""

    significant: bool


@dataclass(frozen=True)
class OverTime:
    """Observed : expected in order of time."""

    column: str
    periods: tuple[Period, ...]
    change: Change | None
    omitted: str = ""
    """Which rows have no place in time."""
    note: str = ""


@dataclass(frozen=True)
class GroupRow:
    """One group (or one class, or one slice): totals, error, direction, and the p-value adjusted for all groups.

    A forecast's group has the error-to-spread ratio as `ratio`, and no events; one of quantiles or draws the coverage
    of a central interval, whose nominal coverage is `ideal`.
    """

    name: str
    n: float
    ratio: Value
    error: Value
    direction: Direction
    p_value: float
    flagged: bool
    judged: bool = True
    observed: float | None = None
    expected: float | None = None
    slope: Value | None = None
    flagged_after: bool | None = None
    """Whether it is still flagged after the best map for all rows."""
    ideal: float = 1.0


@dataclass(frozen=True)
class Groups:
    """Every group of one column (or of a cross of columns), from too high to too low."""

    column: str
    rows: tuple[GroupRow, ...]
    omitted: str = ""
    """Which groups could not be tested and why."""
    note: str = ""
    search: str = ""
    """How many groups were searched, and that every number is of other rows, where groups were searched for."""


@dataclass(frozen=True)
class MapRow:
    """One recalibration map, cross-validated: what error remains and by how much the loss falls, as a share of it."""

    name: str
    parameters: float
    remaining: Value
    gain: Value
    effect: Literal["best", "helps", "may not help", "makes it worse"]
    moved: float | None = None
    """Mean distance between predictions before and after the map, where known."""


@dataclass(frozen=True)
class Recalibration:
    """Maps compared on rows they were not fitted on, the best first; the curve after the best one; how to apply it."""

    loss: Literal["log loss", "Brier score", "CRPS", "negative log likelihood", "pinball loss"]
    loss_before: float
    maps: tuple[MapRow, ...]
    after: Curve | None = None
    command: str = ""
    code: str = ""
    recent: MapRow | None = None
    """The best map fitted and judged on rows since the change over time."""
    note: str = ""
    fitted: str = ""
    """The class of the map that readers are told to fit, and the condition of the rows it is fitted to, in SQL."""
    since: str = ""


@dataclass(frozen=True)
class BinCounts:
    """Plain ECE against the number of bins, with the range that a calibrated model of the same size would show."""

    counts: tuple[int, ...]
    equal_mass: tuple[float, ...]
    equal_width: tuple[float, ...]
    null_low: tuple[float, ...]
    null_high: tuple[float, ...]


@dataclass(frozen=True)
class Classes:
    """Multiclass data: the test of whole vectors, every class against the rest, and sums by class and score range."""

    test: Significance
    rows: tuple[GroupRow, ...]
    ranges: tuple[tuple[float, float], ...]
    cells: tuple[tuple[tuple[float, float, float, float], ...], ...]
    """Rows, observed, expected and variance of the observed sum, by class (as `rows`) and range."""
    shown: int
    draws: int | None = None
    """Simulated samples that the p-values of classes are ranks among; None where they have a formula."""
    note: str = ""


@dataclass(frozen=True)
class SpreadBin:
    """Forecasts of similar predicted spread: root mean square error with interval, and its range when calibrated."""

    predicted: float
    n: float
    error: Value
    null: tuple[float, float]


@dataclass(frozen=True)
class Coverage:
    """Share of outcomes inside the central interval of a nominal coverage."""

    nominal: float
    observed: Value


@dataclass(frozen=True)
class Spread:
    """Forecasts: predicted spread against errors, coverage of central intervals, and the histogram of F(y)."""

    unit: str
    bins: tuple[SpreadBin, ...]
    coverage: tuple[Coverage, ...]
    pit: tuple[float, ...]
    """Rows per equal class of F(y)."""
    pit_null: tuple[float, float]
    note: str = ""


@dataclass(frozen=True)
class Shares:
    """Positive-unlabeled: the error for a range of assumed shares of positives, and the shares implied by score."""

    prior: float
    priors: tuple[float, ...]
    errors: tuple[Value, ...]
    largest: float | None
    implied: tuple[Bin, ...]


@dataclass(frozen=True)
class SegmentRow:
    """Rows described by a few conditions, whose predictions are off on average; all numbers are of other rows."""

    name: str
    share: float
    n: int
    predicted: float
    observed: Value
    adjusted: float
    direction: Direction


@dataclass(frozen=True)
class Audited:
    """Calibration with respect to features: one sentence, the confirmed segments, and what each feature is worth.

    `features` have the log loss that is lost without each, as a share of the loss.
    """

    sentence: str
    p_value: float
    significant: bool
    segments: tuple[SegmentRow, ...]
    features: tuple[tuple[str, Value], ...]


@dataclass(frozen=True)
class JudgeRow:
    """A judge's scores as probabilities of gold: mean score, share that is right, error, and the test's p-value.

    Of scores outside of [0, 1] only the number of gold labels is known.
    """

    name: str
    labels: int
    mean: float | None = None
    right: Value | None = None
    error: Value | None = None
    p_value: float | None = None


@dataclass(frozen=True)
class Labels:
    """Judged answers by confidence, is the judge calibrated, and what to label next.

    `gain` is the width of the interval of the accuracy over that of the gold labels alone.
    """

    ranges: tuple[Bin, ...]
    judges: tuple[JudgeRow, ...]
    gold: int
    gain: float | None
    code: str
    note: str = ""


#: In the order in which a reader meets them.
Section = (
    Reliability
    | NetBenefit
    | Spread
    | Shares
    | Classes
    | OverTime
    | Groups
    | Labels
    | Audited
    | Recalibration
    | BinCounts
)


@dataclass(frozen=True)
class Omitted:
    """A section that could not be made, and why."""

    section: str
    reason: str


@dataclass(frozen=True)
class Contents:
    """Everything a report says and shows, in reading order."""

    kind: Kind
    facts: Facts
    verdict: Verdict
    numbers: tuple[Number, ...]
    sections: tuple[Section, ...] = ()
    omitted: tuple[Omitted, ...] = ()
    notes: tuple[str, ...] = ()
    """Notes on the method, in full sentences."""


class CannotBuild(Exception):
    """The data cannot make this section; the message is the reason, a sentence for the reader of the report."""


Listener = Callable[[str], None]
_LISTENER: ContextVar[Listener | None] = ContextVar("listener", default=None)


@contextmanager
def told_to(listener: Listener) -> Iterator[None]:
    """Call `listener` with the name of every section that a report begins, while this lasts.

    >>> with told_to(print):
    ...     tell("Recalibration")
    Recalibration
    """
    before = _LISTENER.set(listener)
    try:
        yield
    finally:
        _LISTENER.reset(before)


def tell(name: str) -> None:
    """Say that a section begins; nothing happens where nobody listens."""
    listener = _LISTENER.get()
    if listener is not None and name:
        listener(name)


Result = TypeVar("Result")

#: What data can make impossible. Anything else is a mistake of the program and is not hidden.
IMPOSSIBLE = (CannotBuild, UnsupportedPredictions, ValueError, ArithmeticError, LinAlgError)


#: "ProfileLikelihood needs ...": readers know no such name.
_WHO = re.compile(r"^[\w.]+(?:\(.*?\))? (needs|cannot|does not)\b")


@dataclass(frozen=True)
class Options:
    """What the user asked for, checked.

    `by` has the name of each column ("" if it has none) and the group of every row, or a table per group; with
    `confirm`, groups are found on one half of the rows and tested on the other.
    """

    title: str = "Calibration report"
    by: tuple[tuple[str, Any], ...] = ()
    confirm: bool = False
    time: tuple[str, Any] | None = None
    threshold: float | None = None
    tolerance: float | None = None
    model: str | None = None
    event: str | None = None
    row: str | None = None
    source: str | None = None
    audit: Any = None
    seed: int = 0
    rows: str = "data"
    """What the user would fit a map to, in Python."""


@dataclass
class Assembly:
    """What is being put together, and what had to be left out."""

    omitted: list[Omitted] = field(default_factory=list)

    def attempt(self, name: str, build: Callable[[], Result]) -> Result | None:
        """A result that the data may make impossible; then the reason is kept. A name of "" keeps none."""
        tell(name)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # what matters of them is a finding or a note
                return build()
        except IMPOSSIBLE as error:
            if name:
                self.omit(name, sentence(str(error)))
            return None

    def omit(self, section: str, reason: str) -> None:
        """Say that a section is left out, and why."""
        self.omitted.append(Omitted(section, reason))


def sentence(text: str) -> str:
    """A reason as a sentence, without the name of the function that gave it."""
    text = _WHO.sub(r"It \1", " ".join(text.split())) or "These data do not allow it"
    return f"{text[0].upper()}{text[1:]}{'' if text.endswith(('.', '!', '?')) else '.'}"
