"""Figures in words: ranges of scores, titles, paragraphs and tables for readers who do not see them.

A title is one sentence on what is seen, with numbers. All words are made from the values of a section alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import isnan
from typing import Literal

from calibrant.reporting.contents import (
    Bin,
    BinCounts,
    Classes,
    GroupRow,
    Groups,
    OverTime,
    Recalibration,
    Reliability,
    Shares,
    Spread,
)
from calibrant.reporting.drawing.canvas import Table
from calibrant.reporting.names import listed, map_in_sentence, plural
from calibrant.reporting.rounding import count, fixed, p_number, percent, points, rate, rates, ratio, score
from calibrant.reporting.rounding import significant as significant_decimals
from calibrant.results.estimate import Value

Relation = Literal["above", "below", "within chance"]


def score_range(low: float, high: float, *, of: str = "") -> str:
    r"""A range of scores: "below 0.2 %", "1 to 5 %", "above 20 %"; `of` stands before a range with two ends.

    Examples
    --------
    >>> score_range(0.0, 0.002), score_range(0.01, 0.05, of="of "), score_range(0.2, 1.0), score_range(0.3, 0.3)
    ('below 0.2 %', 'of 1 to 5 %', 'above 20 %', '30 %')
    """
    if low == high:
        return f"{of}{score(low)}"
    if low <= 0 and high < 1:
        return f"below {score(high)}"
    if high >= 1 and low > 0:
        return f"above {score(low)}"
    return f"{of}{score(low).removesuffix(' %')} to {score(high)}"


def range_name(b: Bin, ranges: Sequence[Bin], *, of: str = "") -> str:
    """The name of one of several ranges that hold all rows: the first is "below", the last "above"."""
    first, last = b is ranges[0], b is ranges[-1]
    low = 0.0 if first and not last else b.low
    high = 1.0 if last and not first else b.high
    return score_range(low, high, of=of)


def outside(b: Bin) -> bool:
    """Whether the interval of the observed frequency excludes the mean prediction."""
    return b.observed.excludes(b.predicted)


def relation(b: Bin) -> Relation:
    """How the observed frequency lies to the prediction."""
    if not outside(b):
        return "within chance"
    return "above" if b.observed.value > b.predicted else "below"


def runs(bins: Sequence[Bin]) -> list[tuple[Relation, float, float]]:
    """Neighbouring ranges with the same relation, joined: relation, low end, high end; the outer ends are 0 and 1."""
    found: list[tuple[Relation, float, float]] = []
    for b in bins:
        kind = relation(b)
        low, high = 0.0 if b is bins[0] else b.low, 1.0 if b is bins[-1] else b.high
        if found and found[-1][0] == kind:
            found[-1] = (kind, found[-1][1], high)
        else:
            found.append((kind, low, high))
    return found


#: Flagged in opposite directions: these many groups are "the rest" against which a single one stands.
_THE_REST = 2


def reliability_title(section: Reliability, *, significant: bool | None, confidence: bool = False) -> str:
    r"""The range of scores that carries most of the error; directions are named only where the test rejects.

    `significant` is None where the data cannot be judged: then the title claims nothing.

    Examples
    --------
    >>> from calibrant.reporting.contents import Curve
    >>> from calibrant.results.estimate import Value
    >>> rows = Bin(0.2, 1.0, 813, 187, 0.36, Value(0.23, 0.2, 0.26), share=0.66)
    >>> section = Reliability(Curve((), (), ()), None, {}, {}, (rows,), "linear")
    >>> reliability_title(section, significant=True)
    'Scores above 20 % overstate the risk: 36 % predicted, 23 % observed'
    >>> reliability_title(section, significant=False)
    'The observed frequencies agree with the predictions within chance'
    """
    seen = (
        "observed accuracy agrees with the confidence"
        if confidence
        else ("observed frequencies agree with the predictions")
    )
    if significant is None:
        return f"Predicted and observed {'accuracy' if confidence else 'frequencies'}"
    if not significant:
        return f"The {seen} within chance"
    ranges = section.ranges or section.bins[section.axis]
    clear = [b for b in ranges if outside(b)]
    if not clear:
        return "The predictions are off, but at no range of scores by a clear amount"
    worst = max(clear, key=_share)
    too_high = worst.predicted > worst.observed.value
    where = range_name(worst, ranges, of="of ")
    numbers = f"{short_rate(worst.predicted)} predicted, {short_rate(worst.observed.value)}"
    if confidence:
        return f"Confidence {where} {'exceeds' if too_high else 'falls short of'} accuracy: {numbers} right"
    return f"Scores {where} {'overstate' if too_high else 'understate'} the risk: {numbers} observed"


def over_time_title(section: OverTime, event: str, *, spread: bool = False) -> str:
    """From which period on the totals differ, or how many periods do."""
    change = section.change
    if change is not None and change.significant:
        start = f"From {section.periods[change.first].name} on, "
        if spread:
            return f"{start}errors are {ratio(change.after).value} times the predicted spread"
        share = percent(change.after).value
        return f"{start}{share} % of the predicted {plural(event, kind='event')} occurred"
    flagged = sum(period.flagged for period in section.periods)
    if flagged:
        verb = "differs" if flagged == 1 else "differ"
        return f"{flagged} of {len(section.periods)} periods {verb} from the predictions beyond chance"
    if all(isnan(period.p_value) for period in section.periods):
        return "No period could be tested"
    return "No period differs from the predictions beyond chance"


def groups_title(section: Groups, event: str, *, spread: bool = False) -> str:
    """The one group that runs against the rest, or how many are flagged and in which direction."""
    noun = section.column.replace("_", " ")
    flagged = [row for row in section.rows if row.flagged]
    if not flagged:
        tested = not all(isnan(row.p_value) for row in section.rows)
        return f"No {noun} {'differs beyond chance' if tested else 'could be tested'}"
    lone = _against_the_rest(flagged)
    if lone is not None:
        size = ratio(lone.ratio).value
        if spread:
            return f"{lone.name} runs against the rest: errors are {size} times the predicted spread"
        return f"{lone.name} runs against the rest: {size} times the predicted {plural(event, kind='event')} occurred"
    many = f"{count(len(flagged))} of {count(len(section.rows))} {plural(noun, kind='group')}"
    directions = {row.direction for row in flagged}
    common = directions.pop() if len(directions) == 1 and "mixed" not in directions else None
    if spread and common in ("too narrow", "too wide"):
        return f"The spread is {common} in {many}"
    if common is not None:
        return f"{'Forecasts' if spread else 'Predictions'} are {common} in {many}"
    return f"{many} {'is' if len(flagged) == 1 else 'are'} miscalibrated"


def recalibration_title(section: Recalibration, row: str) -> str:
    """By how much the best map lowers the loss, where its interval excludes 0."""
    recent = section.recent
    if recent is not None and recent.gain.low is not None and recent.gain.low > 0:
        name = map_in_sentence(recent.name, start=True)
        return f"{name} on recent {plural(row)} lowers {section.loss} by {_gain(recent.gain)}"
    best = next((m for m in section.maps if m.effect == "best"), None)
    if best is not None:
        return f"{map_in_sentence(best.name, start=True)} lowers {section.loss} by {_gain(best.gain)}"
    if section.maps and all(m.effect == "makes it worse" for m in section.maps):
        return f"Every map tried makes {section.loss} worse"
    return "Recalibration may not help"


def bin_counts_title() -> str:
    """The same for all data: it is true of all."""
    return "The plain ECE depends on how many bins you choose"


def classes_title(section: Classes, label: str = "class", *, rejected: bool = False) -> str:
    """How many classes are flagged, and which total is off most; `rejected` where whole vectors are miscalibrated."""
    flagged = [row for row in section.rows if row.flagged]
    if not flagged and all(isnan(row.p_value) for row in section.rows):
        return f"No {label} could be tested"
    if not flagged:
        spread = ": the error is spread over all of them" if rejected else ""
        return f"No {label} {'by itself ' if rejected else ''}differs beyond chance{spread}"
    many = f"{count(len(flagged))} of {count(len(section.rows))} {plural(label)}"
    many += f" {'is' if len(flagged) == 1 else 'are'} miscalibrated"
    off = [row for row in flagged if row.ratio.excludes(1.0)]
    if not off:
        return many
    worst = max(off, key=lambda row: max(row.ratio.value, 1 / max(row.ratio.value, 1e-9)))
    return f"{many}; {worst.name}: {ratio(worst.ratio).value} times as frequent as predicted"


def spread_title(section: Spread, *, significant: bool | None) -> str:
    """How large errors are where the predicted spread is smallest, or where they differ most from it."""
    clear = [b for b in section.bins if not b.null[0] <= b.error.value <= b.null[1]]
    if significant is None:
        return "Predicted spread and observed errors"
    if not significant:
        return "Errors agree with the predicted spread within chance"
    if not clear:
        return "The predicted spread is off, but at no size of it by a clear amount"
    first = section.bins[0]
    worst = first if first in clear else max(clear, key=lambda b: abs(b.error.value - b.predicted) / b.predicted)
    where = (
        "is smallest"
        if worst is first
        else "is largest"
        if worst is section.bins[-1]
        else (f"is about {fixed(worst.predicted, max(0, _two_digits(worst.predicted)))}")
    )
    times = worst.error.value / worst.predicted
    return f"Where the predicted spread {where}, errors are {fixed(times, 1 if times >= 1.5 else 2)} times as large"


def coverage_title(section: Spread) -> str:
    """What the widest usual interval holds."""
    chosen = min(section.coverage, key=lambda c: abs(c.nominal - 0.9))
    found = rates(chosen.observed)
    ends = f" ({found.ends} %)" if found.ends else ""
    return f"{score(chosen.nominal)} intervals hold {found.value} %{ends}"


def pit_title(section: Spread, *, significant: bool | None) -> str:
    """Whether outcomes fall into the tails of their predicted distributions too often, too rarely, or on one side."""
    if significant is None:
        return "Where outcomes fall in their predicted distributions"
    low, high = section.pit_null
    first, last = section.pit[0], section.pit[-1]
    if first > high and last > high:
        return "Outcomes fall into the tails too often"
    if first < low and last < low:
        return "Outcomes fall into the tails too rarely"
    if first > high and last < low:
        return "Outcomes are lower than predicted too often"
    if last > high and first < low:
        return "Outcomes are higher than predicted too often"
    beyond = sum(not low <= rows <= high for rows in section.pit)
    if beyond > max(1, len(section.pit) // 10):
        return "Outcomes fall unevenly into their predicted distributions"
    return "Outcomes fall evenly into their predicted distributions, within chance"


def shares_title(section: Shares) -> str:
    """Whether any assumed share of positives would make the predictions calibrated."""
    zero = [
        p for p, error in zip(section.priors, section.errors, strict=True) if error.low is not None and error.low <= 0
    ]
    if not zero:
        between = _span(section.priors[0], section.priors[-1])
        return f"No share between {between} makes these probabilities calibrated, if labels are at random"
    return f"For shares from {_span(zero[0], zero[-1], word='to')} the interval includes 0"


def implied_title(section: Shares, *, significant: bool | None) -> str:
    """In which direction the implied shares differ from the predictions, given the assumed share."""
    given = f"if {score(section.prior)} are positive"
    if significant is None:
        return f"Predicted and implied shares, {given}"
    clear = [b for b in section.implied if outside(b)]
    if not significant or not clear:
        return f"The implied shares agree with the predictions within chance, {given}"
    low = [b for b in clear if b.observed.value > b.predicted]
    if len(low) in (0, len(clear)):
        everywhere = "over the whole range" if len(clear) == len(section.implied) else "over part of the range"
        return f"Predictions are too {'low' if low else 'high'} {everywhere}, {given}"
    return f"Predictions are too low for some scores and too high for others, {given}"


def short_rate(share: float) -> str:
    r"""A share for a title: two significant digits.

    >>> short_rate(0.358), short_rate(0.0023), short_rate(0.9961)
    ('36 %', '0.23 %', '99.6 %')
    """
    near = min(100 * share, 100 * (1 - share))
    digits = max(0, 1 if 0 < near < 1 and share > 0.5 else _two_digits(100 * share) if share < 0.5 else 0)
    return f"{fixed(100 * share, digits)} %"


def _two_digits(value: float) -> int:
    return 0 if value >= 10 else significant_decimals(value)


def _share(b: Bin) -> float:
    return b.share if b.share is not None else b.n * abs(b.predicted - b.observed.value)


def _against_the_rest(flagged: list[GroupRow]) -> GroupRow | None:
    ways = [("too high", "too low"), ("too narrow", "too wide")]
    for pair in ways:
        sides = [[row for row in flagged if row.direction == way] for way in pair]
        for one, others in (sides, sides[::-1]):
            if len(one) == 1 and len(others) >= _THE_REST:
                return one[0]
    return None


def _gain(gain: Value) -> str:
    found = percent(gain)
    return f"{found.value} % ({found.ends} %)" if found.ends else f"{found.value} %"


def _span(low: float, high: float, word: str = "and") -> str:
    return f"{score(low).removesuffix(' %')} {word} {score(high)}"


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
