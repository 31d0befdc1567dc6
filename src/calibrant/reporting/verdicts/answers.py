"""The three short answers below a verdict: how sure, what it means, what to do.

Every task has the same skeleton of the first and the last (`sureness`, `advice`) and adds what is its own.
"""

from __future__ import annotations

from collections.abc import Sequence

from calibrant.inference.changes_over_time import DRAWS as CHANGE_DRAWS
from calibrant.reporting.contents import Bin, GroupRow, Recalibration
from calibrant.reporting.names import had_the_event, listed, map_in_sentence, plural, remaining_error
from calibrant.reporting.rounding import MINUS, approximate, bound, count, p_words, percent, points, rates, score
from calibrant.reporting.verdicts.evidence import ALPHA, FEWEST_EVENTS, FEWEST_ROWS, Probabilities, Shared, VerdictTest
from calibrant.reporting.verdicts.severity import changed, flagged_groups, limit, significant, small
from calibrant.reporting.verdicts.truth_table import NAMED, Row, opposed_directions
from calibrant.results.estimate import Value, printable

#: Fewer highest scores than this are not reported.
#: Test: tests/reporting/verdicts/test_answers.py::test_what_it_means_without_a_threshold_speaks_of_the_highest_scores.
FEW_TOP = 10

#: More rows are not asked for.
#: Test: tests/reporting/verdicts/test_answers.py::test_rows_that_nobody_collects_are_not_asked_for.
MOST_ROWS = 1_000_000

#: A share of the loss that is not worth a map.
#: Test: tests/reporting/verdicts/test_answers.py::test_little_to_gain.
LITTLE = 0.005

NOTHING = "Nothing needs to be done for calibration."

#: What decided a test, by the name of its component.
DECIDED = {
    "level": "the level (observed : expected)",
    "slope": "the slope",
    "shape": "the shape of the errors",
    "bias": "the bias",
    "spread": "the spread",
    "skewness": "the skewness",
    "tails": "the tails",
    "spread by width": "the spread of wide against narrow forecasts",
    "bias by width": "the bias of wide against narrow forecasts",
}


def sureness(evidence: Shared, *own: str) -> str:
    """Strength of the evidence, what a task adds of its own, and weights, clusters or a table behind the rows."""
    return " ".join(part for part in (*own, *about_rows(evidence)) if part)


def advice(evidence: Shared, row: Row, *, own: str = "", too_few: str = "", settled: str = NOTHING) -> str:
    """What to do, in the order of every task: `own` advice first, then what is said of too few rows for a map."""
    if own:
        return own
    if row.state == "cannot be judged":
        return to_be_judged(evidence)
    if too_few:
        only_groups = row.state == "not calibrated" and not evidence.rejects
        return f"{too_few} {_flagged_only(evidence)}".strip() if only_groups else too_few
    if row.state != "not significant":
        return recommendation(evidence, row)
    return f"More {plural(evidence.words.row)} would settle this." if evidence.looks and settled == NOTHING else settled


def too_few_for_a_map(evidence: Shared, row: Row) -> str:
    """What is said where rows are too few, by the verdict or for a map; else ""."""
    few = row.state == "too few" or evidence.n < FEWEST_ROWS
    return f"Too few {plural(evidence.words.row)} to fit or judge a map." if few else ""


def how_sure(evidence: Probabilities) -> str:
    """Strength of the evidence, and the size of the error relative to the base rate."""
    if evidence.decisions is not None:
        return ""
    return sureness(evidence, strength(evidence), size_of_error(evidence))


