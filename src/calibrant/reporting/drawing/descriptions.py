"""Figures in words and tables, for readers who do not see them."""

from __future__ import annotations

from collections.abc import Sequence

from calibrant.reporting.contents import Bin, BinCounts, Classes, Groups, OverTime, Reliability, Shares, Spread, Value
from calibrant.reporting.drawing.figure import Table
from calibrant.reporting.drawing.ranges import outside, range_name, runs, score_range
from calibrant.reporting.drawing.titles import short_rate
from calibrant.reporting.names import listed
from calibrant.reporting.rounding import count, fixed, p_number, points, rate, rates, ratio, score

#: A description names at most this many ranges; the table holds all.
_MOST_RUNS = 5


def reliability_text(section: Reliability, *, confidence: bool = False) -> str:
    """How the curve lies to the diagonal, range by range, and the numbers where most of the error sits."""
    what = "accuracy" if confidence else "frequency"
    parts = section.ranges or section.bins[section.axis]
    words = {
        "above": "lies above the prediction",
        "below": "lies below the prediction",
        "within chance": "agrees with the prediction within chance",
    }
    found = runs(parts)
    said = [f"{words[kind]} {score_range(low, high, of='from ')}" for kind, low, high in found[:_MOST_RUNS]]
    if len(found) == 1:
        text = f"The observed {what} {words[found[0][0]]} in every range."
    else:
        text = f"The observed {what} {listed(said)}." if said else ""
    clear = [b for b in parts if outside(b)]
    if clear:
        worst = max(clear, key=lambda b: b.n * abs(b.predicted - b.observed.value))
        at = f"At scores {range_name(worst, parts, of='of ')}"
        text += f" {at}: {short_rate(worst.predicted)} predicted, {short_rate(worst.observed.value)} observed."
    return text


def bin_table(bins: Sequence[Bin]) -> Table:
    """The bins of a diagram."""
    head = ("Predicted", "Rows", "Events", "Mean predicted", "Observed", "95 % interval")
    rows = tuple(
        (
            f"{score(b.low)} to {score(b.high)}",
            count(b.n),
            count(b.events),
            rate(b.predicted),
            f"{rates(b.observed).value} %",
            share_ends(b.observed),
        )
        for b in bins
    )
    return Table(head, rows)


def share_ends(value: Value) -> str:
    """The interval of a share in percent, or nothing."""
    found = rates(value)
    return f"{found.ends} %" if found.ends else ""


def over_time_text(section: OverTime) -> str:
    """The range of the ratios, the change, and the flagged periods."""
    ratios = [period.ratio.value for period in section.periods]
    text = (
        f"From {section.periods[0].name} to {section.periods[-1].name} the ratio lies between "
        f"{fixed(min(ratios), 2)} and {fixed(max(ratios), 2)}."
    )
    change = section.change
    if change is not None and change.significant:
        before, after = ratio(change.before), ratio(change.after)
        text += (
            f" It changes in {section.periods[change.first].name}: {before.value} ({before.ends}) before, "
            f"{after.value} ({after.ends}) since."
        )
    flagged = [period.name for period in section.periods if period.flagged]
    if flagged:
        return f"{text} Flagged after adjustment: {_some(flagged)}."
    return f"{text} No period is flagged."


def over_time_table(section: OverTime, *, spread: bool = False) -> Table:
    """The periods in order."""
    name = section.column.replace("_", " ")
    if spread:
        rows = [(p.name, count(p.n), *_ratio(p.ratio), p_number(p.p_value)) for p in section.periods]
        return Table((name.capitalize(), "Rows", "Ratio", "95 % interval", "Adjusted p"), tuple(rows))
    full = [
        (p.name, count(p.n), count(p.observed), count(p.expected), *_ratio(p.ratio), p_number(p.p_value))
        for p in section.periods
    ]
    head = (name.capitalize(), "Rows", "Observed", "Expected", "O:E", "95 % interval", "Adjusted p")
    return Table(head, tuple(full))


def groups_text(section: Groups, *, spread: bool = False) -> str:
    """Which groups are flagged, with ratio and direction; which are not."""
    what = "error-to-spread ratio" if spread else "ratio of observed to expected"
    rows = section.rows
    lowest, highest = min(rows, key=lambda r: r.ratio.value), max(rows, key=lambda r: r.ratio.value)
    text = (
        f"The {what} is lowest for {lowest.name} ({fixed(lowest.ratio.value, 2)}) and highest for {highest.name} "
        f"({fixed(highest.ratio.value, 2)})."
    )
    flagged = [f"{row.name} ({row.direction})" for row in rows if row.flagged]
    if flagged:
        text += f" Flagged after adjustment: {_some(flagged)}."
    else:
        text += " No group is flagged."
    return text


def bin_counts_text(section: BinCounts) -> str:
    """The ECE at the fewest, the usual and the most bins, and the range of a calibrated model there."""
    usual = min(range(len(section.counts)), key=lambda k: abs(section.counts[k] - 15))
    last = len(section.counts) - 1
    first, middle, end = (fixed(100 * section.equal_mass[k], 2) for k in (0, usual, last))
    null = [f"{fixed(100 * section.null_low[k], 2)} to {fixed(100 * section.null_high[k], 2)}" for k in (usual, last)]
    bins = [f"{section.counts[k]:,}" for k in (0, usual, last)]
    return (
        f"With equal-mass bins the ECE is {first} points at {bins[0]} bins, {middle} at {bins[1]} and {end} at "
        f"{bins[2]}. A calibrated model of this size would show {null[0]} points at {bins[1]} bins and {null[1]} at "
        f"{bins[2]}."
    )


