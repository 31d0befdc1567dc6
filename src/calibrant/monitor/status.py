"""What a monitor says today: alarm or not, since when, which scores, by how much; and the sentence for it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from calibrant.monitor.deliveries import Kind
from calibrant.results.estimate import Estimate, printable

#: What the exit code of a command says. Derived: those of a gate, passed, failed and undecided.
ALARM, NO_ALARM, NOT_ENOUGH = 1, 0, 3
#: Groups that a sentence names; `Status.groups` lists all.
#: Test: tests/monitor/test_status.py::test_many_groups_are_counted_not_listed.
_NAMED = 8


@dataclass(frozen=True)
class Where:
    """The range of scores (of forecasts, of probability integral transforms) that are off most clearly.

    The log odds of the outcome lie by `shift` above (below, if negative) what is predicted and tolerated.
    """

    low: float
    high: float
    shift: float

    @property
    def direction(self) -> str:
        """Whether the scores are too low or too high."""
        return "too low" if self.shift > 0 else "too high"


@dataclass(frozen=True)
class Status:
    """The state of a watched model; printing it gives one sentence.

    Attributes
    ----------
    alarm : bool
        Whether there has been an alarm. It stays: restart the monitor for a repaired model.
    p_value : float or None
        Smallest significance level at which there would have been an alarm by now, valid at any look; None where
        a mean time between false alarms was asked for.
    evidence : float
        Logarithm (base 10) of the evidence against calibration now.
    rows : int
        Rows so far.
    enough : bool
        Whether odds that are twice (or half) as high as predicted and tolerated would be expected to have raised an
        alarm by now.
    series : str
        What the rest speaks of: all rows ("") or, after an alarm, the group or class with most evidence.
    now, first_alarm : str, str or None
        The last period, and that of the first alarm.
    since, since_set : str or None, pair of str or None
        After an alarm: since when the model is probably off, and the central 90 % of the evidence. Not a proven
        confidence set: it covered the change in 90 to 97 % of simulated streams.
    window : str
        The first period of the rows that `gap` and `observed_expected` speak of: `since` after an alarm, otherwise
        about the last four weeks.
    gap : Estimate
        Mean of outcome minus prediction, with a confidence sequence; of forecasts the share of outcomes outside the
        central half of the predicted distributions, minus 1/2.
    observed_expected : Estimate
        Observed over expected events, with a confidence sequence; of forecasts outcomes outside the central half.
    where : Where or None
        After an alarm, the scores concerned.
    groups : tuple of str
        After an alarm, the groups or classes that are shown to be off; any false one with probability at most alpha.
    notes : tuple of str
        Whatever else is worth knowing.

    Examples
    --------
    >>> import calibrant as cal
    >>> status = cal.Monitor().update([0, 1, 0], [0.2, 0.6, 0.1], time="2026-11-18")
    >>> status.alarm, status.enough, status.exit_code
    (False, False, 3)
    """

    alarm: bool
    p_value: float | None
    evidence: float
    rows: int
    enough: bool
    kind: Kind
    series: str
    now: str
    first_alarm: str | None
    since: str | None
    since_set: tuple[str, str] | None
    window: str
    gap: Estimate
    observed_expected: Estimate
    where: Where | None = None
    groups: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def exit_code(self) -> int:
        """1 after an alarm, 0 without one, 3 where there are not enough rows yet for either to say much."""
        return ALARM if self.alarm else NO_ALARM if self.enough else NOT_ENOUGH

    @property
    def sentence(self) -> str:
        """The status in words."""
        return f"{self.headline} {self.rest}"

    @property
    def rest(self) -> str:
        """By how much, which groups, and remarks."""
        return " ".join(filter(None, [printable(self._size()), self.remarks]))

    @property
    def remarks(self) -> str:
        """Which groups, and what else is worth knowing."""
        off = ""
        if self.groups:
            more = f" and {len(self.groups) - _NAMED} more" if len(self.groups) > _NAMED else ""
            off = f"Groups shown to be off: {', '.join(self.groups[:_NAMED])}{more}."
        return printable(" ".join(filter(None, [off, *self.notes])))

    @property
    def headline(self) -> str:
        """Whether there is an alarm, since when, and where."""
        p = "" if self.p_value is None else f", anytime p = {self.p_value:.2g}"
        if not self.alarm:
            rows = f"{self.rows:,} rows up to {self.now}{p}."
            much = f"Not enough yet: {rows} Odds twice or half of those predicted could go unnoticed so far."
            return printable(f"No alarm: {rows}" if self.enough else much)
        assert self.since_set is not None
        first, last = self.since_set
        about = self.since if first == last else f"about {self.since} ({first} to {last})"
        return printable(f"Alarm on {self.first_alarm}: off since {about}{p}. {self._where()}")

    def _where(self) -> str:
        of = f" of {self.series}" if self.series else ""
        if self.kind != "forecast":
            assert self.where is not None
            what = "Confidences" if self.kind == "multiclass" and not self.series else "Scores"
            low, high = (_score(end) for end in (self.where.low, self.where.high))
            return f"{what}{of} from {low} to {high} are {self.where.direction}."
        if self.gap.interval is None or 0.0 in self.gap.interval:
            return f"The forecasts{of} are off in their centre or shape, not clearly in their spread."
        return f"The predicted spread{of} is too {'large' if self.gap < 0 else 'small'}."

    def _size(self) -> str:
        since = f"{self.series}, since {self.window}" if self.series else f"Since {self.window}"
        if self.kind == "forecast":
            return f"{since}: {_range(self.gap, 0.5, '%')} of outcomes outside the central half, expected 50 %."
        o_e = self.observed_expected
        ends = "" if o_e.interval is None else f" ({o_e.interval.low:.2f} to {o_e.interval.high:.2f})"
        top = self.kind == "multiclass" and not self.series
        what = "accuracy minus confidence" if top else "observed minus predicted"
        return f"{since}: {what} {_range(self.gap, 0.0, 'points', sign='+')}, O:E {o_e.value:.2f}{ends}."

    def to_dict(self) -> dict[str, Any]:
        """Plain types only, ready for JSON."""
        found = {"exit_code": self.exit_code, "sentence": self.sentence, **vars(self)}
        plain = {name: list(value) if isinstance(value, tuple) else value for name, value in found.items()}
        estimates = {"gap": self.gap.to_dict(), "observed_expected": self.observed_expected.to_dict()}
        return {**plain, **estimates, "where": None if self.where is None else vars(self.where)}

    def __str__(self) -> str:
        return self.sentence

    def __repr__(self) -> str:
        return f"<Status: {self.sentence}>"


def _range(gap: Estimate, centre: float, unit: str, *, sign: str = "") -> str:
    """A gap above a centre, with its limits, in hundredths."""
    value, *ends = (100 * (centre + end) for end in (gap, *(gap.interval or ())))
    limits = f" ({ends[0]:{sign}.1f} to {ends[1]:{sign}.1f})" if ends else ""
    return f"{value:{sign}.1f}{limits} {unit}"


def _score(share: float) -> str:
    """An end of a range of scores: to two digits of its distance from 0 or 1, and to a hundredth of a percent at most.

    >>> _score(0.0000583), _score(0.00583), _score(0.3206), _score(0.99642)
    ('0.01 %', '0.58 %', '32 %', '99.64 %')
    """
    nearest = 100 * min(share, 1 - share)
    digits = 0 if nearest == 0 else min(max(1 - math.floor(math.log10(nearest)), 0), 2)
    return f"{100 * share:.{digits}f} %"