def strength(evidence: Shared) -> str:
    """The evidence that decided: the test of all rows or, where it does not reject, a change over time or groups."""
    if evidence.test is None:
        return "Significance is not known, because the test could not be computed." if evidence.untested else ""
    said, change = evidence_in_words(evidence.test), changed(evidence.over_time)
    flagged = flagged_groups(evidence.groups)
    if evidence.test.rejects or (change is None and not flagged):
        return f"{said} {looks_in_words(evidence)}".strip()
    if change is not None:
        p = p_words(change.p_value, CHANGE_DRAWS)
        found = f"{_strength(change.p_value)} evidence of a change: {p}, adjusted for the search over all times."
    else:
        least = min(row.p_value for row in flagged)
        found = f"{_strength(least)} evidence in groups: {p_words(least)}, adjusted for their number."
    return f"{found} Over all {count(evidence.n)} {plural(evidence.words.row)}: {said[0].lower()}{said[1:]}"


def looks_in_words(evidence: Shared) -> str:
    """Large numbers that exclude their ideal where nothing is significant."""
    names = [one.name for one in evidence.looks]
    if not names or evidence.test is None:
        return ""
    p = evidence.test.p_value if evidence.test.adjusted is None else evidence.test.adjusted
    are = "are" if len(names) > 1 else "is"
    return (
        f"{listed(names)} would be significant alone, but {are} among several numbers that were looked at, which "
        f"together are not significant ({p_words(p, evidence.test.draws)})."
    )


def size_of_error(evidence: Probabilities, what: str = "calibration error") -> str:
    """The mean error with its interval, or its upper end."""
    error = evidence.error
    if error is None or error.high is None:
        return ""
    of_base = _of_base_rate(error, evidence)
    if error.low is not None and error.low > 0:
        found = points(error)
        return f"The mean {what} is {found.percentage_points} ({found.ends}){of_base}."
    return f"The mean {what} is at most {bound(error.high)} percentage points{of_base}."


def evidence_in_words(test: VerdictTest) -> str:
    """How strong the evidence is, and where it comes from."""
    p = test.p_value
    strong = _strength(p if test.rejects else 1.0)
    decided = ""
    if test.rejects and test.decided is not None:
        also = test.clear("level") if test.decided.name in ("slope", "shape") else None
        decided = f" Decided by {DECIDED.get(test.decided.name, test.decided.name)}"
        if also is not None:
            decided += f"; the level is significant too ({p_words(min(also.p_value / also.share, 1.0))})"
        decided += "."
    rank = p * (1 + (test.draws or 0))
    if test.draws is None or (rank > 1 and abs(rank - round(rank)) > 1e-6):  # that of a component times its share
        return f"{strong} evidence: {test.name}, {test.in_words}.{decided}"
    as_much = round(rank) - 1
    if as_much <= 0:
        how = f"none of {count(test.draws)} simulated calibrated models deviated as much"
    else:
        how = f"{count(as_much)} of {count(test.draws)} simulated calibrated models deviated as much or more"
    return f"{strong} evidence: {how} ({test.in_words}).{decided}"


def _strength(p: float) -> str:
    return "Strong" if p <= 0.001 else "Clear" if p <= 0.01 else "Some" if p < ALPHA else "No significant"


def about_rows(evidence: Shared) -> list[str]:
    """Weights, clusters, and that a table knows no dependence."""
    said = []
    if evidence.effective_n is not None:
        said.append(f"{count(evidence.n)} rows, effective sample size {count(evidence.effective_n)}.")
    if evidence.clusters is not None:
        said.append(f"Intervals allow for {count(evidence.clusters)} groups of dependent rows.")
    if evidence.cells is not None:
        said.append(f"Computed from a table of {count(evidence.cells)} cells; rows are treated as independent.")
    return said


def _of_base_rate(error: Value, evidence: Probabilities) -> str:
    if not evidence.rarer > 0 or evidence.confidence:
        return ""
    what = "the base rate" if evidence.base_rate <= 0.5 else "the rate of the rarer outcome"
    if error.low is not None and error.low > 0:
        relative = Value(*(end / evidence.rarer for end in (error.value, error.low, error.high or error.value)))
        return f", {percent(relative).value} % of {what}"
    return f", {bound((error.high or 0.0) / evidence.rarer)} % of {what}"


