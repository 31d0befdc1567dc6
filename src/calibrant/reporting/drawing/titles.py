"""Titles of figures: one sentence on what is seen, with numbers, made from the values of a section alone."""

from __future__ import annotations

from calibrant.reporting.contents import (
    Bin,
    Classes,
    GroupRow,
    Groups,
    OverTime,
    Recalibration,
    Reliability,
    Shares,
    Spread,
    Value,
)
from calibrant.reporting.drawing.ranges import outside, range_name
from calibrant.reporting.names import map_in_sentence, plural
from calibrant.reporting.rounding import fixed, percent, rates, ratio, score
from calibrant.reporting.rounding import significant as significant_decimals

#: Flagged in opposite directions: these many groups are "the rest" against which a single one stands.
_THE_REST = 2


def reliability_title(section: Reliability, *, significant: bool | None, confidence: bool = False) -> str:
    r"""The range of scores that carries most of the error; directions are named only where the test rejects.

    `significant` is None where the data cannot be judged: then the title claims nothing.

    Examples
    --------
    >>> from calibrant.reporting.contents import Curve, Value
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
        return f"{start}{share} % of the predicted {plural(event)} occurred"
    flagged = sum(period.flagged for period in section.periods)
    if flagged:
        verb = "differs" if flagged == 1 else "differ"
        return f"{flagged} of {len(section.periods)} periods {verb} from the predictions beyond chance"
    return "No period differs from the predictions beyond chance"


def groups_title(section: Groups, event: str, *, spread: bool = False) -> str:
    """The one group that runs against the rest, or how many are flagged and in which direction."""
    noun = section.column.replace("_", " ")
    flagged = [row for row in section.rows if row.flagged]
    if not flagged:
        return f"No {noun} differs beyond chance"
    lone = _against_the_rest(flagged)
    if lone is not None:
        size = ratio(lone.ratio).value
        if spread:
            return f"{lone.name} runs against the rest: errors are {size} times the predicted spread"
        return f"{lone.name} runs against the rest: {size} times the predicted {plural(event)} occurred"
    many = f"{len(flagged)} of {len(section.rows)} {plural(noun)}"
    directions = {row.direction for row in flagged}
    common = directions.pop() if len(directions) == 1 and "mixed" not in directions else None
    if spread and common in ("too narrow", "too wide"):
        return f"The spread is {common} in {many}"
    return f"{many} {'is' if len(flagged) == 1 else 'are'} {common or 'miscalibrated'}"


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


def classes_title(section: Classes, label: str = "class") -> str:
    """How many classes are flagged, and which total is off most."""
    flagged = [row for row in section.rows if row.flagged]
    if not flagged:
        return f"No {label} differs beyond chance"
    many = f"{len(flagged)} of {len(section.rows)} {plural(label)} {'is' if len(flagged) == 1 else 'are'} miscalibrated"
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


def pit_title(section: Spread) -> str:
    """Whether outcomes fall into the tails of their predicted distributions too often, too rarely, or on one side."""
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
        return f"No share between {_span(section.priors[0], section.priors[-1])} makes these probabilities calibrated"
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
