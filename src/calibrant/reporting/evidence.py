"""The evidence of a verdict on probabilities, collected from data: the only place where both meet."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from calibrant.data.predictions import Binary
from calibrant.numerics.binomial_interval import mid_p_interval
from calibrant.reporting.assembling import Assembly, sentence
from calibrant.reporting.contents import Bin, BinCounts, Omitted, Reliability, Value
from calibrant.reporting.names import name_of_test, simulations
from calibrant.reporting.part import Part
from calibrant.reporting.verdicts.evidence import Decisions, Probabilities, VerdictTest, Words
from calibrant.results.estimate import Estimate, Significance
from calibrant.table.bintable import BinTable

#: With at most so many distinct scores, the largest gap is looked for.
FEW_SCORES = 20
#: Standard errors of the mean gap that the default test finds in four of five samples, as measured for shifts of all
#: log odds (see the test of this module).
DETECTED = 3.0


def collected(
    part: Part, made: Assembly, *, words: Words, tolerance: float | None = None, confidence: bool = False
) -> Probabilities:
    """What the verdict is made from, as far as it does not need the sections."""
    cells = part.cells
    if cells.n == 0 or not cells.total > 0:
        return Probabilities(n=0, words=words, confidence=confidence)
    n, total = cells.n, cells.total
    rate, predicted = (float(np.clip(sums.sum() / total, 0.0, 1.0)) for sums in (cells.observed, cells.predicted))
    test = made.attempt("", lambda: part.test)
    if np.all((cells.high == 0) | (cells.low == 1)):
        made.omitted.append(Omitted("Calibration slope", "All predictions are exactly 0 or 1, which have no log odds."))
    known = Probabilities(
        n=n,
        events=rate * n,
        predicted=predicted,
        words=words,
        tolerance=tolerance,
        confidence=confidence,
        test=None if test is None else of_test(test),
        untested="" if test is not None else _untested(part),
        error=of_error(made.attempt("Calibration error", lambda: part.headline)),
        ratio=of_estimate(made.attempt("", lambda: part.observed_expected)),
        slope=of_estimate(made.attempt("", lambda: part.slope)),
        intercept=of_estimate(made.attempt("", lambda: part.intercept)),
        undetected=_undetected(cells),
        cells=len(cells) if isinstance(part.data, BinTable) else None,
        effective_n=cells.population.effective_n if _weighted(part) else None,
        clusters=_clusters(part),
    )
    return replace(known, observed=_observed(known, cells), **_scores(cells))


def with_diagram(known: Probabilities, diagram: Reliability | None, bins: BinCounts | None) -> Probabilities:
    """The same with what the reliability diagram found."""
    if diagram is None:
        return replace(known, bin_counts=bins)
    return replace(
        known,
        ranges=diagram.ranges,
        threshold=diagram.threshold,
        distinct=diagram.distinct,
        top=diagram.top,
        largest_gap=_largest_gap(diagram),
        bin_counts=bins,
    )


def of_test(test: Significance) -> VerdictTest:
    """A test as the verdict knows it; its name as in the middle of a sentence."""
    name = name_of_test(replace(test, method=test.method.split("(")[0], details={})).text
    return VerdictTest(name[:1].lower() + name[1:], float(test.p_value), simulations(test))


def of_error(estimate: Estimate | None) -> Value | None:
    """An error with the interval of the true error, which is never negative; the estimate is moved inside."""
    if estimate is None or math.isnan(estimate.value):
        return None
    if estimate.interval is None:
        return Value(estimate.clipped)
    low, high = max(0.0, float(estimate.interval.low)), max(0.0, float(estimate.interval.high))
    return Value(min(max(estimate.clipped, low), high), low, high)


def of_estimate(estimate: Estimate | None) -> Value | None:
    """An estimate with its interval; None where the data do not determine it."""
    if estimate is None or math.isnan(estimate.value):
        return None
    found = estimate.interval
    return Value(estimate.value) if found is None else Value(estimate.value, float(found.low), float(found.high))


def rate_interval(events: float, n: float) -> Value:
    """A frequency with its mid-P interval."""
    low, high = mid_p_interval(events, n, 0.95)
    return Value(events / n, float(low), float(high))


def _untested(part: Part) -> str:
    try:
        part.test  # noqa: B018 - computed for its error
    except ValueError as error:
        text = sentence(str(error)).rstrip(".")
        return text[:1].lower() + text[1:]
    return ""


def _weighted(part: Part) -> bool:
    cells = part.cells
    return not np.allclose(cells.weight, cells.count, rtol=1e-9) and not _equal_weights(cells)


def _equal_weights(cells: BinTable) -> bool:
    unit = cells.total / cells.n
    return bool(np.allclose(cells.weight_squares, unit * cells.weight, rtol=1e-9))


def _clusters(part: Part) -> int | None:
    if not isinstance(part.data, Binary) or part.data.group is None:
        return None
    return len(np.unique(part.data.group))


def _observed(known: Probabilities, cells: BinTable) -> Value:
    """The observed frequency; its interval is that of observed : expected, which allows for weights and clusters."""
    ratio = known.ratio
    if ratio is not None and ratio.low is not None and ratio.high is not None:
        return Value(known.base_rate, ratio.low * known.predicted, min(ratio.high * known.predicted, 1.0))
    size = cells.population.effective_n
    return rate_interval(known.base_rate * size, size)


def _scores(cells: BinTable) -> dict[str, Any]:
    """What kind of scores these are: one, only 0 and 1, and how many are certain."""
    zero, one = cells.high == 0, cells.low == 1
    unit = cells.n / cells.total
    found: dict[str, Any] = {
        "certain": float(cells.weight[zero | one].sum()) / cells.total,
        "impossible_events": round(unit * float(cells.observed[zero].sum())),
        "impossible_others": round(unit * float((cells.weight - cells.observed)[one].sum())),
    }
    if len(cells) == 1 and cells.low[0] == cells.high[0]:
        found["only_score"] = float(cells.low[0])
    if np.all(zero | one):
        found["decisions"] = Decisions(*_decided(cells.take(one)), *_decided(cells.take(zero)))
    return found


def _decided(cells: BinTable) -> tuple[int, Value | None]:
    if not len(cells):
        return 0, None
    size = cells.population.effective_n
    return round(float(cells.count.sum())), rate_interval(size * float(cells.observed.sum()) / cells.total, size)


def _undetected(cells: BinTable) -> float:
    """The mean gap that the test finds in four of five samples: about three standard errors."""
    p = np.clip(cells.predicted_mean, 0.0, 1.0)
    error = math.sqrt(float(cells.weight_squares @ (p * (1 - p)))) / cells.total
    return DETECTED * error


def _largest_gap(diagram: Reliability) -> Bin | None:
    """The score whose frequency is farthest from it, of those beyond chance, where scores are few."""
    bins = diagram.bins.get("linear", ())
    if diagram.distinct is None or not 1 < diagram.distinct <= FEW_SCORES:
        return None
    wrong = [one for one in bins if one.observed.excludes(one.predicted)]
    return max(wrong, key=lambda one: abs(one.observed.value - one.predicted)) if wrong else None