def what_it_means(evidence: Probabilities) -> str:
    """The rows at and above the user's threshold; those with the highest scores or, if only others are wrong, these."""
    if evidence.threshold is not None and evidence.threshold.above is not None:
        above = evidence.threshold.above
        at = score(evidence.threshold.at)
        said = f"Of the {_rows(above, evidence)} above your threshold of {at}, {_observed(above, evidence)}."
        around = evidence.threshold.around
        if around is None:
            return said + _by_itself(evidence, above)
        if around.observed.excludes(around.predicted):
            found = rates(around.observed, around.predicted)
            return (
                f"{said} Around the threshold itself, {found.value} % had it ({found.ends} %), where "
                f"{score(around.predicted)} were predicted.{_by_itself(evidence, around)}"
            )
        return f"{said} At the threshold itself, the gap could be chance.{_by_itself(evidence, above)}"
    top = evidence.top
    if top is None or evidence.distinct == 1 or top.n < FEW_TOP or evidence.decisions is not None:
        return ""
    several = top.low < top.high
    at = "nearly 100 %" if score(top.low) == "100 %" else f"above {score(top.low)}"
    which = f"highest scores ({at})" if several else f"highest score, {score(top.low)}"
    wrong = _wrong_range(evidence, top)
    if wrong is None or top.observed.excludes(top.predicted):
        return f"Of the {_rows(top, evidence)} with the {which}, {_observed(top, evidence)}.{_by_itself(evidence, top)}"
    below = f"scores up to {score(wrong.high)}" if wrong.low == 0 else None
    between = below or f"scores from {score(wrong.low)} to {score(wrong.high)}"
    return (
        f"Of the {_rows(wrong, evidence)} with {between}, {_observed(wrong, evidence)}. "
        f"For those with the {which}{'' if several else ','} the gap could be chance."
    )


def _by_itself(evidence: Probabilities, some: Bin) -> str:
    """A word on rows that are off where nothing is significant."""
    if significant(evidence) or not some.observed.excludes(some.predicted):
        return ""
    but = "no test says what all scores together show" if evidence.test is None else "the test allows for all scores"
    return f" This gap would be significant alone, but {but}."


def _wrong_range(evidence: Probabilities, top: Bin) -> Bin | None:
    """Of the ranges below the highest scores that are clearly wrong, the one with the largest part of the error."""
    if not evidence.rejects:
        return None
    ranges = [one for one in evidence.ranges if one.low < one.high <= top.low and one.high < top.high]
    wrong = [one for one in ranges if one.observed.excludes(one.predicted)]
    return max(wrong, key=lambda one: one.share or 0.0, default=None)


def _rows(some: Bin, evidence: Probabilities) -> str:
    return f"{count(some.n)} {plural(evidence.words.row, some.n)}"


def _observed(some: Bin, evidence: Probabilities) -> str:
    found = rates(some.observed, some.predicted)
    what = "were right" if evidence.confidence else had_the_event(evidence.words.event)
    says = "the confidence says" if evidence.confidence else "the predictions say"
    return f"{found.value} % {what}{found.brackets(' %')}; {says} {score(some.predicted)}"


def what_to_do(evidence: Probabilities, row: Row) -> str:
    """The recommendation, and what it is known to achieve."""
    own = ""
    if evidence.decisions is not None and row.state == "cannot be judged":
        own = "Pass predicted probabilities, for example predict_proba(...)[:, 1], instead of decisions."
    elif evidence.backwards and row.state != "cannot be judged":
        own = (
            "Check which column holds the scores and which outcome they predict, and repeat the report. A "
            "recalibration map would only hide the mistake."
        )
    elif evidence.uninformative and row.state != "cannot be judged" and row.rule == "BI":
        own = "Check how outcomes were joined to predictions. No recalibration map can add information."
    settled = NOTHING if small(evidence) else _more_rows(evidence)
    return advice(evidence, row, own=own, too_few=_too_few(evidence, row), settled=settled)


