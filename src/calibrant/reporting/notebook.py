"""Results of other rooms as HTML for a notebook, by their `_repr_html_` alone: tables in the words of the report."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from calibrant.reporting.drawing.markup import Child, Markup, joined, tag
from calibrant.reporting.drawing.table_cells import FLAGGED, HELPS, QUIET, Forest
from calibrant.reporting.layout.elements import plain_table
from calibrant.reporting.names import asset, name_of_estimate, name_of_test
from calibrant.reporting.rounding import count, fixed, p_number, p_words, rounded, significant
from calibrant.reporting.verdicts.evidence import ALPHA
from calibrant.results.estimate import Value, printable

if TYPE_CHECKING:
    from calibrant.estimators.decomposition import Decomposition
    from calibrant.inference.changes_over_time import OverTime
    from calibrant.inference.comparison import Comparison
    from calibrant.inference.decision_curves import DecisionCurve
    from calibrant.inference.feature_audit import Audit
    from calibrant.inference.groups import ByGroup, GroupResult
    from calibrant.inference.multiclass_tests import ByClass
    from calibrant.results.estimate import Estimate, Interval, Significance
    from calibrant.simulate.advice import Advice

#: Groups and thresholds that a notebook shows.
#: Test: tests/reporting/test_notebook.py::test_classes_are_shown_as_groups_are.
_SHOWN = 20
#: Size of a drawn interval.
#: Test: tests/reporting/test_notebook.py::test_intervals_are_drawn_at_the_size_of_a_line.
_WIDTH, _HEIGHT = 200, 26


def estimate_html(estimate: Estimate) -> str:
    """The estimate with its interval, what it aims at, and how it was made."""
    found = Value(estimate.value, *_ends(estimate.interval))
    name = name_of_estimate(estimate)
    lines: list[tuple[str, Child]] = [("estimate", _number(found))]
    if estimate.interval is not None:
        lines.append((_level(estimate.interval.level), _interval_text(found)))
        lines.append(("", Forest.of_differences([found]).cell(found, HELPS, width=_WIDTH, height=_HEIGHT)))
    if estimate.note:
        lines.append(("note", estimate.note))
    if name.line:
        lines.append(("what it is", name.line))
    if estimate.target is not None:
        lines.append(("target", str(estimate.target)))
    lines += [("rows", count(estimate.n)), ("method", estimate.method)]
    if estimate.interval is not None:
        lines.append(("interval by", estimate.interval.method))
    return _pairs(name.text, lines)


def significance_html(test: Significance) -> str:
    """The test in one line, with the question it asks and what follows."""
    name = name_of_test(test)
    rejected = test.p_value < ALPHA
    found = "evidence" if rejected else "no significant evidence"
    follows = f"{found} of miscalibration" if test.null == "calibrated" else f"{found} against: {test.null}"
    lines: list[tuple[str, Child]] = [
        ("p-value", p_number(test.p_value, test.draws)),
        ("says", tag("span", follows, class_="hit" if rejected else None)),
        ("statistic", _number(Value(test.statistic))),
        ("rows", count(test.n)),
    ]
    if name.line:
        lines.insert(0, ("asks", name.line))
    return _pairs(name.text, lines)


def decomposition_html(parts: Decomposition) -> str:
    """The score and its three parts, with what each means."""
    meaning = (
        (parts.score, "", "the mean score itself"),
        (parts.miscalibration, "= ", "what recalibration would remove"),
        (parts.discrimination, "− ", "what telling rows apart gains over the base rate"),
        (parts.uncertainty, "+ ", "the score of the base rate alone"),
    )
    whole = parts.uncertainty or 1.0
    rows = [
        (f"{sign}{part.name}", _number(Value(part.value)), f"{100 * part.value / whole:.0f} %", words)
        for part, sign, words in meaning
    ]
    head = ("", "value", "of the uncertainty", "what it is")
    caption = f"{parts.score.name}, n = {count(parts.score.n)}"
    return _wrapped(plain_table(head, rows, ("", "n", "n", ""), caption=caption))


def comparison_html(found: Comparison) -> str:
    """Both models and their difference, drawn with its interval."""
    difference = Value(found.difference, *_ends(found.interval))
    clear = found.adjusted < ALPHA
    better = found.a if found.difference < 0 else found.b
    words = f"Lower: {better}" if clear else "No clear difference"
    words += f" ({p_words(found.adjusted)})"
    drawn = Forest.of_differences([difference])
    cell = drawn.cell(difference, HELPS if clear else QUIET, width=_WIDTH, height=_HEIGHT)
    rows: list[Sequence[Child]] = [
        (found.a, _number(Value(found.value_a)), "", ""),
        (found.b, _number(Value(found.value_b)), "", ""),
        (f"{found.a} − {found.b}, {found.quantity}", _number(difference), _interval_text(difference), cell),
    ]
    words += f". {found.note}" if found.note else ""
    head = ("", found.estimator, _level(found.interval.level), drawn.head(_WIDTH))
    return _wrapped(plain_table(head, rows, ("", "n", "n", "g"), caption=words))


def groups_html(result: ByGroup, summary: str, notes: str) -> str:
    """The groups with the most evidence, each with its interval on one axis."""
    shown = result.ranked[:_SHOWN]
    values = [Value(row.estimate.value, *_ends(row.estimate.interval)) for row in shown]
    forest = Forest.of_differences(values)
    digits = max(significant(v.value) for v in values)
    counted = shown[0].predicted is not None
    head: list[Child] = ["group", "rows", *(["events", "predicted", "observed"] if counted else [])]
    head += [name_of_estimate(shown[0].estimate).text, "95 % interval", forest.head(_WIDTH), "direction", "adjusted p"]
    level = next((row.estimate.interval.level for row in shown if row.estimate.interval is not None), 0.95)
    head[head.index("95 % interval")] = _level(level)
    styles = ["", "n", *(["n"] * 3 if counted else []), "n", "n", "g", "", "n"]
    largest = max(row.n for row in shown)
    rows = []
    for row, value in zip(shown, values, strict=True):
        flagged = row.adjusted < ALPHA
        cell = forest.cell(value, FLAGGED if flagged else QUIET, width=_WIDTH, height=_HEIGHT, size=row.n / largest)
        words = tag("span", row.direction or "mixed", class_="hit") if flagged else "not flagged"
        words, p = (words, p_number(row.adjusted)) if row.tested else ("not tested", "")
        start: list[Child] = [row.label(result.columns), count(row.n), *(_means(row) if counted else [])]
        rows.append([*start, fixed(value.value, digits), _ends_text(value, digits), cell, words, p])
    return _wrapped(plain_table(head, rows, styles, caption=summary), tag("p", notes))


def audit_html(found: Audit, lines: Sequence[str]) -> str:
    """The audit in words, and its segments with the interval of the observed mean."""
    shown = found.segments[:_SHOWN]
    seen = [(one.observed, one.interval.low, one.interval.high) for one in shown]
    gaps = [Value(*(100 * (end - one.predicted) for end in three)) for one, three in zip(shown, seen, strict=True)]
    words = [tag("p", line) for line in lines]
    if not shown:
        return _wrapped(*words, tag("p", "No segment was confirmed."))
    forest = Forest.of_differences(gaps)
    rows: list[Sequence[Child]] = []
    for one, gap in zip(shown, gaps, strict=True):
        name = f"{one.outcome}: {one.text}" if one.outcome else one.text
        cell = forest.cell(gap, FLAGGED, width=_WIDTH, height=_HEIGHT)
        means = [f"{100 * one.share:.1f} %", f"{100 * one.predicted:.1f} %", f"{100 * one.observed:.1f} %"]
        ends = f"{100 * one.interval.low:.1f} to {100 * one.interval.high:.1f} %"
        rows.append([name, *means, ends, cell, tag("span", one.direction, class_="hit"), p_number(one.adjusted)])
    head = ("segment", "share", "predicted", "observed", "interval", forest.head(_WIDTH), "predictions", "adjusted p")
    number = len(found.segments)
    caption = f"{number} segment{'s' * (number > 1)}, confirmed on rows that did not choose them"
    return _wrapped(*words, plain_table(head, rows, ("", "n", "n", "n", "n", "g", "", "n"), caption=caption))


def classes_html(result: ByClass) -> str:
    """The classes with the most evidence, as groups are shown: mean prediction, frequency, direction."""
    shown, wrong = result.rows[:_SHOWN], len(result.found(ALPHA))
    verb = "is" if wrong == 1 else "are"
    caption = f"{wrong} of {count(len(result))} classes {verb} miscalibrated after adjustment"
    rows: list[Sequence[Child]] = []
    for row in shown:
        flagged = row.adjusted <= ALPHA
        words = tag("span", row.direction, class_="hit") if flagged else "not flagged"
        means = [f"{row.predicted:.4g}", f"{row.observed:.4g}"]
        rows.append([printable(row.label), count(row.n), *means, words, p_number(row.p_value), p_number(row.adjusted)])
    head = ("class", "rows", "predicted", "observed", "direction", "p", "adjusted p")
    left = len(result) - len(shown)
    more = [tag("p", f"{count(left)} more classes, with less evidence.")] if left > 0 else []
    return _wrapped(plain_table(head, rows, ("", "n", "n", "n", "", "n", "n"), caption=caption), *more)


def advice_html(advice: Advice, before: Sequence[str], after: Sequence[str]) -> str:
    """The table of estimators, with what was simulated before it and what follows after it."""
    head = ("points", "estimate", "bias", "sd", "rmse", "bias if calibrated", "detects errors above")
    rows = []
    for row in advice.rows:
        seen = "–" if row.detectable is None else fixed(100 * row.detectable, 2)
        numbers = (row.estimate, row.fitted.bias, row.fitted.sd, row.fitted.rmse, row.calibrated.bias)
        rows.append((row.name, *(fixed(100 * number, 2) for number in numbers), seen))
    table = plain_table(head, rows, ("", *["n"] * 6), caption="Which estimator for rows like these?")
    texts = [tag("p", " ".join(lines)) for lines in (before, after) if lines]
    return _wrapped(table, *texts)


def over_time_html(result: OverTime, change: str) -> str:
    """A line per period with its interval, and the most likely change."""
    values = [one.ratio for one in result]
    forest = Forest.of_ratios(values)
    rows = []
    for one, value in zip(result, values, strict=True):
        drawn = forest.cell(value, FLAGGED if one.p_value < ALPHA else QUIET, width=_WIDTH, height=_HEIGHT)
        sums = [count(number) for number in (one.n, one.observed, one.expected)]
        rows.append([printable(one.name), *sums, _number(value), _interval_text(value), drawn, p_number(one.p_value)])
    last = (_level(result.level), forest.head(_WIDTH), "adjusted p")
    head = ("period", "n", "observed", "expected", result.quantity, *last)
    table = plain_table(head, rows, ("", "n", "n", "n", "n", "n", "g", "n"), caption="Calibration over time")
    return _wrapped(table, tag("p", change))


def decision_curve_html(curve: DecisionCurve) -> str:
    """Net benefit at some thresholds."""
    chosen = range(0, len(curve.threshold), max(1, -(-len(curve.threshold) // _SHOWN)))
    values = [Value(float(curve.value[k]), float(curve.low[k]), float(curve.high[k])) for k in chosen]
    digits = max(significant(v.value) for v in values)
    forest = Forest.of_differences(values)
    rows = []
    for k, value in zip(chosen, values, strict=True):
        alone = float(curve.treat_all[k])
        useful = value.value > max(alone, 0.0)
        drawn = forest.cell(value, HELPS if useful else QUIET, width=_WIDTH, height=_HEIGHT)
        numbers = [f"{curve.threshold[k]:g}", fixed(value.value, digits), _ends_text(value, digits)]
        rows.append([*numbers, drawn, fixed(alone, digits), f"{100 * curve.treated[k]:.0f} %"])
    what = "standardized net benefit" if curve.standardized else "net benefit"
    head = ("threshold", what, _level(curve.level), forest.head(_WIDTH), "treating all", "treated")
    caption = f"Decision curve, n = {count(curve.n)}, {100 * curve.prevalence:.3g} % events"
    return _wrapped(plain_table(head, rows, ("n", "n", "n", "g", "n", "n"), caption=caption))


def _ends_text(value: Value, digits: int) -> str:
    if value.low is None or value.high is None:
        return ""
    return f"{fixed(value.low, digits)} to {fixed(value.high, digits)}"


def _level(level: float) -> str:
    return f"{100 * level:g} % interval"


def _means(row: GroupResult) -> list[Child]:
    shown = ["" if value is None else f"{value:.4g}" for value in (row.predicted, row.observed)]
    return ["" if row.events is None else count(row.events), *shown]


def _ends(interval: Interval | None) -> tuple[float | None, float | None]:
    if interval is None:
        return None, None
    low, high = interval.low, interval.high
    return (low if low - low == 0 else None), (high if high - high == 0 else None)


def _number(value: Value) -> str:
    if value.low is None or value.high is None:
        return fixed(value.value, max(4, significant(value.value)) if abs(value.value) < 10 else 2)
    return rounded(value).value


def _interval_text(value: Value) -> str:
    if value.low is None and value.high is None:
        return ""
    if value.high is None:
        return f"at least {fixed(value.low or 0.0, 4)}"
    if value.low is None:
        return f"at most {fixed(value.high, 4)}"
    return rounded(value).ends


def _pairs(caption: str, lines: Sequence[tuple[str, Child]]) -> str:
    body = [tag("tr", tag("th", name, scope="row"), tag("td", text)) for name, text in lines]
    return _wrapped(tag("table", tag("caption", caption), tag("tbody", *body)))


def _wrapped(*parts: Markup) -> str:
    return str(tag("div", tag("style", Markup(asset("result.css"))), joined(parts), class_="calibrant-result"))
