"""Hand-made evidence that the tests of verdicts share."""

from dataclasses import replace

from calibrant.reporting.contents import Change, GroupRow, Groups, MapRow, OverTime, Period, Recalibration
from calibrant.reporting.verdicts.evidence import Probabilities, VerdictTest
from calibrant.results.estimate import Value

REJECTS = VerdictTest("multiscale test", 0.001, 999)
ACCEPTS = VerdictTest("multiscale test", 0.21, 999)

#: Significant, common events, nothing else known.
PLAIN = Probabilities(
    n=2000,
    events=600,
    predicted=0.3,
    test=REJECTS,
    error=Value(0.031, 0.022, 0.040),
    ratio=Value(1.0, 0.95, 1.05),
    slope=Value(1.0, 0.93, 1.07),
)
#: A hundred events among five thousand rows.
RARE = replace(
    PLAIN,
    n=20000,
    events=610,
    predicted=0.0366,
    error=Value(0.008, 0.005, 0.010),
    ratio=Value(0.8333, 0.77, 0.90),
    slope=Value(0.8, 0.75, 0.85),
)


def group(name="Brazil", *, direction="too low", flagged=True, ratio=None, p=0.001, n=500.0, after=None):
    ratio = ratio or (Value(1.4, 1.22, 1.61) if direction == "too low" else Value(0.7, 0.6, 0.8))
    observed = 0.2 * n
    return GroupRow(
        name, n, ratio, Value(0.05, 0.03, 0.07), direction, p, flagged,
        observed=observed, expected=observed / ratio.value, flagged_after=after,
    )  # fmt: skip


def groups(*rows, column="country"):
    return Groups(column, rows)


def over_time(*, significant=True):
    names = ("July 2025", "August 2025", "September 2025", "October 2025")
    ratios = (Value(0.97, 0.8, 1.1), Value(0.98, 0.8, 1.1), Value(0.55, 0.4, 0.75), Value(0.57, 0.42, 0.77))
    periods = tuple(
        Period(name, 1000, 60 * one.value, 60.0, one, (0.8, 1.2), 0.5, one.excludes(1.0))
        for name, one in zip(names, ratios, strict=True)
    )
    change = Change(2, Value(0.97, 0.89, 1.06), Value(0.56, 0.47, 0.66), 0.001 if significant else 0.4, significant)
    return OverTime("month", periods, change)


def maps(low=0.009, high=0.025, *, remaining=None, effect="best", recent=None, moved=None):
    gain = Value((low + high) / 2, low, high)
    best = MapRow("Platt scaling", 2, remaining or Value(0.001, 0.0, 0.003), gain, effect, moved)
    return Recalibration("log loss", 0.42, (best,), recent=recent)