def _too_few(evidence: Probabilities, row: Row) -> str:
    if evidence.n >= FEWEST_ROWS and min(evidence.events, evidence.n - evidence.events) >= FEWEST_EVENTS:
        return ""
    more = "" if row.state == "not calibrated" else _more_rows(evidence)
    rows = plural(evidence.words.row)
    if evidence.n >= FEWEST_ROWS and evidence.events in (0, evidence.n):
        return f"A map is fitted to {rows} of both outcomes, and all of these have the same one. {more}".strip()
    what = rows if evidence.n < FEWEST_ROWS else rarer_outcome(evidence)
    return f"Too few {what} to fit or judge a map. {more}".strip()


def rarer_outcome(evidence: Probabilities) -> str:
    """What rows with the rarer outcome are called."""
    others = evidence.n - evidence.events < evidence.events
    if evidence.confidence:
        return f"{'wrong' if others else 'right'} predictions"
    events = plural(evidence.words.event, kind="event")
    return f"non-{events}" if others else events


def to_be_judged(evidence: Shared) -> str:
    """What would allow a judgement where there is none."""
    rows = plural(evidence.words.row)
    if evidence.n == 0:
        return f"Give {rows} that have both a prediction and an outcome."
    one = ", for example one per group," if evidence.clusters is not None else ""
    return f"Give more {rows} that do not depend on each other{one} so that calibration can be tested."


def recommendation(evidence: Shared, row: Row) -> str:
    """What the compared maps say; a change over time and groups that one map cannot serve come first."""
    made = evidence.recalibration
    only_groups = not evidence.rejects and changed(evidence.over_time) is None
    said = _since_the_change(evidence, made)
    if not said and made is not None and made.maps and not only_groups:
        said = best_map(made, small=row.state == "small")
    if said and row.state == "small":
        said = f"Usually nothing needs to be done. {said}"
    groups = _flagged_only(evidence) if only_groups else groups_apart(evidence)
    told = f"{said} {groups}".strip()
    return told or f"Recalibrate on more {plural(evidence.words.row)}: on these no map could be fitted and judged."


def best_map(made: Recalibration, *, small: bool = False) -> str:
    """What the best map gains, and the error that remains."""
    best = made.maps[0]
    gain = best.gain
    if gain.low is None or gain.high is None:
        return ""
    if all(one.effect == "makes it worse" for one in made.maps):
        return f"Do not recalibrate: every map tried makes {made.loss} worse on rows it was not fitted on."
    if gain.low <= 0 and (small or gain.high < LITTLE):
        return f"There is little to gain: no map lowers {made.loss} by more than {bound(gain.high)} %."
    if gain.low <= 0:
        low, high = _signed(percent(gain).low), _signed(percent(gain).high)
        change = f"the change in {made.loss} lies between {low} and {high}"
        if gain.low < -1:
            change = f"{made.loss} may more than double as well as fall"
        return f"Recalibration may not help: {change}. More rows would settle this."
    found = percent(gain)
    others = sum(one.effect == "helps" and one.gain.value >= gain.low for one in made.maps[1:])
    name = map_in_sentence(best.name, start=True)
    gains = f"{name} lowers cross-validated {made.loss} by {found.value} % ({found.ends} %)"
    sentence = f"{gains}; {_remaining(best.remaining, made.loss)}."
    return f"{sentence} Other maps perform equally well." if others else sentence


def _remaining(error: Value, loss: str) -> str:
    what, unit = remaining_error(loss)
    if error.low is not None and error.low > 0 and error.high is not None:
        found = points(error)
        return f"an {what} of {found.value} {unit} ({found.ends}) remains"
    if error.high is None or error.high >= 1:
        return f"the remaining {what} is not known"
    return f"the remaining {what} is at most {bound(error.high)} {unit}"


def _signed(gain: str) -> str:
    return f"{gain.removeprefix(MINUS)} % {'worse' if gain.startswith(MINUS) else 'better'}"


