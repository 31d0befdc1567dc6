"""The monitor: deliveries of rows in, one status out, and a state that adds up, is saved and read back."""

from __future__ import annotations

import hashlib
import math
import os
from collections.abc import Iterable
from functools import partial
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike

from calibrant.data import validation
from calibrant.data.predictions import Predictions
from calibrant.data.validation import fail
from calibrant.inference.reliability import ReliabilityCurve, reliability_curve
from calibrant.monitor import bets
from calibrant.monitor.bets import FIRST, LIFE, Blocks, start_weight
from calibrant.monitor.deliveries import EVERYTHING, GROUP_CELLS, Delivery, Kind, Times, period_name, period_numbers
from calibrant.monitor.status import Status, Where
from calibrant.numerics.arrays import Floats
from calibrant.recalibrate.auto import Auto
from calibrant.recalibrate.logistic import Platt
from calibrant.results.estimate import Estimate
from calibrant.results.target import Target
from calibrant.table.binning import Distinct
from calibrant.table.bintable import BinTable

#: Of the evidence, half is that of all rows and half that of groups; of this, groups that come later share a tenth.
#: Derived: with groups, an alarm of all rows needs twice the evidence, and one of a group 2 G / 0.9 times.
ALL_ROWS, LATER_GROUPS = 0.5, 0.1
#: Days without an alarm that `gap` and `observed_expected` look back. Derived: four weeks hold each weekday equally.
LATELY = 28
#: Largest distance between two periods with rows; beyond it a date is treated as mistyped. Derived: a year of days.
LARGEST_STEP = 366
#: Periods for which the ids of deliveries are remembered, and after which rows are too late. Derived: more than a year,
#: so that what is sent again at the end of a year is recognised.
MEMORY = 400
#: Points of the curve of evidence over time that are kept. Derived: more than a line on a page can show.
HISTORY = 200
#: Starts with at least this share of the evidence at an alarm stay, so that the time of the change becomes clearer.
#: Derived: what is left out could shift the central 90 % of the evidence by at most LIFE * 8 of these.
_PINNED = 1e-4
#: Odds, relative to those predicted and tolerated, that must be noticeable before `Status.enough` is true. Derived:
#: the convention that odds ratios below 2 are small.
_NOTICEABLE = 2.0


class Series(NamedTuple):
    """A class or group: its rows and observed over expected since the change (or lately), and all its evidence."""

    n: float
    ratio: float
    evidence: float


