"""The numbered findings of every task: probabilities, classes, forecasts, positive and unlabeled rows.

Each rule reads the evidence and yields a finding or none.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from calibrant.reporting.contents import Bin, Groups, Severity, Verdict
from calibrant.reporting.evidence import FEW_SCORES
from calibrant.reporting.model import Finding
from calibrant.reporting.names import map_in_sentence, plural
from calibrant.reporting.rounding import (
    bound,
    brief,
    count,
    fixed,
    negated,
    out_of,
    percent,
    points,
    rates,
    ratio,
    score,
    significant,
)
from calibrant.reporting.sections.groups import FEWEST_EVENTS
from calibrant.reporting.verdicts.binary import backwards_in_words, uninformative
from calibrant.reporting.verdicts.evidence import (
    Forecasts,
    JudgedAnswers,
    Probabilities,
    ProbabilityVectors,
    Shared,
    Unlabeled,
)
from calibrant.reporting.verdicts.multiclass import total_is_off
from calibrant.reporting.verdicts.severity import RATIOS, changed, flagged_groups, group_severity, outside, small
from calibrant.reporting.verdicts.truth_table import flagged_in_words, largest_gap_classes, missing_test, period_range
from calibrant.reporting.verdicts.unlabeled import least_and_largest
from calibrant.results.estimate import Value

#: Share of rows at exactly 0 or 1 above which there is a finding.
#: Test: tests/reporting/test_findings.py::test_limits_of_findings.
MANY_CERTAIN = 0.05
#: Fewer rows than this are few whatever the verdict.
#: Test: tests/reporting/test_findings.py::test_limits_of_findings.
FEW_ROWS = 200
#: Groups beyond this are folded below the figure, unless flagged.
#: Test: tests/reporting/test_findings.py::test_limits_of_findings.
SHOWN_GROUPS = 20

#: The worst first. Derived: an order, not a size.
_ORDER: dict[Severity, int] = {"problem": 0, "caution": 1, "note": 2}


def ordered(found: Iterable[Finding]) -> tuple[Finding, ...]:
    """Most serious first; inside, as they come."""
    return tuple(sorted(found, key=lambda finding: _ORDER[finding.severity]))


def of_probabilities(evidence: Probabilities, verdict: Verdict) -> tuple[Finding, ...]:
    """All findings on predicted probabilities, most serious first."""
    if evidence.n == 0:
        return ()
    return ordered(
        [
            *certainty(evidence),
            *_shape_of_scores(evidence),
            *untested(evidence),
            *_probability_test(evidence, verdict),
            *_backwards(evidence),
            *_small(evidence),
            *_slope(evidence, verdict),
            *confidence(evidence, verdict),
            *_disagreement(evidence),
            *of_groups(evidence),
            *of_time(evidence),
            *_number_of_bins(evidence),
            *_size(evidence),
            *_ties(evidence),
            *of_table(evidence),
            *(() if evidence.decisions is not None else of_recalibration(evidence)),
        ]
    )


def certainty(e: Probabilities) -> Iterator[Finding]:
    """Rows predicted with certainty, wrong ones first."""
    instead = "Log loss is infinite; the Brier score is used instead."
    for number, predicted, came in ((e.impossible_events, 0, 1), (e.impossible_others, 1, 0)):
        if number > 0:
            verb = "was" if number == 1 else "were"
            rows = f"{count(number)} {plural(e.words.row, number)}"
            yield Finding(
                "CAL101", "problem", f"{rows} {verb} predicted as exactly {predicted} and came out {came}. {instead}"
            )
    if MANY_CERTAIN < e.certain < 1:
        text = f"{score(round(e.certain, 2))} of the {plural(e.words.row)} are predicted as exactly 0 or 1."
        yield Finding("CAL102", "caution", text)


def untested(e: Shared) -> Iterator[Finding]:
    """That the test of the verdict did not run, and why."""
    if e.test is None and e.untested:
        yield Finding("CAL207", "caution", missing_test(e))


def _shape_of_scores(e: Probabilities) -> Iterator[Finding]:
    if e.decisions is not None:
        yield Finding("CAL104", "caution", "The predictions are only 0 and 1: decisions, not probabilities.")
    elif e.only_score is not None:
        yield Finding("CAL103", "caution", f"All {plural(e.words.row)} have the same predicted probability.")


def _probability_test(e: Probabilities, verdict: Verdict) -> Iterator[Finding]:
    if e.test is None or e.decisions is not None:
        return
    p = f"{e.test.name}, {e.test.in_words}, n = {count(e.n)}"
    what = "confidence is" if e.confidence else "predictions are"
    if e.test.rejects:
        yield Finding("CAL201", verdict.severity, f"The {what} not calibrated ({p}).")
        return
    most = "" if e.error is None or e.error.high is None else f"; the error is at most {bound(e.error.high)} points"
    severity: Severity = "caution" if verdict.state == "too few" or not small(e) else "note"
    yield Finding("CAL202", severity, f"No significant miscalibration detected ({p}){most}.")


def _small(e: Probabilities) -> Iterator[Finding]:
    if e.test is None or not e.test.rejects or not small(e) or e.error is None or e.error.high is None:
        return
    relative = "" if not e.rarer > 0 else f", {bound(e.error.high / e.rarer)} % of the base rate"
    yield Finding(
        "CAL203", "note", f"The error is significant but small: at most {bound(e.error.high)} points{relative}."
    )


def _backwards(e: Probabilities) -> Iterator[Finding]:
    if e.backwards:
        yield Finding("CAL208", "problem", backwards_in_words(e))
    elif not e.confidence and (row := uninformative(e)) is not None:
        yield Finding("CAL209", "problem", row.sentence)


def _slope(e: Probabilities, verdict: Verdict) -> Iterator[Finding]:
    if e.backwards or e.uninformative or e.slope is None or not e.rejects or not e.tilted or e.confidence:
        return
    extreme = e.slope.value < 1
    wrong = [one for one in e.ranges if one.observed.excludes(one.predicted) and one.n > 0]
    too_high = [one for one in wrong if one.predicted > one.observed.value]
    too_low = [one for one in wrong if one.predicted <= one.observed.value]
    high, low = (too_high, too_low) if extreme else (too_low, too_high)  # only ranges that show what is said
    shown = [max(high, key=lambda one: one.predicted)] if high else []
    shown += [min(low, key=lambda one: one.predicted)] if low else []
    if len(shown) == 2 and shown[0].predicted < shown[1].predicted:
        shown = []
    parts = [_range_in_words(one, e) for one in shown]
    where = f": {', '.join(parts)}" if parts else ""
    word = "extreme" if extreme else "moderate"
    alone = verdict.direction in ("too extreme", "too moderate")
    severity: Severity = verdict.severity if alone or verdict.severity == "note" else "caution"
    yield Finding("CAL204", severity, f"Probabilities are too {word} (slope {ratio(e.slope).value}){where}.")


def _range_in_words(one: Bin, e: Probabilities) -> str:
    side = "too high" if one.predicted > one.observed.value else "too low"
    where = (
        f"scores from {score(one.low)} to {score(one.high)}" if one.low < one.high else f"scores of {score(one.low)}"
    )
    seen = rates(one.observed, one.predicted).value
    return f"{where} are {side} ({score(one.predicted)} predicted, {seen} % observed)"


def confidence(e: Probabilities, verdict: Verdict) -> Iterator[Finding]:
    """Over- or under-confidence of the top label."""
    gap = e.gap
    if not e.confidence or gap is None or not gap.excludes(0.0) or e.test is None or not e.test.rejects:
        return
    over = gap.value > 0
    size = points(gap if over else negated(gap))
    kind, verb = ("Over-confident", "exceeds") if over else ("Under-confident", "falls below")
    yield Finding(
        "CAL205", verdict.severity, f"{kind}: confidence {verb} accuracy by {size.value} points ({size.ends})."
    )


def _disagreement(e: Probabilities) -> Iterator[Finding]:
    if e.test is None or not e.test.rejects or e.error is None or e.error.low is None or e.error.low > 0:
        return
    if e.decisions is not None or small(e):
        return
    text = (
        "The test rejects calibration, yet the interval of the error reaches 0: there is an error, but its size is "
        "uncertain."
    )
    yield Finding("CAL206", "caution", text)


def of_groups(e: Shared) -> Iterator[Finding]:
    """Groups that are miscalibrated, that cannot be judged, and that are folded."""
    if not e.groups:
        return
    flagged = flagged_groups(e.groups)
    if flagged:
        severity = min((group_severity(row, e.tolerance) for row in flagged), key=_ORDER.__getitem__)
        yield Finding("CAL301", severity, f"{_first_up(flagged_in_words(e.groups))}.")
    for grouping in e.groups:
        yield from _small_groups(grouping)
        folded = [row for row in grouping.rows if not row.flagged]
        shown = max(0, SHOWN_GROUPS - (len(grouping.rows) - len(folded)))
        hidden = len(folded) - shown if len(grouping.rows) > SHOWN_GROUPS else 0
        if hidden > 0:
            text = (
                f"{count(hidden)} of {count(len(grouping.rows))} groups are folded below the figure; all were tested."
            )
            yield Finding("CAL304", "note", text)


def _small_groups(grouping: Groups) -> Iterator[Finding]:
    few = [row for row in grouping.rows if not row.judged]
    if not few:
        return
    are = "group has" if len(few) == 1 and len(grouping.rows) == 1 else "groups have"
    start = f"{count(len(few))} of {count(len(grouping.rows))} {are}"
    if all(row.observed is not None for row in few):
        text = f"{start} fewer than {FEWEST_EVENTS} events: they are shown but cannot be judged."
    else:
        text = f"{start} too few independent rows: they are shown but cannot be judged."
    yield Finding("CAL302", "caution", text)


def of_time(e: Shared) -> Iterator[Finding]:
    """A change over time."""
    change = changed(e.over_time)
    if change is None or e.over_time is None:
        return
    before, after = ratio(change.before), ratio(change.after)
    what = "the error-to-spread ratio" if isinstance(e, Forecasts) else "observed : expected"
    verb = "fell" if change.after.value < change.before.value else "rose"
    first, second = e.over_time.periods[: change.first], e.over_time.periods[change.first :]
    text = (
        f"Calibration changed over time: {what} {verb} from {before.value} ({period_range(first)}) to "
        f"{after.value} ({period_range(second)})."
    )
    yield Finding("CAL303", "problem", text)


def _number_of_bins(e: Probabilities) -> Iterator[Finding]:
    made = e.bin_counts
    if made is None or e.decisions is not None or e.n < FEW_ROWS:
        return
    values = sorted(zip(made.equal_mass, made.counts, strict=True))
    (low, few), (high, many) = values[0], values[-1]
    if high < 1.5 * low or high - low < 0.002:
        return
    least, most = (points(Value(one)).value for one in (low, high))
    text = (
        f"The plain ECE ranges from {least} points ({count(few)} bins) to {most} points ({count(many)} bins) on the "
        f"same {plural(e.words.row)}."
    )
    yield Finding("CAL401", "caution", text)


def _size(e: Probabilities) -> Iterator[Finding]:
    if e.test is None or e.undetected is None or e.decisions is not None:
        return
    if not (e.n < FEW_ROWS or not (small(e) or e.test.rejects)):
        return
    events = f"{count(e.events)} {plural(e.words.event, e.events, kind='event')}"
    text = (
        f"With {count(e.n)} {plural(e.words.row, e.n)} and {events}, an error below about {_about(e.undetected)} "
        "points would usually go undetected."
    )
    yield Finding("CAL402", "caution", text)


def _ties(e: Probabilities) -> Iterator[Finding]:
    if e.distinct is not None and 1 < e.distinct <= FEW_SCORES and e.decisions is None:
        yield Finding("CAL403", "note", f"Only {e.distinct} distinct scores: every score is its own bin.")


def of_table(e: Shared) -> Iterator[Finding]:
    """That a table was given, not rows."""
    if e.cells is not None:
        start = f"Computed from a table of {count(e.cells)} cells"
        yield Finding("CAL404", "note", f"{start}: rows are treated as independent and not checked one by one.")


def of_recalibration(e: Shared) -> Iterator[Finding]:
    """Whether recalibration helps."""
    made, judged = e.recalibration, e.test is not None and e.test.rejects
    if made is None or not made.maps:
        return
    best = made.maps[0]
    if best.gain.low is None or best.gain.high is None:
        return
    found = percent(best.gain)
    if best.gain.low > 0 and judged:
        text = (
            f"Recalibration helps: {map_in_sentence(best.name)} lowers cross-validated {made.loss} by {found.value} % "
            f"({found.ends} %)."
        )
        yield Finding("CAL501", "note", text)
    elif all(one.effect == "makes it worse" for one in made.maps):
        yield Finding(
            "CAL502", "note", f"Recalibration does not help: every map tried raises cross-validated {made.loss}."
        )
    elif best.gain.low <= 0:
        text = (
            f"Recalibration may not help: with the best map {made.loss} is lower by {found.value} % ({found.ends} %), "
            "and the interval includes 0."
        )
        yield Finding("CAL503", "note", text)


def _about(fraction: float) -> str:
    return fixed(100 * fraction, significant(100 * fraction, 1))


def _first_up(text: str) -> str:
    return text[:1].upper() + text[1:]


def of_classes(e: ProbabilityVectors, verdict: Verdict) -> tuple[Finding, ...]:
    """All findings on probability vectors, most serious first."""
    if e.n == 0 or e.top is None:
        return ()
    if e.decisions is not None:
        text = "The predictions are only 0 and 1: decisions, not probabilities."
        return (Finding("CAL104", "caution", text),)
    rejected = e.test is not None and e.test.rejects
    return ordered(
        [
            *_impossible(e),
            *untested(e),
            *_vector(e, verdict),
            *_backwards(e.top),
            *(confidence(e.top, verdict) if rejected else ()),
            *_classes(e),
            *of_groups(e),
            *of_time(e),
            *_few_of_a_class(e),
            *_few_rows(e),
            *of_recalibration(e),
        ]
    )


def _impossible(e: ProbabilityVectors) -> Iterator[Finding]:
    if e.impossible > 0:
        rows = f"{count(e.impossible)} {plural(e.words.row, e.impossible)}"
        was = "was" if e.impossible == 1 else "were"
        text = (
            f"{rows} {was} of a class predicted with a probability of exactly 0. Log loss is infinite; the Brier score "
            "is used instead."
        )
        yield Finding("CAL101", "problem", text)


def _vector(e: ProbabilityVectors, verdict: Verdict) -> Iterator[Finding]:
    if e.test is None:
        return
    p = f"{e.test.name}, {e.test.in_words}, n = {count(e.n)}"
    if e.test.rejects:
        yield Finding("CAL211", verdict.severity, f"The probability vectors are not calibrated ({p}).")
        return
    error = None if e.top is None else e.top.error
    most = "" if error is None or error.high is None else f"; the top-label error is at most {bound(error.high)} points"
    severity: Severity = "caution" if verdict.severity == "caution" else "note"
    yield Finding("CAL202", severity, f"No significant miscalibration detected ({p}){most}.")


def _classes(e: ProbabilityVectors) -> Iterator[Finding]:
    rows = e.class_rows
    flagged = tuple(row for row in rows if row.flagged)
    if e.test is None or not e.test.rejects or not rows:
        return
    if not flagged:
        text = f"No class by itself differs beyond chance: the error is spread over all {count(e.number)} classes."
        yield Finding("CAL212", "note", text)
        return
    off = tuple(row for row in flagged if total_is_off(row, e.number))
    totals = f"; totals are off most for {largest_gap_classes(off)}" if off else ""
    severity: Severity = "problem" if any(outside(row.ratio, RATIOS) for row in flagged) else "caution"
    verb = "is" if len(flagged) == 1 else "are"
    text = f"{out_of(len(flagged), e.number)} classes {verb} miscalibrated after adjustment{totals}."
    text = _first_up(text)
    yield Finding("CAL212", severity, text)


def _few_of_a_class(e: ProbabilityVectors) -> Iterator[Finding]:
    few = [row for row in e.class_rows if row.observed is not None and row.observed < FEWEST_EVENTS]
    if few:
        many = f"{count(len(few))} of {count(e.number)}"
        text = f"{many} classes have fewer than {FEWEST_EVENTS} rows: they are shown but cannot be judged."
        yield Finding("CAL302", "caution", text)


def _few_rows(e: ProbabilityVectors) -> Iterator[Finding]:
    top = e.top
    if e.test is None or top is None or top.undetected is None or e.n >= FEW_ROWS:
        return
    text = (
        f"With {count(e.n)} {plural(e.words.row, e.n)} and {e.number} classes, a top-label error below about "
        f"{bound(top.undetected)} points would usually go undetected."
    )
    yield Finding("CAL402", "caution", text)


#: A coefficient of variation below this hardly varies.
#: Test: tests/reporting/test_findings.py::test_limits_of_findings.
CONSTANT = 0.05


def of_forecasts(e: Forecasts, verdict: Verdict) -> tuple[Finding, ...]:
    """All findings on predicted distributions, most serious first."""
    if e.n == 0:
        return ()
    return ordered(
        [
            *untested(e),
            *_forecast_test(e, verdict),
            *of_groups(e),
            *of_time(e),
            *_constant(e),
            *_dominant(e),
            *_hidden(e, verdict),
            *_one_factor(e),
            *of_table(e),
            *of_recalibration(e),
        ]
    )


def _forecast_test(e: Forecasts, verdict: Verdict) -> Iterator[Finding]:
    if e.test is None:
        return
    narrow = verdict.rule == "R1"
    if verdict.rule in ("R1", "R2") and e.ratio is not None and e.ratio.excludes(1.0) and (e.ratio.value > 1) == narrow:
        found, word = ratio(e.ratio), "narrow" if narrow else "wide"
        ends = f" ({found.ends})" if found.ends else ""
        text = f"The predicted spread is too {word}: error-to-spread ratio {found.value}{ends}."
        yield Finding("CAL601", verdict.severity, text)
        return
    p = f"{e.test.name}, {e.test.in_words}, n = {count(e.n)}"
    if e.test.rejects:
        yield Finding("CAL201", verdict.severity, f"The predicted distributions are not calibrated ({p}).")
        return
    severity: Severity = "caution" if verdict.severity == "caution" else "note"
    yield Finding("CAL202", severity, f"No significant miscalibration detected ({p}).")


def _constant(e: Forecasts) -> Iterator[Finding]:
    if e.variation is not None and e.variation < CONSTANT:
        text = (
            f"The predicted spread hardly varies (coefficient of variation {fixed(e.variation, 2)}): it cannot tell "
            "easy rows from hard ones."
        )
        yield Finding("CAL602", "caution", text)


def _dominant(e: Forecasts) -> Iterator[Finding]:
    if not e.dominated or e.largest_share is None:
        return
    where = ""
    if e.largest_row is not None and e.largest_error is not None and e.largest_spread is not None:
        where = f" (row {e.largest_row}: error {brief(e.largest_error)}, predicted spread {brief(e.largest_spread)})"
    share = fixed(100 * e.largest_share, 0)
    yield Finding("CAL603", "caution", f"One row makes up {share} % of the mean squared standardised error{where}.")


def _hidden(e: Forecasts, verdict: Verdict) -> Iterator[Finding]:
    if (
        verdict.rule != "R3"
        or e.coverage is None
        or e.coverage.excludes(e.level)
        or e.ence is None
        or e.ence_null is None
    ):
        return
    text = (
        "Intervals cover as they should on average, although the spread of single rows is wrong "
        f"(ENCE {rates(Value(e.ence)).value} %, calibrated {e.ence_when_calibrated} %)."
    )
    yield Finding("CAL604", "caution", text)


def _one_factor(e: Forecasts) -> Iterator[Finding]:
    """Where another map helps and one factor does not."""
    made = e.recalibration
    if made is None or not made.maps or made.maps[0].effect != "best" or (made.maps[0].gain.low or 0.0) <= 0:
        return
    factor = next((one for one in made.maps[1:] if one.name.startswith(("One factor", "StdScaling"))), None)
    if factor is None or factor.gain.high is None or factor.gain.low is None or factor.gain.high >= 0:
        return
    loss = percent(Value(-factor.gain.value, -factor.gain.high, -factor.gain.low))
    text = f"One factor is not enough: scaling all spreads would worsen {made.loss} by {loss.value} % ({loss.ends} %)."
    yield Finding("CAL605", "caution", text)


def of_unlabeled(e: Unlabeled, verdict: Verdict) -> tuple[Finding, ...]:
    """All findings on positive and unlabeled rows, most serious first."""
    if not e.positives or not e.unlabeled:
        return ()
    return ordered([*untested(e), *_unlabeled_test(e, verdict), *_shares(e, verdict), *of_table(e)])


def _unlabeled_test(e: Unlabeled, verdict: Verdict) -> Iterator[Finding]:
    if e.test is None or verdict.rule == "P3":
        return
    p = f"{e.test.name}, {e.test.in_words}"
    if e.test.rejects:
        text = f"The predictions are not calibrated if {score(e.prior)} are positive ({p})."
        yield Finding("CAL201", verdict.severity, text)
        return
    most = "" if e.error is None or e.error.high is None else f"; the error is at most {bound(e.error.high)} points"
    severity: Severity = "caution" if verdict.severity == "caution" else "note"
    text = f"No significant miscalibration detected if {score(e.prior)} are positive ({p}){most}."
    yield Finding("CAL202", severity, text)


def _shares(e: Unlabeled, verdict: Verdict) -> Iterator[Finding]:
    if e.impossible:
        text = (
            f"At {count(e.impossible)} of {count(e.ranges)} score ranges the labelled positives imply a share above "
            "100 % (interval excludes it)."
        )
        yield Finding("CAL701", "problem", text)
    if verdict.rule == "P3" and e.largest_prior is not None:
        text = (
            f"The assumed share of positives, {score(e.prior)}, is larger than these data allow (at most "
            f"{score(e.largest_prior)})."
        )
        yield Finding("CAL702", "problem", text)
    if e.errors:
        low, high = least_and_largest(e)
        shares = f"{score(min(e.priors)).removesuffix(' %')} and {score(max(e.priors))}"
        yield Finding("CAL703", "caution", f"The error ranges from {low} to {high} points for shares between {shares}.")
    yield Finding("CAL704", "note", "Labelled positives are assumed to be a random sample of all positives.")


def of_judged(e: JudgedAnswers, verdict: Verdict) -> tuple[Finding, ...]:
    """All findings on judged answers, most serious first."""
    if not e.n:
        return ()
    return ordered(
        [
            *untested(e),
            *_judged_test(e, verdict),
            *_backwards(e),
            *_small(e),
            *confidence(e, verdict),
            *of_groups(e),
            *_labels(e),
        ]
    )


def _judged_test(e: JudgedAnswers, verdict: Verdict) -> Iterator[Finding]:
    if e.test is None:
        return
    p = f"{e.test.name}, {e.test.in_words}, {count(e.gold)} gold labels"
    if e.test.rejects:
        yield Finding("CAL201", verdict.severity, f"The confidence is not calibrated ({p}).")
        return
    most = "" if e.most is None else f"; the error is at most {bound(e.most)} points"
    severity: Severity = "caution" if verdict.state == "too few" or not small(e) else "note"
    yield Finding("CAL202", severity, f"No significant miscalibration detected ({p}){most}.")


def _labels(e: JudgedAnswers) -> Iterator[Finding]:
    if e.unlabelled:
        some = f"{count(len(e.unlabelled))} {plural('group', len(e.unlabelled))}"
        verb = "has" if len(e.unlabelled) == 1 else "have"
        yield Finding("CAL802", "caution", f"{some} {verb} no gold label, and therefore no number.")
    drawn = "with the probabilities that their weights imply" if e.sampled else "at random, all with equal probability"
    text = f"{plural(e.words.row).capitalize()} are assumed to have been chosen for labelling {drawn}."
    yield Finding("CAL801", "note", text)
