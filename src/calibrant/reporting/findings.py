"""The numbered findings of every task: probabilities, classes, forecasts, positive and unlabeled rows.

Each rule reads the evidence and yields a finding or none.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from calibrant.reporting.contents import Bin, Severity, Verdict
from calibrant.reporting.evidence import FEW_SCORES
from calibrant.reporting.model import Finding
from calibrant.reporting.names import first_up, map_in_sentence, plural
from calibrant.reporting.rounding import bound, brief, count, fixed, negated, out_of, points, rates, ratio, score, span
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
            *_probability_test(evidence, verdict, f", n = {count(evidence.n)}"),
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


_INSTEAD = "Log loss is infinite; the Brier score is used instead."


def certainty(e: Probabilities) -> Iterator[Finding]:
    """Rows predicted with certainty, wrong ones first."""
    for number, predicted, came in ((e.impossible_events, 0, 1), (e.impossible_others, 1, 0)):
        if number > 0:
            rows = f"{count(number)} {plural(e.words.row, number)} {'was' if number == 1 else 'were'}"
            text = f"{rows} predicted as exactly {predicted} and came out {came}. {_INSTEAD}"
            yield Finding("CAL101", "problem", text)
    if MANY_CERTAIN < e.certain < 1:
        text = f"{score(round(e.certain, 2))} of the {plural(e.words.row)} are predicted as exactly 0 or 1."
        yield Finding("CAL102", "caution", text)


def untested(e: Shared) -> Iterator[Finding]:
    """That the test of the verdict did not run, and why."""
    if e.test is None and e.untested:
        yield Finding("CAL207", "caution", missing_test(e))


_DECISIONS = Finding("CAL104", "caution", "The predictions are only 0 and 1: decisions, not probabilities.")


def _shape_of_scores(e: Probabilities) -> Iterator[Finding]:
    if e.decisions is not None:
        yield _DECISIONS
    elif e.only_score is not None:
        yield Finding("CAL103", "caution", f"All {plural(e.words.row)} have the same predicted probability.")


def _tested(
    e: Shared,
    verdict: Verdict,
    what: str,
    counted: str,
    *,
    code: str = "CAL201",
    error: str = "the error",
    given: str = "",
    unsure: bool | None = None,
) -> Iterator[Finding]:
    """What the test of the verdict says, and how large the error may be where it does not reject."""
    if e.test is None:
        return
    p = f"{e.test.name}, {e.test.in_words}{counted}"
    if e.test.rejects:
        yield Finding(code, verdict.severity, f"The {what} not calibrated{given} ({p}).")
        return
    most = "" if e.most is None else f"; {error} is at most {bound(e.most)} points"
    unsure = verdict.severity == "caution" if unsure is None else unsure
    text = f"No significant miscalibration detected{given} ({p}){most}."
    yield Finding("CAL202", "caution" if unsure else "note", text)


def _probability_test(e: Probabilities, verdict: Verdict, counted: str) -> Iterator[Finding]:
    if e.decisions is None:
        unsure = verdict.state == "too few" or not small(e)
        yield from _tested(e, verdict, "confidence is" if e.confidence else "predictions are", counted, unsure=unsure)


def _small(e: Probabilities) -> Iterator[Finding]:
    if e.rejects and small(e) and e.most is not None:
        relative = "" if not e.rarer > 0 else f", {bound(e.most / e.rarer)} % of the base rate"
        text = f"The error is significant but small: at most {bound(e.most)} points{relative}."
        yield Finding("CAL203", "note", text)


def _backwards(e: Probabilities) -> Iterator[Finding]:
    if e.backwards:
        yield Finding("CAL208", "problem", backwards_in_words(e))
    elif not e.confidence and (row := uninformative(e)) is not None:
        yield Finding("CAL209", "problem", row.sentence)


def _slope(e: Probabilities, verdict: Verdict) -> Iterator[Finding]:
    if e.backwards or e.uninformative or e.slope is None or not e.rejects or not e.tilted or e.confidence:
        return
    extreme = e.slope.value < 1
    wrong = [one for one in e.ranges if one.off and one.n > 0]
    high = [one for one in wrong if (one.predicted > one.observed.value) == extreme]  # those that show what is said
    low = [one for one in wrong if (one.predicted <= one.observed.value) == extreme]
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
    low, high = score(one.low), score(one.high)
    where = f"from {low} to {high}" if one.low < one.high else f"of {low}"
    seen = rates(one.observed, one.predicted).value
    return f"scores {where} are {side} ({score(one.predicted)} predicted, {seen} % observed)"


def confidence(e: Probabilities, verdict: Verdict) -> Iterator[Finding]:
    """Over- or under-confidence of the top label."""
    gap = e.gap
    if not e.confidence or gap is None or not gap.excludes(0.0) or not e.rejects:
        return
    over = gap.value > 0
    size = points(gap if over else negated(gap))
    kind, verb = ("Over-confident", "exceeds") if over else ("Under-confident", "falls below")
    text = f"{kind}: confidence {verb} accuracy by {size.points}{size.brackets()}."
    yield Finding("CAL205", verdict.severity, text)


def _disagreement(e: Probabilities) -> Iterator[Finding]:
    reaches_zero = e.error is not None and e.error.low is not None and e.error.low <= 0
    if e.rejects and reaches_zero and e.decisions is None and not small(e):
        start = "The test rejects calibration, yet the interval of the error reaches 0"
        yield Finding("CAL206", "caution", f"{start}: there is an error, but its size is uncertain.")


def of_groups(e: Shared) -> Iterator[Finding]:
    """Groups that are miscalibrated, that cannot be judged, and that are folded."""
    flagged = flagged_groups(e.groups)
    if flagged:
        severity = min((group_severity(row, e.tolerance) for row in flagged), key=_ORDER.__getitem__)
        yield Finding("CAL301", severity, f"{first_up(flagged_in_words(e.groups))}.")
    for grouping in e.groups:
        rows, number = grouping.rows, count(len(grouping.rows))
        few = [row for row in rows if not row.judged]
        if few:
            are = "group has" if len(few) == len(rows) == 1 else "groups have"
            events = all(row.observed is not None for row in few)
            what = f"fewer than {FEWEST_EVENTS} events" if events else "too few independent rows"
            text = f"{count(len(few))} of {number} {are} {what}: they are shown but cannot be judged."
            yield Finding("CAL302", "caution", text)
        flagged_here = sum(row.flagged for row in rows)
        hidden = len(rows) - max(flagged_here, SHOWN_GROUPS)
        if hidden > 0:
            text = f"{count(hidden)} of {number} groups are folded below the figure; all were tested."
            yield Finding("CAL304", "note", text)


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
    if high >= 1.5 * low and high - low >= 0.002:
        least, most = (points(Value(one)).value for one in (low, high))
        ends = f"from {least} points ({count(few)} bins) to {most} points ({count(many)} bins)"
        yield Finding("CAL401", "caution", f"The plain ECE ranges {ends} on the same {plural(e.words.row)}.")


def _size(e: Probabilities) -> Iterator[Finding]:
    if e.test is None or e.undetected is None or e.decisions is not None:
        return
    if e.n < FEW_ROWS or not (small(e) or e.test.rejects):
        events = f"{count(e.events)} {plural(e.words.event, e.events, kind='event')}"
        least = brief(100 * e.undetected, 1)
        yield _undetected(e, events, f"an error below about {least} points")


def _undetected(e: Shared, what: str, error: str) -> Finding:
    text = f"With {e.counted} and {what}, {error} would usually go undetected."
    return Finding("CAL402", "caution", text)


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
    made = e.recalibration
    if made is None or not made.maps:
        return
    best = made.maps[0]
    if best.gain.low is None or best.gain.high is None:
        return
    gain = points(best.gain).with_ends(" %")
    if best.gain.low > 0 and e.rejects:
        text = f"Recalibration helps: {map_in_sentence(best.name)} lowers cross-validated {made.loss} by {gain}."
        yield Finding("CAL501", "note", text)
    elif all(one.effect == "makes it worse" for one in made.maps):
        text = f"Recalibration does not help: every map tried raises cross-validated {made.loss}."
        yield Finding("CAL502", "note", text)
    elif best.gain.low <= 0:
        start = f"Recalibration may not help: with the best map {made.loss} is lower by {gain}"
        yield Finding("CAL503", "note", f"{start}, and the interval includes 0.")


def of_classes(e: ProbabilityVectors, verdict: Verdict) -> tuple[Finding, ...]:
    """All findings on probability vectors, most serious first."""
    if e.n == 0:
        return ()
    if e.decisions is not None:
        return (_DECISIONS,)
    counted = f", n = {count(e.n)}"
    return ordered(
        [
            *_impossible(e),
            *untested(e),
            *_tested(e, verdict, "probability vectors are", counted, code="CAL211", error="the top-label error"),
            *_backwards(e.top),
            *(confidence(e.top, verdict) if e.rejects else ()),
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
        rows = f"{count(e.impossible)} {plural(e.words.row, e.impossible)} {'was' if e.impossible == 1 else 'were'}"
        text = f"{rows} of a class predicted with a probability of exactly 0. {_INSTEAD}"
        yield Finding("CAL101", "problem", text)


def _classes(e: ProbabilityVectors) -> Iterator[Finding]:
    flagged = tuple(row for row in e.class_rows if row.flagged)
    if not e.rejects or not e.class_rows:
        return
    if not flagged:
        text = f"No class by itself differs beyond chance: the error is spread over all {count(e.number)} classes."
        yield Finding("CAL212", "note", text)
        return
    off = tuple(row for row in flagged if total_is_off(row, e.number))
    totals = f"; totals are off most for {largest_gap_classes(off)}" if off else ""
    severity: Severity = "problem" if any(outside(row.ratio, RATIOS) for row in flagged) else "caution"
    many = f"{out_of(len(flagged), e.number)} classes {'is' if len(flagged) == 1 else 'are'}"
    yield Finding("CAL212", severity, first_up(f"{many} miscalibrated after adjustment{totals}."))


def _few_of_a_class(e: ProbabilityVectors) -> Iterator[Finding]:
    few = [row for row in e.class_rows if row.observed is not None and row.observed < FEWEST_EVENTS]
    if few:
        many = f"{count(len(few))} of {count(e.number)}"
        text = f"{many} classes have fewer than {FEWEST_EVENTS} rows: they are shown but cannot be judged."
        yield Finding("CAL302", "caution", text)


def _few_rows(e: ProbabilityVectors) -> Iterator[Finding]:
    if e.test is not None and e.top.undetected is not None and e.n < FEW_ROWS:
        error = f"a top-label error below about {bound(e.top.undetected)} points"
        yield _undetected(e, f"{e.number} classes", error)


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
        word = "narrow" if narrow else "wide"
        text = f"The predicted spread is too {word}: error-to-spread ratio {ratio(e.ratio).with_ends()}."
        yield Finding("CAL601", verdict.severity, text)
        return
    yield from _tested(e, verdict, "predicted distributions are", f", n = {count(e.n)}")


def _constant(e: Forecasts) -> Iterator[Finding]:
    if e.variation is not None and e.variation < CONSTANT:
        how = f"hardly varies (coefficient of variation {fixed(e.variation, 2)})"
        yield Finding("CAL602", "caution", f"The predicted spread {how}: it cannot tell easy rows from hard ones.")


def _dominant(e: Forecasts) -> Iterator[Finding]:
    if not e.dominated or e.largest_share is None:
        return
    where = ""
    if e.largest_row is not None and e.largest_error is not None and e.largest_spread is not None:
        where = f" (row {e.largest_row}: error {brief(e.largest_error)}, predicted spread {brief(e.largest_spread)})"
    share = fixed(100 * e.largest_share, 0)
    yield Finding("CAL603", "caution", f"One row makes up {share} % of the mean squared standardised error{where}.")


def _hidden(e: Forecasts, verdict: Verdict) -> Iterator[Finding]:
    if verdict.rule != "R3" or e.coverage is None or e.coverage.excludes(e.level) or e.ence is None or not e.ence_null:
        return
    error = f"ENCE {rates(Value(e.ence)).value} %, calibrated {e.ence_when_calibrated} %"
    text = f"Intervals cover as they should on average, although the spread of single rows is wrong ({error})."
    yield Finding("CAL604", "caution", text)


def _one_factor(e: Forecasts) -> Iterator[Finding]:
    """Where another map helps and one factor does not."""
    made = e.recalibration
    if made is None or not made.maps or made.maps[0].effect != "best" or (made.maps[0].gain.low or 0.0) <= 0:
        return
    factor = next((one for one in made.maps[1:] if one.parameters == 1), None)
    if factor is not None and factor.gain.high is not None and factor.gain.high < 0:
        loss = points(negated(factor.gain)).with_ends(" %")
        text = f"One factor is not enough: scaling all spreads would worsen {made.loss} by {loss}."
        yield Finding("CAL605", "caution", text)


def of_unlabeled(e: Unlabeled, verdict: Verdict) -> tuple[Finding, ...]:
    """All findings on positive and unlabeled rows, most serious first."""
    if not e.positives or not e.unlabeled:
        return ()
    given = f" if {score(e.prior)} are positive"
    tested = () if verdict.rule == "P3" else _tested(e, verdict, "predictions are", "", given=given)
    return ordered([*untested(e), *tested, *_shares(e, verdict), *of_table(e)])


def _shares(e: Unlabeled, verdict: Verdict) -> Iterator[Finding]:
    if e.impossible:
        where = f"{count(e.impossible)} of {count(e.ranges)} score ranges"
        text = f"At {where} the labelled positives imply a share above 100 % (interval excludes it)."
        yield Finding("CAL701", "problem", text)
    if verdict.rule == "P3" and e.largest_prior is not None:
        most = f"(at most {score(e.largest_prior)})"
        text = f"The assumed share of positives, {score(e.prior)}, is larger than these data allow {most}."
        yield Finding("CAL702", "problem", text)
    if e.errors:
        low, high = least_and_largest(e)
        shares = span(min(e.priors), max(e.priors), word="and")
        yield Finding("CAL703", "caution", f"The error ranges from {low} to {high} points for shares between {shares}.")
    yield Finding("CAL704", "note", "Labelled positives are assumed to be a random sample of all positives.")


def of_judged(e: JudgedAnswers, verdict: Verdict) -> tuple[Finding, ...]:
    """All findings on judged answers, most serious first."""
    if not e.n:
        return ()
    return ordered(
        [
            *untested(e),
            *_probability_test(e, verdict, f", {count(e.gold)} gold labels"),
            *_backwards(e),
            *_small(e),
            *confidence(e, verdict),
            *of_groups(e),
            *_labels(e),
        ]
    )


def _labels(e: JudgedAnswers) -> Iterator[Finding]:
    if e.unlabelled:
        some = f"{count(len(e.unlabelled))} {plural('group', len(e.unlabelled))}"
        verb = "has" if len(e.unlabelled) == 1 else "have"
        yield Finding("CAL802", "caution", f"{some} {verb} no gold label, and therefore no number.")
    drawn = "with the probabilities that their weights imply" if e.sampled else "at random, all with equal probability"
    text = f"{plural(e.words.row).capitalize()} are assumed to have been chosen for labelling {drawn}."
    yield Finding("CAL801", "note", text)