def _since_the_change(evidence: Shared, made: Recalibration | None) -> str:
    change, over_time = changed(evidence.over_time), evidence.over_time
    if change is None or over_time is None:
        return ""
    period = printable(over_time.periods[change.first].name)
    rows = plural(evidence.words.row)
    recent = None if made is None else made.recent
    if made is None or recent is None:
        return f"Refit a map on {rows} since {period}, when there are enough of them."
    name = map_in_sentence(recent.name)
    if recent.gain.low is not None and recent.gain.low > 0:
        found = percent(recent.gain)
        told = f"{made.loss} there falls by {found.value} % ({found.ends} %)"
    else:
        told = f"whether {made.loss} there falls is uncertain"
    return f"Refit {name} on {rows} since {period}: {told}."


def _flagged_only(evidence: Shared) -> str:
    """Advice where groups are wrong and the whole is not: which ones to look at."""
    flagged = flagged_groups(evidence.groups)
    return f"Look at {_named(flagged)}: {_apart(flagged)}. One map for all cannot help." if flagged else ""


def _named(rows: Sequence[GroupRow]) -> str:
    """Up to eight groups, strongest evidence first, and how many more."""
    names = [printable(row.name) for row in sorted(rows, key=lambda row: row.p_value)[:NAMED]]
    return f"{', '.join(names)} and {len(rows) - NAMED} more" if len(rows) > NAMED else listed(names)


def _apart(rows: Sequence[GroupRow]) -> str:
    """Maps of their own, where every group has rows enough and is wrong in a way that maps repair."""
    one, few = len(rows) == 1, sum(map(_too_small, rows))
    if few:
        some = "they have" if few == len(rows) else f"{count(few)} of them {'has' if few == 1 else 'have'}"
        own = "it has too few rows for a map of its own" if one else f"{some} too few rows for a map of their own"
        return f"give the model the group, because {own}"
    if any(row.observed is None and row.ideal == 1 and row.direction in ("too high", "too low") for row in rows):
        return "give the model the group, because maps of the spread leave a bias as it is"
    return f"fit a map for {'it' if one else 'each of them'} separately, or give the model the group"


def _too_small(row: GroupRow) -> bool:
    """Whether a group has too few rows, or too few of either outcome, to fit and judge a map."""
    rarer = row.n if row.observed is None else min(row.observed, row.n - row.observed)
    return row.n < FEWEST_ROWS or rarer < FEWEST_EVENTS


def groups_apart(evidence: Shared) -> str:
    """Groups in which the error sits, where these are few; or those that one map for all rows cannot repair."""
    flagged = flagged_groups(evidence.groups)
    number = sum(row.judged for grouping in evidence.groups for row in grouping.rows)
    if flagged and 2 * len(flagged) < number:
        many = f"{count(len(flagged))} of {count(number)} groups"
        return f"The error sits in {_named(flagged)} ({many}): {_apart(flagged)}."
    if not opposed_directions(flagged):
        return ""
    still = sorted((row for row in flagged if row.flagged_after), key=lambda row: row.p_value)[:1]
    some = still or [row for row in flagged if row.observed is None]  # forecasts are not tested again
    return f"One map cannot repair {_named(some)}: {_apart(some)}." if some else ""


def _more_rows(evidence: Probabilities) -> str:
    """How many rows would settle what these cannot, in four of five samples of a calibrated model."""
    rows = plural(evidence.words.row)
    if evidence.needed is None or evidence.needed <= evidence.n:
        return f"Collect more {rows}."
    wanted = bound(limit(evidence.rarer, evidence.tolerance))
    if evidence.needed > MOST_ROWS:
        return (
            f"More than {count(MOST_ROWS)} {rows} would be needed to rule out an error of {wanted} points. Give a "
            "tolerance, if a larger error does no harm."
        )
    return (
        f"Collect about {approximate(evidence.needed)} {rows} in all: if the model is calibrated, they rule out an "
        f"error of {wanted} points with a chance of 80 %."
    )
