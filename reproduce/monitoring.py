"""Does the monitor keep its promise, and how soon does it notice a change?

``python -m reproduce.monitoring`` writes reproduce/results/monitoring.md; what its CSV files hold already is not
measured again. Many streams are watched at once here (`Streams`); a test compares their evidence with that of
`cal.Monitor`.
"""

from __future__ import annotations

import math
import platform
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import expit, logit
from scipy.stats import beta as beta_distribution
from scipy.stats import norm

import calibrant as cal
from calibrant.monitor.bets import (
    ALL_RANGES,
    CELLS,
    LEAVES,
    LIFE,
    ONE_RANGE,
    QUIET,
    SHIFT,
    SLOPE,
    Bets,
    Gains,
    cells_of,
    log_evidence,
    log_sum,
    start_weight,
    tree_sums,
)
from reproduce.resumable import Row, asked_samples, markdown, measured

RESULTS = Path(__file__).with_name("results")
#: Rows of a day unless a world says otherwise, and days of a stream.
ROWS, DAYS = 100, 1000
#: The last calibrated day before a change is drawn from these, and days after it.
CHANGE, AFTER = (180, 220), 400


class Streams:
    """Many streams watched at once; the evidence is evaluated only where a bound says that it may raise an alarm."""

    def __init__(self, size: int, bets: Bets, *, limit: float, arl: bool = False) -> None:
        self.size, self.bets, self.limit, self.arl = size, bets, limit, arl
        self.starts: list[int] = []
        self.ranges = np.zeros((0, size, 31, 14), dtype=np.float32)
        self.slopes = np.zeros((0, size, 30), dtype=np.float32)
        self.alarm = np.full(size, -1)

    def add(self, day: int, sums: np.ndarray) -> None:
        """Add the sums of a day: streams by cells by 3."""
        kept = [k for k, start in enumerate(self.starts) if start == 0 or day - start < LIFE * (start & -start)]
        if len(kept) < len(self.starts):
            self.ranges, self.slopes = self.ranges[kept], self.slopes[kept]
            self.starts = [self.starts[k] for k in kept]
        self.starts.append(day)
        self.ranges = np.concatenate([self.ranges, np.zeros((1, *self.ranges.shape[1:]), dtype=np.float32)])
        self.slopes = np.concatenate([self.slopes, np.zeros((1, *self.slopes.shape[1:]), dtype=np.float32)])
        gains = self.bets.gains(sums)
        nested = [gains.ranges]
        while nested[0].shape[-2] > 1:
            nested.insert(0, nested[0][..., ::2, :] + nested[0][..., 1::2, :])
        self.ranges += np.concatenate(nested, axis=-2).astype(np.float32)
        self.slopes += gains.slopes.astype(np.float32)

    def look(self, day: int) -> None:
        """Note the alarms of this day."""
        near = np.flatnonzero((self.alarm < 0) & (self._bound() >= self.limit))
        if len(near):
            found = self.evidence(near)
            self.alarm[near[found >= self.limit]] = day

    def evidence(self, some: Any = slice(None)) -> np.ndarray:
        """Logarithm of the evidence of streams."""
        leaves = self.ranges[:, some, 15:].astype(np.float64)
        own = log_evidence(Gains(leaves, self.slopes[:, some].astype(np.float64)))
        return log_sum(own + self._weights()[:, None], axis=0)

    def _weights(self) -> np.ndarray:
        return np.log([start_weight(start, arl=self.arl) for start in self.starts])

    def _bound(self) -> np.ndarray:
        """An upper bound of the evidence: every mixture is at most its largest part."""
        most = np.exp(np.minimum(self.ranges.max(axis=-1), 80.0))
        found = SHIFT * most[..., 0] + SLOPE * np.exp(np.minimum(self.slopes.max(axis=-1), 80.0))
        for size in (2, 4, 8, 16):
            level = most[..., size - 1 : 2 * size - 1]
            found += ONE_RANGE / 4 * level.mean(axis=-1) + ALL_RANGES / 4 * (QUIET + (1 - QUIET) * level).prod(axis=-1)
        return np.log(np.einsum("js,j->s", found.astype(np.float64), np.exp(self._weights())))