def bin_counts_table(section: BinCounts) -> Table:
    """ECE in points for each number of bins."""
    head = ("Bins", "ECE, equal mass", "ECE, equal width", "Calibrated model, 90 %")
    columns = zip(
        section.counts, section.equal_mass, section.equal_width, section.null_low, section.null_high, strict=True
    )
    shown = (
        (f"{n:,}", fixed(100 * mass, 2), fixed(100 * width, 2), f"{fixed(100 * low, 2)} to {fixed(100 * high, 2)}")
        for n, mass, width, low, high in columns
    )
    return Table(head, tuple(shown))


def classes_text(section: Classes) -> str:
    """Which classes are too frequent and too rare, and where the strip is off."""
    high = [row.name for row in section.rows if row.flagged and row.direction == "too high"]
    low = [row.name for row in section.rows if row.flagged and row.direction == "too low"]
    parts = [f"Predicted too high in total: {_some(high)}."] if high else []
    parts += [f"Predicted too low in total: {_some(low)}."] if low else []
    parts = parts or ["No total of a class differs beyond chance."]
    return " ".join([*parts, "Every number of the figure is printed in the table above."])


def spread_text(section: Spread) -> str:
    """Errors relative to the spread where it is smallest and largest."""
    first, last = section.bins[0], section.bins[-1]
    shares = [f"{fixed(b.error.value / b.predicted, 2)} times" for b in (first, last)]
    beyond = sum(not b.null[0] <= b.error.value <= b.null[1] for b in section.bins)
    return (
        f"Errors are {shares[0]} the predicted spread where it is smallest and {shares[1]} where it is largest. "
        f"{beyond} of {len(section.bins)} points lie outside the range of a calibrated forecaster."
    )


def spread_table(section: Spread) -> Table:
    """The bins of the predicted spread."""
    unit = f", {section.unit}" if section.unit else ""
    head = (f"Predicted spread{unit}", "Rows", "Root mean squared error", "95 % interval", "Calibrated forecaster")
    rows = []
    for b in section.bins:
        digits = _digits([b.predicted, b.error.value])
        low, high = b.error.low, b.error.high
        ends = "" if low is None or high is None else f"{fixed(low, digits)} to {fixed(high, digits)}"
        null = f"{fixed(b.null[0], digits)} to {fixed(b.null[1], digits)}"
        rows.append((fixed(b.predicted, digits), count(b.n), fixed(b.error.value, digits), ends, null))
    return Table(head, tuple(rows))


def coverage_text(section: Spread) -> str:
    """Whether observed coverage lies above or below nominal, and by how much at most."""
    gaps = [c.observed.value - c.nominal for c in section.coverage]
    where = "below" if max(gaps) < 0 else "above" if min(gaps) > 0 else "on both sides of"
    worst = max(section.coverage, key=lambda c: abs(c.observed.value - c.nominal))
    return (
        f"Observed coverage lies {where} nominal coverage. The gap is largest at {score(worst.nominal)}: "
        f"{rate(worst.observed.value)} of the outcomes are inside."
    )


def coverage_table(section: Spread) -> Table:
    """Nominal and observed coverage."""
    rows = [(score(c.nominal), f"{rates(c.observed).value} %", share_ends(c.observed)) for c in section.coverage]
    return Table(("Nominal", "Observed", "95 % interval"), tuple(rows))


def pit_text(section: Spread) -> str:
    """The outer and the inner classes relative to what is expected of each."""
    expected = sum(section.pit) / len(section.pit)
    first, last = section.pit[0] / expected, section.pit[-1] / expected
    inner = [rows / expected for rows in section.pit[1:-1]] or [first]
    return (
        f"The two outer classes hold {fixed(first, 1)} and {fixed(last, 1)} times the expected number of outcomes, the "
        f"others {fixed(min(inner), 1)} to {fixed(max(inner), 1)} times."
    )


def shares_text(section: Shares) -> str:
    """Where the error is smallest and largest over the assumed shares."""
    values = [error.value for error in section.errors]
    least, most = values.index(min(values)), values.index(max(values))
    return (
        f"The error is smallest, {points(section.errors[least]).value} points, at a share of "
        f"{score(section.priors[least])}, and largest, {points(section.errors[most]).value} points, at "
        f"{score(section.priors[most])}."
    )


def shares_table(section: Shares) -> Table:
    """The error at each assumed share."""
    found = [(prior, points(error)) for prior, error in zip(section.priors, section.errors, strict=True)]
    rows = tuple((score(prior), error.value, error.ends) for prior, error in found)
    return Table(("Share", "Error, points", "95 % interval"), rows)


def implied_text(section: Shares) -> str:
    """How the implied shares lie to the predictions."""
    above = sum(b.observed.value > b.predicted for b in section.implied)
    worst = max(section.implied, key=lambda b: abs(b.observed.value - b.predicted))
    return (
        f"The implied share lies above the prediction in {above} of {len(section.implied)} bins. The gap is largest at "
        f"{rate(worst.predicted)} predicted: {rate(worst.observed.value)} implied."
    )


def implied_table(section: Shares) -> Table:
    """The implied share per bin."""
    rows = [(rate(b.predicted), f"{rates(b.observed).value} %", share_ends(b.observed)) for b in section.implied]
    return Table(("Predicted", "Implied", "95 % interval"), tuple(rows))


def _some(names: Sequence[str], most: int = 8) -> str:
    more = len(names) - most
    return listed([*names[:most], f"{more} more"]) if more > 0 else listed(tuple(names))


def _ratio(value: Value) -> tuple[str, str]:
    found = ratio(value)
    return found.value, found.ends


def _digits(values: Sequence[float]) -> int:
    largest = max(map(abs, values))
    return 0 if largest >= 100 else 1 if largest >= 10 else 2 if largest >= 1 else 4
