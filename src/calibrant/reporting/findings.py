"""The rules behind the numbered findings. Each rule reads results and yields a finding or none."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from calibrant.reporting.model import Finding, Group, Measure, Repair, Severity
from calibrant.reporting.text import p_in_words, points
from calibrant.results.estimate import Estimate, Significance
from calibrant.table.bintable import BinTable

#: Fewer rows than this tell little about any calibration error.
FEW_ROWS = 200
#: Share of rows at exactly 0 or 1 above which there is a finding.
MANY_CERTAIN = 0.05


def of_probabilities(
    cells: BinTable,
    measures: Sequence[Measure],
    test: Significance,
    repairs: Sequence[Repair],
    groups: Sequence[Group],
) -> tuple[Finding, ...]:
    """All findings for predicted probabilities, most serious first."""
    found = [
        *_certainty(cells),
        *_miscalibration(measures, test),
        *_groups(groups),
        *_binned_bias(measures),
        *_size(cells.n),
        *_ties(cells),
        *_repair(repairs, test),
    ]
    order = {"problem": 0, "caution": 1, "note": 2}
    return tuple(sorted(found, key=lambda finding: order[finding.severity]))


def _certainty(cells: BinTable) -> Iterator[Finding]:
    wrong = float(cells.observed[cells.high == 0].sum() + (cells.weight - cells.observed)[cells.low == 1].sum())
    if wrong > 0:
        text = f"{wrong:,.0f} rows predicted with certainty (exactly 0 or 1) turned out wrong: log loss is infinite."
        yield Finding("CAL101", "problem", text)
    certain = float(cells.weight[(cells.high == 0) | (cells.low == 1)].sum()) / cells.total
    if certain > MANY_CERTAIN:
        yield Finding("CAL102", "caution", f"{certain:.0%} of all rows have a predicted probability of exactly 0 or 1.")


def _miscalibration(measures: Sequence[Measure], test: Significance) -> Iterator[Finding]:
    headline = next(measure.estimate for measure in measures if measure.headline)
    if test.p_value < 0.05:
        severity: Severity = "problem" if headline > 0.01 else "caution"
        yield Finding(
            "CAL201", severity, f"The predictions are not calibrated ({test.method}, {p_in_words(test.p_value)})."
        )
    else:
        yield Finding(
            "CAL202",
            "note",
            f"No miscalibration can be shown at this size ({test.method}, {p_in_words(test.p_value)}).",
        )


def _groups(groups: Sequence[Group]) -> Iterator[Finding]:
    if not groups:
        return
    worst = min(groups, key=lambda group: group.p_value)
    if worst.p_value * len(groups) < 0.05:
        text = f"Group {worst.name!r} is off by {points(worst.estimate)} points"
        how_sure = f"{p_in_words(worst.p_value * len(groups))} after correction for {len(groups)} groups"
        yield Finding("CAL301", "problem", f"{text} ({how_sure}).")
    small = [group.name for group in groups if group.n < FEW_ROWS]
    if small:
        yield Finding("CAL302", "caution", f"{len(small)} of {len(groups)} groups have fewer than {FEW_ROWS} rows.")


def _binned_bias(measures: Sequence[Measure]) -> Iterator[Finding]:
    plain = [m for m in measures if m.estimate.name == "ECE (L1)" and (m.bias or 0.0) > 0.25 * m.estimate]
    if plain:
        worst = max(plain, key=lambda measure: measure.bias or 0.0)
        text = (
            f"The plain binned ECE of {points(worst.estimate)} points is about {points(worst.bias or 0.0)} points too "
            "high at this size; do not compare it with values from other sizes."
        )
        yield Finding("CAL401", "caution", text)


def _size(n: int) -> Iterator[Finding]:
    if n < FEW_ROWS:
        yield Finding("CAL402", "caution", f"{n} rows are few: errors of several points cannot be told from none.")


def _ties(cells: BinTable) -> Iterator[Finding]:
    if len(cells) < 0.05 * cells.n and len(cells) <= 100:
        yield Finding("CAL403", "note", f"There are only {len(cells)} different scores; bins follow them.")


def _repair(repairs: Sequence[Repair], test: Significance) -> Iterator[Finding]:
    if not repairs:
        return
    best = repairs[0]
    if best.gain > 0 and test.p_value < 0.05:
        text = f"{best.name} would lower the loss by {best.gain:.4f} and leave an error of {points(best.error)} points."
        yield Finding("CAL501", "note", text)
    elif best.gain <= 0:
        yield Finding("CAL502", "note", "No recalibration tried would lower the loss.")


def direction(over: Estimate, under: Estimate, *, headline: float, gap: float) -> str:
    """The kind of error in words that go before "by 3.1 points".

    `gap` is the mean of all predicted probabilities less the share of events; where it makes up most of the error, the
    probabilities are simply too high or too low.
    """
    if abs(gap) > 0.8 * headline:
        return "stated probabilities are too high" if gap > 0 else "stated probabilities are too low"
    if max(over, under) <= 0:
        return "miscalibrated"
    if over > 2 * max(under, 0):
        return "over-confident"
    if under > 2 * max(over, 0):
        return "under-confident"
    return "miscalibrated in both directions"