def day_sums(y: np.ndarray, p: np.ndarray, w: np.ndarray | None = None) -> np.ndarray:
    """Sums of streams by rows, as streams by cells by 3."""
    w = np.ones(p.shape) if w is None else w
    place = (np.arange(len(p))[:, None] * CELLS + cells_of(p)).ravel()
    columns = [np.bincount(place, values.ravel(), len(p) * CELLS) for values in (w, w * p, w * y)]
    return np.stack(columns, axis=1).reshape(len(p), CELLS, 3)


def reference_of(p: np.ndarray) -> np.ndarray:
    return np.bincount(cells_of(p.ravel()), minlength=CELLS).astype(float)


# --- calibrated worlds: (rng, day, streams, what happened before) -> scores, true probabilities, weights


def _plain(draw: Callable[[np.random.Generator, tuple[int, int]], np.ndarray]) -> Callable[..., Any]:
    def world(rng: np.random.Generator, day: int, size: int, past: np.ndarray) -> Any:
        p = draw(rng, (size, ROWS))
        return p, p, None

    return world


def _drifting(rng: np.random.Generator, day: int, size: int, past: np.ndarray) -> Any:
    p = expit(rng.normal(-1.5 + 1.5 * np.sin(day / 40), 1.2, (size, ROWS)))
    return p, p, None


def _chosen_from_the_past(rng: np.random.Generator, day: int, size: int, past: np.ndarray) -> Any:
    p = expit(rng.normal(-1.0, 1.0, (size, ROWS)) + np.sign(past)[:, None])
    return p, p, None


def _tolerated(rng: np.random.Generator, day: int, size: int, past: np.ndarray) -> Any:
    p = expit(rng.normal(-1.5, 1.2, (size, ROWS)))
    return p, expit(logit(p) + math.log(1.1)), None