class Monitor:
    r"""Monitor calibration over time, with a bound on the probability of a false alarm.

    **The probability that a calibrated model ever raises an alarm is at most `alpha`**, however often you look. The
    evidence is the wealth of bets against calibration (`calibrant.monitor.bets`), averaged over many alternatives and
    possible dates of a change; the alarm is raised when it reaches 1 / alpha. The state holds sums per cell of the
    score and block of periods, so deliveries may arrive late or in any order, and states can be merged.

    The guarantee holds if, given the outcomes already delivered, the rows of a delivery are independent and have the
    predicted probabilities. Three things break it: one of the two outcomes is known sooner than the other (pass
    `horizon`, and deliver whole periods), rows of a delivery are dependent (pass `cluster`), or outcomes refer to
    overlapping windows of time (deliver windows that do not overlap).

    Parameters
    ----------
    alpha : float
        Probability of ever raising a false alarm.
    arl : float, optional
        Instead of `alpha`: the mean number of periods to a false alarm is at least `arl`.
    tolerance : float
        Tolerated relative error of the odds: with 0.1, a probability of 20 % may be 18.5 to 21.6 %.
    points : float
        Tolerated absolute error of a probability, in addition.
    horizon : int
        Periods until an outcome is final. Younger rows (see `today` of `update`) raise an error.
    reference : array-like, optional
        Scores, without outcomes, from which the ranges of scores are made; by default those of the first delivery.
    origin : int or date, optional
        The first period; by default that of the first delivery. Shards that are merged later need the same
        `reference`, `origin` and `groups`.
    groups : sequence, optional
        The groups, if known before the first delivery.

    References
    ----------
    Ville (1939); Shin, Ramdas, Rinaldo (2023), E-detectors, for `arl`; Vovk, Wang (2021), E-values, for groups.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> monitor = Monitor()
    >>> for day in range(60):
    ...     p = rng.beta(1, 3, 300)
    ...     rate = p if day < 30 else p / (p + 0.5 * (1 - p))  # the odds double
    ...     status = monitor.update(rng.random(300) < rate, p, time=day)
    >>> status.alarm, status.first_alarm, status.since
    (True, '31', '30')
    >>> monitor.repair().predict_proba([0.2]).round(2).tolist()  # it was 0.2, and is 1/3
    [[0.67, 0.33]]
    """

    def __init__(
        self,
        alpha: float = 0.05,
        *,
        arl: float | None = None,
        tolerance: float = 0.1,
        points: float = 0.0,
        horizon: int = 0,
        reference: ArrayLike | None = None,
        origin: Any = None,
        groups: Iterable[Any] | None = None,
    ) -> None:
        self.alpha = validation.fraction("alpha", alpha)
        self.arl = arl if arl is None else _at_least("arl", arl, 1.0)
        self.tolerance = _at_least("tolerance", tolerance, 0.0)
        self.points = _at_least("points", points, 0.0)
        self.horizon = validation.whole("horizon", horizon, minimum=0)
        self.kind: Kind | None = None
        self.columns: dict[str, str] = {}
        self.dates: bool | None = None
        self.origin: int | None = None
        if origin is not None:
            first = period_numbers(origin, 1)
            self.origin, self.dates = int(first.number[0]), first.dates
        self.reference: Floats | None = None
        if reference is not None:
            scores = validation.probabilities("reference", reference).astype(np.float64)
            self.reference = np.bincount(bets.cells_of(scores), minlength=bets.CELLS).astype(np.float64)
        self.now = self.deliveries = self.rows = 0
        self.peak = -math.inf
        self.alarmed: int | None = None
        self.pinned: tuple[int, ...] = ()
        self.shares = {} if groups is None else _shares([str(name) for name in groups])
        self.declared = len(self.shares)
        self.seen: dict[str, tuple[int, int]] = {}
        self.history: list[tuple[int, float]] = []
        self.series: dict[str, Blocks] = {}

    def update(
        self,
        y_true: Predictions | BinTable | ArrayLike,
        y_prob: ArrayLike | None = None,
        *,
        time: Any = None,
        group: Any = None,
        batch: Any = None,
        cluster: ArrayLike | None = None,
        weight: ArrayLike | None = None,
        today: Any = None,
        force: bool = False,
    ) -> Status:
        """Add a delivery of rows with known outcomes. Where something is wrong with it, nothing is added.

        Parameters
        ----------
        y_true : array-like, Binary, Multiclass, Gaussian, Quantiles, Samples, Distribution, or BinTable
            Outcomes, or predictions with outcomes, or the fine table of one period. Of multiclass predictions the top
            label and each class are watched, of forecasts the probability integral transform.
        y_prob : array-like, optional
        time : array-like, or one value
            The period of each row: a date (its day) or a whole number. By default each delivery is a period.
        group : array-like, or one value for a table
            Groups that are watched apart as well.
        batch : any value, optional
            Names the delivery: the same name again changes nothing.
        cluster : array-like, optional
            Rows that belong together; each cluster counts as one row of this delivery.
        weight : array-like in [0, 1], optional
        today : date or int, optional
            Needed with `horizon`: rows of the last `horizon` periods up to today are refused.
        force : bool
            Accept periods that are more than a year apart.
        """
        delivery = Delivery.of(y_true, y_prob, group=group, cluster=cluster, weight=weight)
        key = None if batch is None else hashlib.blake2s(str(batch).encode(), digest_size=6).hexdigest()
        if key in self.seen:
            if (before := self.seen[key][1]) != delivery.rows:
                then = f"{before:,} rows, now with {delivery.rows:,}"
                fail(f"batch {str(batch)!r} was delivered before with {then}: give this delivery another name.")
            return self.status("This delivery was counted before; nothing was added.")
        rows = 1 if delivery.one_period else delivery.rows
        if time is not None:
            times = period_numbers(time, rows)
        elif self.dates:
            fail("The periods of this monitor are dates: pass time=....")
        else:
            times = Times(np.full(rows, (self.origin or 0) + self.deliveries), dates=False)
        self._require_alike(delivery, times)
        self._require_timely(times, today, force=force)
        self._begin(delivery, times)
        assert self.origin is not None
        period = np.maximum(times.number - self.origin, 0)
        distinct, index = np.unique(period, return_inverse=True)
        self.now = max(self.now, int(distinct[-1]))
        for series, cells, squares in delivery.sums(index.reshape(-1), len(distinct)):
            blocks = self._blocks(series)
            blocks.advance(self.now, self.pinned)
            for k, one in enumerate(distinct.tolist()):
                if cells[k, :, 0].any():
                    blocks.add(one, cells[k], float(squares[k]))
        self.deliveries += 1
        self.rows += delivery.rows
        if key is not None:
            self.seen[key] = (self.now, delivery.rows)
        self.seen = {one: when for one, when in self.seen.items() if self.now - when[0] <= MEMORY}
        return self._looked()

    def status(self, *notes: str) -> Status:
        """What is known now, without new rows."""
        alarm, total = self.alarmed is not None, self._total()
        lead = self._lead() if alarm else EVERYTHING
        since, first, last = self._change(lead)
        window = self._window(lead)
        gap, ratio = self._sizes(lead, window)
        return Status(
            alarm=alarm,
            p_value=None if self.arl is not None else min(1.0, math.exp(-max(self.peak, total))),
            evidence=total / math.log(10),
            rows=self.rows,
            enough=self._enough(),
            kind=self.kind or "binary",
            series=lead,
            now=self.period_name(self.now),
            first_alarm=None if self.alarmed is None else self.period_name(self.alarmed),
            since=self.period_name(since) if alarm else None,
            since_set=(self.period_name(first), self.period_name(last)) if alarm else None,
            window=self.period_name(window),
            gap=gap,
            observed_expected=ratio,
            where=self._where(lead, since) if alarm else None,
            groups=self._groups() if alarm else (),
            notes=(*notes, *self._remarks(gap)),
        )

    def curve(self, *, half_life: float = 30) -> ReliabilityCurve:
        """The reliability curve now: a row counts half for each `half_life` periods that have passed since."""
        self._require_probabilities("A reliability curve")
        squares = self._everything.faded(half_life / 2)[:, 0]
        return reliability_curve(_table(self._everything.faded(half_life), squares))

    def repair(self) -> Auto | Platt:
        """A map fitted to the rows since the change: `recalibrate.Auto`, or `Platt` if rows are weighted or clustered.

        Deploy it at the alarm, start a new monitor for its output, and give all rows since then to `improvement` at
        every look: roll back once its upper end is below zero.
        """
        self._require_probabilities("A repair")
        sums = self._everything.since(self._change(EVERYTHING)[0]).sums
        whole = np.array_equal(sums[:, [0, 2]], np.rint(sums[:, [0, 2]]))
        return (Auto() if whole else Platt()).fit_table(_table(sums, sums[:, 0]))

    def improvement(self, y_true: ArrayLike, before: ArrayLike, after: ArrayLike) -> Estimate:
        """`calibrant.monitor.improvement` at the level of this monitor."""
        return bets.improvement(y_true, before, after, alpha=self.alpha)

    def tables(self) -> tuple[BinTable | None, BinTable]:
        """The rows of binary predictions before the change and since it; without an alarm, before lately and lately."""
        blocks = self._everything
        window = self._window(EVERYTHING)
        since, whole = blocks.since(window).sums, blocks.since(0).sums
        before = whole - since
        return (_table(before, before[:, 0]) if before[:, 0].any() else None), _table(since, since[:, 0])

    def by_series(self) -> dict[str, Series]:
        """For each class and group: rows and observed over expected since the change (or lately), and evidence."""
        found, window = {}, self._window(EVERYTHING)
        for name in self._apart:
            n, expected, observed = self._totals(self.series[name].since(window).sums)
            evidence = math.exp(min(self.series[name].evidence().total, 600.0))
            found[name] = Series(n, observed / expected if expected else math.nan, evidence)
        return found

    def period_name(self, period: int) -> str:
        """The date or number of a period counted from the first."""
        return period_name((self.origin or 0) + period, dates=bool(self.dates))

    def merge(self, other: Monitor) -> Status:
        """Add the rows of a shard that was watched apart, with the same settings, reference, origin and groups.

        The merged monitor speaks of all rows together: what a shard said by itself, an alarm included, is not taken
        over. Rows of one cluster must not be divided between shards. Until the first alarm of either, the evidence is
        that of one monitor of all rows.
        """
        for name in ("alpha", "arl", "tolerance", "points", "horizon", "kind", "dates", "origin", "columns"):
            if getattr(self, name) != getattr(other, name):
                both = f"{getattr(self, name)!r} and {getattr(other, name)!r}"
                fail(f"Only shards with the same {name} can be merged, not {both}.", ValueError)
        mine, theirs = (np.empty(0) if one.reference is None else one.reference for one in (self, other))
        if not np.array_equal(mine, theirs) or self.shares != other.shares:
            fail(
                "Only shards with the same reference and groups can be merged: pass reference= and groups=.", ValueError
            )
        if common := set(self.seen) & set(other.seen):
            fail(f"Shards hold {len(common):,} deliveries in common: their rows would count twice.", ValueError)
        self.now = max(self.now, other.now)
        self.pinned = tuple(sorted({*self.pinned, *other.pinned}))
        self.rows, self.deliveries = self.rows + other.rows, self.deliveries + other.deliveries
        self.seen |= other.seen
        for blocks in self.series.values():
            blocks.advance(self.now, self.pinned)
        for name, shard in other.series.items():
            blocks = self._blocks(name)
            for start, sums in shard.sums.items():
                blocks.add(start, sums, shard.squares[start])
        self.peak, self.alarmed = -math.inf, None
        return self._looked()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the state to a JSON file, all of it or nothing."""
        bets.save(self, path)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a state that `save` wrote; what is damaged or of another kind is refused."""
        return bets.load(cls, path)

    def __repr__(self) -> str:
        promise = f"alpha={self.alpha:g}" if self.arl is None else f"arl={self.arl:g}"
        return f"<Monitor, {promise}, tolerance={self.tolerance:g}, {self.rows:,} rows in {len(self.series)} series>"

    # --- deliveries

    def _require_timely(self, times: Times, today: Any, *, force: bool) -> None:
        """Refuse rows whose outcomes are not final, dates that look mistyped, and rows that are too late."""
        shown = partial(period_name, dates=times.dates)
        if self.horizon:
            if today is None:
                fail(f"Outcomes are final after {self.horizon} periods (horizon), so update needs today=....")
            last = int(period_numbers(today, 1).number[0]) - self.horizon
            rule = f"must be at most {shown(last)}, {self.horizon} periods before today"
            remedy = " Outcomes that are known early are not a fair sample: deliver these rows when all are known."
            validation.require("time", times.number, times.number <= last, rule, remedy=remedy)
        newest = None if self.origin is None or not self.rows else self.origin + self.now
        steps = np.unique(times.number if newest is None else np.append(times.number, newest))
        far = np.flatnonzero(np.diff(steps) > LARGEST_STEP)
        if len(far) and not force:
            before, after = (shown(int(steps[far[0] + k])) for k in (0, 1))
            fail(
                f"time jumps from {before} to {after}, by more than {LARGEST_STEP} periods: is a date mistyped? "
                "Pass force=True if it is right."
            )
        if newest is not None and steps[0] < newest - MEMORY:
            fail(
                f"time reaches back to {shown(int(steps[0]))}, more than {MEMORY} periods before the last row: whether "
                "these rows were delivered before is no longer known."
            )

    def _require_alike(self, delivery: Delivery, times: Times) -> None:
        """Refuse what is not of the kind that this monitor watches."""
        if self.kind is not None and delivery.kind != self.kind:
            fail(f"This monitor watches {self.kind} predictions; these are {delivery.kind}. Start another one.")
        if self.dates is not None and times.dates != self.dates:
            kinds = ("dates", "numbers") if self.dates else ("numbers", "dates")
            fail("The periods of this monitor are {}; these are {}.".format(*kinds))
        if self.rows and delivery.groups and not self.shares:
            fail(
                "The first delivery had no groups, and evidence must be set aside for them from the start. Start "
                "another monitor, with groups in its first delivery or in groups=...."
            )

    def _begin(self, delivery: Delivery, times: Times) -> None:
        """What the first delivery decides, from its scores and groups but not from its outcomes."""
        self.kind, self.dates = delivery.kind, times.dates
        self.reference = delivery.reference if self.reference is None else self.reference
        self.origin = int(times.number.min()) if self.origin is None else self.origin
        if not self.shares and delivery.groups:
            self.shares = _shares(delivery.groups)
            self.declared = len(self.shares)

    def _blocks(self, series: str) -> Blocks:
        if series not in self.series:
            whole = series == EVERYTHING
            if self.kind == "forecast":
                own = bets.Bets.on_tree(self.tolerance, self.points)
            else:
                assert self.reference is not None
                cells = self.reference.reshape(bets.CELLS if whole else GROUP_CELLS, -1).sum(axis=1)
                own = bets.Bets.on_scores(cells, self.tolerance, self.points)
            blocks = Blocks(own, LIFE if whole else LIFE // 4)
            blocks.advance(self.now, self.pinned)
            self.series[series] = blocks
            if not whole and series not in self.shares:
                later = len(self.shares) - self.declared + 1
                self.shares[series] = LATER_GROUPS * start_weight(later) / (1 - FIRST)
        return self.series[series]

    # --- evidence

    @property
    def _everything(self) -> Blocks:
        if EVERYTHING not in self.series:
            fail("There are no rows yet: call update first.", ValueError)
        return self.series[EVERYTHING]

    @property
    def _apart(self) -> list[str]:
        """The classes and groups."""
        return [name for name in self.series if name != EVERYTHING]

    def _prior(self, series: str) -> float:
        """The share of a series in the evidence."""
        if not self.shares:
            return 1.0
        return ALL_ROWS if series == EVERYTHING else (1 - ALL_ROWS) * self.shares[series]

    def _weighted(self) -> dict[str, float]:
        """The logarithm of the evidence of each series, times its share."""
        arl = self.arl is not None
        return {name: math.log(self._prior(name)) + one.evidence(arl=arl).total for name, one in self.series.items()}

    def _total(self) -> float:
        """Logarithm of the evidence of all rows and of the groups together."""
        self._everything  # noqa: B018 - an error if there are no rows
        return float(bets.log_sum(np.array(list(self._weighted().values())), axis=0))

    def _lead(self) -> str:
        """The series with most evidence: all rows, or a group or class."""
        weighted = self._weighted()
        return max(weighted, key=weighted.__getitem__)

    @property
    def _limit(self) -> float:
        """Logarithm of the evidence of an alarm."""
        return math.log(self.arl) if self.arl is not None else -math.log(self.alpha)

    def _looked(self) -> Status:
        """The status after new rows; the largest evidence and the first alarm are remembered."""
        total = self._total()
        self.peak = max(self.peak, total)
        if self.peak >= self._limit and self.alarmed is None:
            self.alarmed = self.now
            starts, shares = self._wealth(self._lead())
            self.pinned = tuple(start for start, share in zip(starts, shares, strict=True) if share > _PINNED)
        self.history = [*(one for one in self.history if one[0] != self.now), (self.now, total / math.log(10))]
        if len(self.history) > HISTORY:  # without every second of the older half
            self.history = self.history[: HISTORY // 2 : 2] + self.history[HISTORY // 2 :]
        return self.status()

    def _wealth(self, series: str) -> tuple[list[int], Floats]:
        """The starts, and the share of each in the evidence if every period is as likely to be the first one."""
        found = self.series[series].evidence(arl=self.arl is not None)
        logs = found.own + np.log(np.diff([*found.starts, self.now + 1]))
        shares = np.exp(logs - logs.max())
        return found.starts, shares / shares.sum()

    def _change(self, series: str) -> tuple[int, int, int]:
        """The most likely start of the miscalibration, and the first and last period of the central 90 %."""
        starts, shares = self._wealth(series)
        low, high = np.minimum(np.searchsorted(np.cumsum(shares), [0.05, 0.95]), len(shares) - 1)
        ends = [*(start - 1 for start in starts[1:]), self.now]
        return starts[int(shares.argmax())], starts[low], ends[high]

    def _window(self, series: str) -> int:
        """The start of the rows that sizes speak of: the change after an alarm, else about `LATELY` periods ago."""
        if self.alarmed is not None:
            return self._change(self._lead())[0]
        starts = self.series[series].sums
        return max((start for start in starts if start <= self.now - LATELY), default=min(starts))

    def _totals(self, sums: Floats) -> tuple[float, float, float]:
        """Rows, expected and observed; of forecasts outcomes outside the central half."""
        if self.kind == "forecast":  # the lower half of the lower half, and the upper half of the upper
            return float(sums[0, 0]), float(sums[0, 1]), float(sums[1, 0] - sums[1, 2] + sums[2, 2])
        n, expected, observed = sums.sum(axis=0).tolist()
        return n, expected, observed

    def _sizes(self, series: str, window: int) -> tuple[Estimate, Estimate]:
        """Gap and ratio of the rows since a start, with confidence sequences that hold for all starts together."""
        sums, squares = self.series[series].since(window)
        n, expected, observed = self._totals(sums)
        alpha = self.alpha * start_weight(window) * self._prior(series)
        low, high = bets.mean_sequence(n, observed - expected, squares, alpha)
        level = 1 - self.alpha
        estimate = partial(Estimate, method="sums of rows", n=round(n))
        gap = estimate((observed - expected) / n, name="Observed minus predicted")
        gap = gap.with_interval(bets.sequence_interval(low, high, level))
        if expected == 0:
            return gap, estimate(math.nan, name="Observed over expected")
        ratio = estimate(observed / expected, name="Observed over expected")
        low, high = (max(0.0, 1 + n * end / expected) for end in (low, high))
        return gap, ratio.with_interval(bets.sequence_interval(low, high, level, Target("observed to expected ratio")))

    def _where(self, series: str, start: int) -> Where:
        blocks = self.series[series]
        sums = blocks.since(start).sums
        found = bets.strongest(blocks.bets.gains(sums))
        if self.kind == "forecast":
            return Where(found.leaves.start / bets.LEAVES, found.leaves.stop / bets.LEAVES, found.shift)
        inside = (blocks.bets.leaf >= found.leaves.start) & (blocks.bets.leaf < found.leaves.stop)
        cells = np.flatnonzero(inside & (sums[:, 0] > 0))
        edges = bets.cell_edges(blocks.bets.cells)
        return Where(float(edges[cells[0]]), float(edges[cells[-1] + 1]), found.shift)

    def _groups(self) -> tuple[str, ...]:
        """Groups named by closed testing, the most evident first."""
        names = self._apart
        if not names:
            return ()
        evidence = np.array([self.series[name].evidence().total for name in names])
        adjusted = bets.closed_testing(np.exp(np.minimum(evidence, 600.0)))
        order = np.argsort(-evidence, kind="stable")
        return tuple(names[k] for k in order if adjusted[k] >= 1 / self.alpha)

    def _enough(self) -> bool:
        """Whether odds twice or half of those tolerated would be expected to have raised an alarm."""
        blocks, share = self._everything, start_weight(0) * self._prior(EVERYTHING)
        sums = blocks.since(0).sums.copy()
        mean = sums[:, 1] / np.where(sums[:, 0] > 0, sums[:, 0], 1.0)
        for sign in (1, -1):
            edge = blocks.bets.allowed(mean, sign)
            odds = _NOTICEABLE**sign
            sums[:, 2] = sums[:, 0] * edge * odds / (1 + edge * (odds - 1))
            if float(bets.log_evidence(blocks.bets.gains(sums))) + math.log(share) < self._limit:
                return False
        return True

    def _remarks(self, gap: Estimate) -> tuple[str, ...]:
        """Why there is no alarm although the interval of the gap excludes zero, or one although it includes it."""
        if gap.interval is None or (0.0 in gap.interval) != (self.alarmed is not None):
            return ()
        if self.alarmed is not None:
            if self.kind == "forecast":  # the headline says that the spread is not clearly off
                return ()
            reached, needed = (f"{math.exp(min(power, 600.0)):,.3g}" for power in (self.peak, self._limit))
            return (
                f"The alarm rests on the evidence, which reached {reached}; {needed} is enough. The interval still "
                "includes zero: it is of the mean error alone, in which errors of opposite signs cancel, and it is "
                "wide because it is valid for any distribution of the outcomes.",
            )
        if self.tolerance or self.points:
            return ("No alarm, since it is not shown to exceed the tolerance.",)
        return ("It is not yet enough for an alarm.",)

    def _require_probabilities(self, what: str) -> None:
        if self.kind != "binary":
            fitted = f"{self.kind} ones, fit recalibrate.{'AutoForecast' if self.kind == 'forecast' else 'Auto'}"
            fail(f"{what} needs binary predictions; of {fitted} to the rows since the change.", ValueError)


def _shares(groups: list[str]) -> dict[str, float]:
    """Equal shares of the evidence for the groups that are known from the beginning."""
    return {name: (1 - LATER_GROUPS) / len(groups) for name in groups}


def _table(sums: Floats, weight_squares: Floats) -> BinTable:
    """The cells that hold rows as a fine table, each with its mean score."""
    some = sums[:, 0] > 0
    weight, predicted, observed = sums[some].T
    mean = np.clip(predicted / weight, 0.0, 1.0)
    columns = [weight, weight, weight_squares[some], predicted, observed, predicted * mean, observed * mean, observed]
    return BinTable(Distinct(), mean, mean, mean, np.stack(columns))


def _at_least(name: str, value: float, least: float) -> float:
    number = validation.as_number(value)
    if not (math.isfinite(number) and number >= least):
        fail(f"{name} must be a number of at least {least:g}, got {value!r}.", ValueError)
    return number