def _clustered(rng: np.random.Generator, day: int, size: int, past: np.ndarray) -> Any:
    """Clusters of ten rows with the same score, whose outcomes share a beta variable (intraclass correlation 0.1)."""
    p = np.repeat(expit(rng.normal(-1.5, 1.2, (size, ROWS // 10))), 10, axis=1)
    shared = np.repeat(rng.random((size, ROWS // 10)), 10, axis=1)
    return p, beta_distribution.ppf(shared, 9 * p, 9 * (1 - p)), np.full(p.shape, 0.1)


def _weighted(rng: np.random.Generator, day: int, size: int, past: np.ndarray) -> Any:
    p = expit(rng.normal(-1.5, 1.2, (size, ROWS)))
    return p, p, rng.random(p.shape)


def _jumping(rng: np.random.Generator, day: int, size: int, past: np.ndarray) -> Any:
    """From day 300 on all scores lie where the reference had almost none."""
    p = expit(rng.normal(-3.0 if day < 300 else 3.0, 0.5, (size, ROWS)))
    return p, p, None


def _irregular(rng: np.random.Generator, day: int, size: int, past: np.ndarray) -> Any:
    """Between one and all rows a day: the others have weight zero."""
    p = rng.beta(0.4, 0.8, (size, ROWS))
    return p, p, (np.arange(ROWS) < rng.integers(1, ROWS + 1, (size, 1))).astype(float)


CALIBRATED: dict[str, tuple[Callable[..., Any], float]] = {
    "logit-normal(-1.5, 1.2)": (_plain(lambda rng, shape: expit(rng.normal(-1.5, 1.2, shape))), 0.0),
    "rare: logit-normal(-7, 1)": (_plain(lambda rng, shape: expit(rng.normal(-7, 1, shape))), 0.0),
    "distribution of scores drifts": (_drifting, 0.0),
    "scores chosen from past residuals": (_chosen_from_the_past, 0.0),
    "uniform": (_plain(lambda rng, shape: rng.random(shape)), 0.0),
    "all scores 0.001": (_plain(lambda rng, shape: np.full(shape, 0.001)), 0.0),
    "five tied scores": (_plain(lambda rng, shape: rng.choice([0.02, 0.1, 0.3, 0.6, 0.95], shape)), 0.0),
    "odds 1.1 times those predicted, tolerance 0.1": (_tolerated, 0.1),
    "clusters of 10, given": (_clustered, 0.0),
    "weights in [0, 1]": (_weighted, 0.0),
    "very sharp: logit-normal(0, 4)": (_plain(lambda rng, shape: expit(rng.normal(0, 4, shape))), 0.0),
    "U-shaped: beta(0.3, 0.3)": (_plain(lambda rng, shape: rng.beta(0.3, 0.3, shape)), 0.0),
    "scores jump to where the reference was empty": (_jumping, 0.0),
    "days of 1 to 100 rows": (_irregular, 0.0),
}


def _undeclared(rng: np.random.Generator, day: int, size: int, past: np.ndarray) -> Any:
    p, truth, _ = _clustered(rng, day, size, past)
    return p, truth, None


def _daily_shock(rng: np.random.Generator, day: int, size: int, past: np.ndarray) -> Any:
    """All rows of a day share a shift of the log odds."""
    p = expit(rng.normal(-1.5, 1.2, (size, ROWS)))
    return p, expit(logit(p) + rng.normal(0, 0.2, (size, 1))), None


#: What breaks the promise if it is not declared.
BROKEN: dict[str, tuple[Callable[..., Any], float]] = {
    "clusters of 10, correlation 0.1, ignored": (_undeclared, 0.0),
    "a shock of 0.2 that a day shares, ignored": (_daily_shock, 0.0),
}


def false_alarms(world: str, streams: int) -> Row:
    """The share of calibrated streams with an alarm in 1,000 looks, and the upper limit of its 95 % interval."""
    make, tolerance = (CALIBRATED | BROKEN)[world]
    rng = np.random.default_rng([50, [*CALIBRATED, *BROKEN].index(world)])
    past = np.zeros(streams)
    found = None
    for day in range(DAYS):
        p, truth, w = make(rng, day, streams, past)
        y = (rng.random(p.shape) < truth).astype(float)
        if found is None:
            found = Streams(streams, Bets.on_scores(reference_of(p), tolerance, 0.0), limit=math.log(20))
        found.add(day, day_sums(y, p, w))
        found.look(day)
        past = (y - p).sum(axis=1)
    assert found is not None
    alarms = int((found.alarm >= 0).sum())
    limit = beta_distribution.ppf(0.95, alarms + 1, streams - alarms) if alarms < streams else 1.0
    return {"alarms": alarms, "share": round(alarms / streams, 4), "upper limit": round(float(limit), 4)}


def waiting(alarm: np.ndarray, change: Any, expected: float) -> Row:
    """Days from the change to the alarm, its own day included; the bar is 1.25 times the delay of the first study."""
    early = (alarm >= 0) & (alarm < change)
    days = np.where(alarm < 0, np.inf, alarm - change + 1)[~early]
    return {
        "median days": float(np.median(days)),
        "found": round(float(np.isfinite(days).mean()), 3),
        "false before": round(float(early.mean()), 3),
        "bar": 1.25 * expected,
    }


# --- drifts: (score, days since the change, random) -> true log odds


def _from_top(x: np.ndarray, since: int) -> np.ndarray:
    return x - 1.0 * (x > -1.5 + 1.2 * norm.ppf(0.95))


DRIFTS: dict[str, tuple[Callable[[np.ndarray, int], np.ndarray], float, float, float | None]] = {
    "shift +0.3": (lambda x, since: x + 0.3, 0.0, 19, None),
    "shift +0.3, tolerance 0.1": (lambda x, since: x + 0.3, 0.1, 41, None),
    "slope 0.7": (lambda x, since: 0.7 * (x + 1.5) - 1.5, 0.0, 16, None),
    "slope 0.7, tolerance 0.1": (lambda x, since: 0.7 * (x + 1.5) - 1.5, 0.1, 27, None),
    "top 5 % of scores -1": (_from_top, 0.0, 60, None),
    "top 5 % of scores -1, tolerance 0.1": (_from_top, 0.1, 106, None),
    "gradual to +0.5 in 200 days": (lambda x, since: x + 0.5 * min(since / 200, 1), 0.0, 93, None),
    "seasonal, amplitude 0.4, 100 days": (lambda x, since: x + 0.4 * np.sin(2 * np.pi * since / 100), 0.0, 23, None),
    "+0.6 for 20 days, then back": (lambda x, since: x + 0.6 * (since < 20), 0.0, 5.5, None),
    "shift +0.3, one false alarm in 7,300 days": (lambda x, since: x + 0.3, 0.0, 14, 7300.0),
}


def delay(drift: str, streams: int) -> Row:
    """The median number of days until the alarm, beside that of the first study of this method."""
    move, tolerance, expected, arl = DRIFTS[drift]
    rng = np.random.default_rng([51, list(DRIFTS).index(drift)])
    change = rng.integers(*CHANGE, streams)
    limit = math.log(20) if arl is None else math.log(arl)
    reference = reference_of(expit(rng.normal(-1.5, 1.2, 100)))
    found = Streams(streams, Bets.on_scores(reference, tolerance, 0.0), limit=limit, arl=arl is not None)
    for day in range(CHANGE[1] + AFTER):
        x = rng.normal(-1.5, 1.2, (streams, ROWS))
        moved = np.stack(
            [move(row, day - first) if day >= first else row for row, first in zip(x, change, strict=True)]
        )
        found.add(day, day_sums((rng.random(x.shape) < expit(moved)).astype(float), expit(x)))
        found.look(day)
    return waiting(found.alarm, change, expected)


RARE = {"odds x2": (math.log(2), 8), "odds x0.5": (-math.log(2), 21), "odds x1.3": (math.log(1.3), 55)}


def rare_delay(drift: str, streams: int) -> Row:
    """The same for 0.39 % of events in 1,000 rows a day."""
    shift, expected = RARE[drift]
    rng = np.random.default_rng([52, list(RARE).index(drift)])
    found = Streams(streams, Bets.on_scores(reference_of(expit(rng.normal(-6, 1, 1000))), 0.0, 0.0), limit=math.log(20))
    for day in range(200 + 200):
        x = rng.normal(-6, 1, (streams, 1000))
        y = rng.random(x.shape) < expit(x + shift * (day >= 200))
        found.add(day, day_sums(y.astype(float), expit(x)))
        found.look(day)
    return waiting(found.alarm, 200, expected)


FORECASTS = {"spread x1.2": (0.0, 1.2, 11), "spread x0.85": (0.0, 0.85, 14), "bias 0.2": (0.2, 1.0, 8)}


def forecast_delay(drift: str, streams: int) -> Row:
    """The same for probability integral transforms of 100 normal forecasts a day."""
    bias, spread, expected = FORECASTS[drift]
    rng = np.random.default_rng([53, list(FORECASTS).index(drift)])
    found = Streams(streams, Bets.on_tree(0.0, 0.0), limit=math.log(20))
    stream = np.repeat(np.arange(streams), ROWS)
    for day in range(300):
        z = rng.normal(0, 1, streams * ROWS)
        u = norm.cdf(bias + spread * z if day >= 100 else z)
        found.add(day, tree_sums(u, u, np.ones(len(u)), stream, streams, LEAVES))
        found.look(day)
    return waiting(found.alarm, 100, expected)


def groups(world: str, streams: int) -> Row:
    """One group of ten with log odds higher by 0.6, through `cal.Monitor` itself."""
    waited, named, wrong = [], 0, 0
    for k in range(streams):
        rng = np.random.default_rng([54, k])
        monitor, change, alarm = cal.Monitor(tolerance=0.0), int(rng.integers(*CHANGE)), None
        for day in range(change + 150):
            x, group = rng.normal(-1.5, 1.2, ROWS), rng.choice(list("abcdefghij"), ROWS)
            y = rng.random(ROWS) < expit(x + 0.6 * ((group == "d") & (day >= change)))
            status = monitor.update(y, expit(x), time=day, group=group)
            if status.alarm:
                alarm = day if alarm is None else alarm
                if day >= alarm + 14:
                    break
        waited.append(np.inf if alarm is None else alarm - change + 1)
        named += "d" in status.groups
        wrong += bool(set(status.groups) - {"d"})
    return {
        "median days": float(np.median(waited)),
        "right one named": round(named / streams, 3),
        "wrong one named": round(wrong / streams, 3),
        "bar": 75.0,
    }


def changes(drift: str, streams: int) -> Row:
    """How well the start of a drift is told at the alarm and two weeks later, and whether the gap is covered."""
    move = DRIFTS[drift][0]
    inside = {0: 0, 14: 0}
    covered, errors = 0, []
    for k in range(streams):
        rng = np.random.default_rng([55, list(DRIFTS).index(drift), k])
        monitor, change, alarm = cal.Monitor(tolerance=0.0), int(rng.integers(*CHANGE)), None
        for day in range(change + 120):
            x = rng.normal(-1.5, 1.2, ROWS)
            moved = move(x, 0) if day >= change else x
            status = monitor.update(rng.random(ROWS) < expit(moved), expit(x), time=day)
            if status.alarm and alarm is None:
                alarm = day
                errors.append(abs(int(status.since) - change))
            if alarm is not None and day - alarm in inside:
                low, high = map(int, status.since_set)
                inside[day - alarm] += low <= change <= high
                truth = (expit(move(x := rng.normal(-1.5, 1.2, 20_000), 0)) - expit(x)).mean()
                if day - alarm == 14:
                    covered += truth in status.gap.interval
                    break
    return {
        "in the set at the alarm": round(inside[0] / streams, 3),
        "two weeks later": round(inside[14] / streams, 3),
        "gap covered": round(covered / streams, 3),
        "mean error, days": round(float(np.mean(errors)), 1),
    }


def main() -> None:
    """Measure what is missing and write the page."""
    samples = asked_samples(__doc__)
    tables = [
        ("False alarms in 1,000 looks, 100 rows each, alpha 5 %", "false_alarms", CALIBRATED, false_alarms, 8),
        ("What breaks the promise, 1,000 looks", "broken", BROKEN, false_alarms, 4),
        ("Days until the alarm, 100 rows a day, logit-normal(-1.5, 1.2) scores", "delays", DRIFTS, delay, 2),
        ("The same, 0.39 % events, 1,000 rows a day", "delays_rare", RARE, rare_delay, 1),
        ("The same, forecasts, 100 rows a day", "delays_forecasts", FORECASTS, forecast_delay, 2),
        ("One group of ten off by 0.6, two weeks after the alarm", "groups", {"one of ten": None}, groups, 1),
        ("When it began", "changes", ("shift +0.3", "slope 0.7"), changes, 1),
    ]  # fmt: skip
    parts = []
    for title, name, cases, measure, factor in tables:
        tasks = [(case, samples * factor) for case in cases] if samples else []
        found = measured(RESULTS / f"monitoring_{name}.csv", tasks, ("case", "streams"), measure)
        parts.append(f"## {title}\n\n{markdown(found, tuple(found[0]) if found else ())}")
    made = f"{date.today().isoformat()}, Python {platform.python_version()}, NumPy {np.__version__}"
    head = f"# The monitor: false alarms and delays\n\n{made}. `python -m reproduce.monitoring --samples 40`\n\n"
    (RESULTS / "monitoring.md").write_text(head + "\n".join(parts), encoding="utf8")


if __name__ == "__main__":
    main()
