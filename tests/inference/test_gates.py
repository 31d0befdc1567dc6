"""One rule decides, and it cannot fail open."""

from functools import partial

import numpy as np
import pytest

import calibrant as cal
from calibrant.inference import Decision, Gate, PitInversion, headline_error, headline_errors
from calibrant.inference.gates import weak_limits
from calibrant.results import Estimate, Interval, Significance

NAN = float("nan")


def estimate(value=0.03, low=0.01, high=0.05, side="two-sided"):
    return Estimate(value, name="Error", method="m", n=9, interval=Interval(low, high, 0.95, "m", side=side))


@pytest.mark.parametrize("by", ["lower", "upper"])
@pytest.mark.parametrize(
    ("limit", "result"),
    [(0.0099, "failed"), (0.01, "undecided"), (0.0499, "undecided"), (0.05, "passed")],
)
def test_the_whole_interval_decides(by, limit, result):
    assert Gate(limit, by=by).decide(estimate()).result == result


@pytest.mark.parametrize(("limit", "result"), [(0.03, "passed"), (0.0299, "failed")])
def test_the_estimate_decides_if_asked(limit, result):
    assert Gate(limit, by="estimate").decide(estimate()).result == result


@pytest.mark.parametrize(
    ("low", "high", "result"),
    [
        (0.9, 1.1, "passed"),
        (0.8, 1.25, "passed"),
        (0.7, 1.1, "undecided"),
        (0.9, 1.3, "undecided"),
        (1.26, 1.3, "failed"),
        (0.5, 0.79, "failed"),
    ],
)
def test_a_range_has_two_sides(low, high, result):
    assert Gate((0.8, 1.25), of="oe").decide(estimate(1.0, low, high)).result == result


def test_sentences_name_both_ends_and_the_proof():
    words = {limit: Gate(limit).decide(estimate(0.02, 0.003, 0.042)).sentence for limit in (0.002, 0.02, 0.05)}
    begin = "The calibration error is between 0.3 and 4.2 points; the limit is"
    assert words[0.02] == (
        f"Gate: too few rows to decide. {begin} 2 points (not shown to be above it, not shown to be below it)."
    )
    assert words[0.002] == f"Gate: failed. {begin} 0.2 points (shown to be above it)."
    assert words[0.05] == f"Gate: passed. {begin} 5 points (shown to be below it)."
    assert Gate(0.02, by="estimate").decide(estimate()).sentence == (
        "Gate: failed. The calibration error is estimated at 3 points; the limit is 2 points "
        "(the estimate alone decides)."
    )
    relative = Gate(0.25, of="relative").decide(estimate(0.3, 0.2, 0.4)).sentence
    assert "relative to the base rate is between 20 and 40 %; the limit is 25 %" in relative


def test_of_one_end_the_other_side_is_never_shown():
    bound = estimate(0.5, 0.4, np.inf, side="lower")
    assert [Gate(limit).decide(bound).result for limit in (0.3, 0.9)] == ["failed", "undecided"]
    assert "at least 40 points, with no upper end" in Gate(0.3).decide(bound).sentence
    bound = estimate(0.5, 0.0, 0.6, side="upper")
    assert [Gate(limit).decide(bound).result for limit in (0.3, 0.9)] == ["undecided", "passed"]
    anything = Gate((0.8, 1.2), of="slope").decide(estimate(1.0, -np.inf, np.inf))
    assert (anything.result, "calibration slope is unknown;" in anything.sentence) == ("undecided", True)


def test_constant_predictions_of_rows_without_events_do_not_pass():
    data = cal.Binary(np.zeros(30), np.full(30, 0.1))
    gates = [Gate(0.02), Gate(0.25, of="relative"), Gate((0.8, 1.25), of="oe")]
    assert [gate.decide(gate.estimate(data)).result for gate in gates] == ["undecided", "undecided", "undecided"]
    with pytest.raises(cal.InvalidPredictions):
        Gate((0.8, 1.25), of="oe").estimate(cal.Binary(np.zeros(30), np.zeros(30)))


def test_the_worst_of_several_checks_is_the_result():
    good, few, bad = estimate(0.0, 0.0, 0.01), estimate(), estimate(0.1, 0.05, 0.2)
    for groups, result, code in (
        ({"a": good}, "passed", 0),
        ({"a": good, "b": few}, "undecided", 3),
        ({"a": few, "b": bad, "c": good}, "failed", 1),
    ):
        decision = Gate(0.02).decide(good, groups)
        assert (decision.result, decision.exit_code) == (result, code)
    assert decision.lines == [
        "Gate: failed. Of 4 checks: 1 failed, 1 too few rows to decide, 2 passed.",
        "  Failed. b: the calibration error is between 5 and 20 points; the limit is 2 points (shown to be above it).",
        "  Passed. The calibration error is between 0 and 1 points; the limit is 2 points (shown to be below it).",
    ]
    plain = decision.to_dict()
    assert (plain["result"], plain["by"], plain["limits"]) == ("failed", "lower", {"error": 0.02})
    assert [check["group"] for check in plain["checks"]] == [None, "a", "b", "c"]
    with pytest.raises(cal.InvalidPredictions, match="without any check"):
        Decision(())


def test_of_many_failures_some_are_listed_and_the_rest_counted():
    decision = Gate(0.02).decide(estimate(), {name: estimate(0.1, 0.05, 0.2) for name in range(1000)})
    assert len(decision.lines) == 22
    assert decision.lines[-1] == "  980 more: failed."
    assert len(decision.to_dict()["checks"]) == 1001


def test_a_group_called_all_rows_or_nothing_is_not_all_rows():
    bad = estimate(0.1, 0.05, 0.2)
    assert Gate(0.02).decide(estimate(0, 0, 0), {"": bad}).sentence.count(": the calibration error") == 1


def test_what_is_accepted_depends_on_what_needs_proof():
    accepted = {
        by: [Gate(limit, by=by).accepts(Gate(limit, by=by).decide(estimate())) for limit in (0.005, 0.02, 0.1)]
        for by in ("lower", "upper")
    }
    assert accepted == {"lower": [False, True, True], "upper": [False, False, True]}


def test_a_test_fails_below_alpha():
    found = Significance(3.0, 0.04, "some test", 100)
    assert Gate(0.04).decide(found).result == "passed"
    assert Gate(0.05).decide(found).sentence == "Gate: failed. p = 0.04 (some test) is below 0.05."


@pytest.mark.parametrize("limit", [float("nan"), -0.1, 1.0, 5.0, float("inf")])
def test_impossible_limits_are_refused(limit):
    with pytest.raises(cal.InvalidPredictions, match="limit of a gate"):
        Gate(limit)


@pytest.mark.parametrize(
    ("of", "limit", "message"),
    [
        ("oe", 0.8, "must be a range"),
        ("error", (0.1, 0.2), "must be one number"),
        ("oe", (1.2, 0.8), "rising pair"),
        ("oe", (NAN, 1.2), "rising pair"),
        ("slope", (0.8, float("inf")), "rising pair"),
        ("coverage", (0.8, 0.9), "coverage:LEVEL"),
        ("coverage:2", (0.8, 0.9), r"level in \(0, 1\)"),
        ("coverage:x", (0.8, 0.9), r"level in \(0, 1\)"),
        ("oe:0.9", (0.8, 0.9), "can limit"),
        ("brier", 0.1, "can limit error, relative, oe, slope, coverage:LEVEL, ence, not 'brier'"),
        ("relative", NAN, "limit of a gate"),
    ],
)
def test_limits_that_make_no_sense_are_refused(of, limit, message):
    with pytest.raises(cal.InvalidPredictions, match=message):
        Gate(limit, of=of)


def test_an_unknown_end_is_refused():
    with pytest.raises(cal.InvalidPredictions, match="decides by"):
        Gate(0.02, by="middle")


UNDECIDABLE = {
    "NaN estimate": ("estimate", estimate(NAN)),
    "NaN lower end": ("lower", estimate(low=NAN)),
    "NaN upper end": ("lower", estimate(high=NAN)),
    "no interval": ("lower", Estimate(0.5, name="Error", method="m", n=9)),
    "NaN p-value": ("lower", Significance(1.0, NAN, "some test", 9)),
}


@pytest.mark.parametrize("case", UNDECIDABLE)
def test_a_missing_number_is_an_error(case):
    by, found = UNDECIDABLE[case]
    with pytest.raises(cal.InvalidPredictions, match="a: "):
        Gate(0.02, by=by).decide(estimate(), {"a": found})


def rare(rate, predicted, n=20_000):
    rng = np.random.default_rng(8)
    p = rate * (0.5 + rng.random(n))
    return cal.Binary(rng.random(n) < p, predicted * p / rate)


def test_a_relative_limit_sees_what_an_absolute_one_cannot():
    good, sixfold, never = rare(0.016, 0.016, 80_000), rare(0.0016, 0.0096), rare(0.0016, 0.0)
    relative = Gate(0.4, of="relative")
    for data, result in ((good, "passed"), (sixfold, "failed"), (never, "failed")):
        assert Gate(0.02).decide(Gate(0.02).estimate(data)).result == "passed"
        assert relative.decide(relative.estimate(data)).result == result
    (sentence,) = weak_limits([Gate(0.02), relative], never)
    assert "not below the share of events" in sentence
    assert "--limit relative=0.25" in sentence
    assert weak_limits([Gate(0.0005), relative], never) == ()
    (sentence,) = weak_limits([Gate(0.02)], cal.Binary(1 - never.y_true, 1 - never.y_prob))
    assert "the share of rows without the event" in sentence


def test_a_relative_error_without_events_has_no_upper_end():
    gate = Gate(0.5, of="relative")
    found = gate.estimate(cal.Binary(np.zeros(500), np.full(500, 0.001)))
    assert found.value == found.interval.high == np.inf
    assert gate.decide(found).result == "undecided"
    assert Gate(0.5, of="relative", by="estimate").decide(found).result == "failed"


def test_each_limit_has_the_interval_of_its_own_method():
    binary = next(tasks(1.0))
    forecast = next(task for task in tasks(1.0) if isinstance(task, cal.Gaussian))
    pairs = [
        (Gate((0.8, 1.2), of="oe"), cal.observed_expected, binary),
        (Gate((0.8, 1.2), of="slope"), cal.calibration_slope, binary),
        (Gate((0.7, 0.9), of="coverage:0.8"), partial(cal.coverage, nominal=0.8), forecast),
        (Gate(0.1, of="ence"), cal.ence, forecast),
    ]
    for gate, estimator, data in pairs:
        assert gate.estimate(data, level=0.9).interval == cal.interval(estimator, data, level=0.9).interval
        assert gate.decide(gate.estimate(data)).result == "passed"
        other = forecast if data is binary else binary
        with pytest.raises(cal.InvalidPredictions, match=f"A limit of {gate.of} needs"):
            gate.estimate(other)
    assert (
        "coverage of 80 % prediction intervals is between"
        in pairs[2][0].decide(pairs[2][0].estimate(forecast)).sentence
    )
    for data in tasks(1.0):
        if isinstance(data, cal.Quantiles):
            with pytest.raises(cal.InvalidPredictions, match="not only quantiles"):
                Gate(0.1, of="ence").estimate(data)
        if isinstance(data, cal.Multiclass):
            with pytest.raises(cal.InvalidPredictions, match="probability of an event"):
                Gate(0.1, of="relative").estimate(data)


def test_ends_that_show_a_group_to_be_bad_hold_for_all_groups():
    data = next(tasks(1.3))
    parts = {k: data.take(np.arange(k, 1500, 5)) for k in range(5)}
    relative = Gate(0.1, of="relative")
    for name, found in relative.estimates(parts).items():
        plain, wider = (relative.estimate(parts[name], level=level).interval for level in (0.95, 0.99))
        assert (found.interval.low, found.interval.high) == (min(plain.low, wider.low), plain.high)
    ratio = Gate((0.8, 1.2), of="oe")
    assert {found.interval.level for found in ratio.estimates(parts).values()} == {1 - 0.05 / 5}


def tasks(factor):
    rng = np.random.default_rng(3)
    p, std = rng.random(1500), rng.lognormal(0, 0.3, 1500)
    error = factor * std * rng.normal(size=1500)
    probs = rng.dirichlet([1, 1, 1], 1500)
    skewed = probs**factor / (probs**factor).sum(axis=1, keepdims=True)
    drawn = (skewed.cumsum(axis=1) < rng.random(1500)[:, None]).sum(axis=1)
    yield cal.Binary(rng.random(1500) < p**factor, p)
    yield cal.BinTable.of(cal.Binary(rng.random(1500) < p**factor, p), cal.table.HybridGrid())
    yield cal.Multiclass(drawn, probs)
    yield cal.Gaussian(error, 0 * std, std)
    yield cal.Samples(error, std[:, None] * rng.normal(size=(1500, 40)))
    levels = np.arange(1, 20) / 20
    from scipy.special import ndtri

    yield cal.Quantiles(error, levels, std[:, None] * ndtri(levels))


def test_every_task_has_an_error_with_an_interval_that_holds():
    for good, bad in zip(tasks(1.0), tasks(3.0), strict=True):
        honest, off = headline_error(good), headline_error(bad)
        assert 0 <= honest.interval.low < 0.01, good
        assert off.interval.low > 0.05, bad
        assert honest.interval.high < 0.2
        assert off in off.interval
    score = np.random.default_rng(0).random(3000)
    off = headline_error(cal.PositiveUnlabeled(score[:400], score[400:], prior=0.5))
    assert off.interval.low > 0.05


def test_forecasts_have_the_interval_that_everyone_is_given():
    good = next(task for task in tasks(1.0) if isinstance(task, cal.Gaussian))
    found = headline_error(good, level=0.9)
    assert found.interval == cal.interval(cal.interval_error, good, level=0.9).interval
    assert found.interval.method == repr(PitInversion())


@pytest.mark.no_cover
def test_intervals_of_coverage_hold_at_the_levels_of_many_groups():
    good, bad = (next(task for task in tasks(f) if isinstance(task, cal.Gaussian)) for f in (1.0, 3.0))
    highs = [headline_error(good, level=level).interval.high for level in (0.9, 0.95, 0.999, 0.99999)]
    lows = [headline_error(bad, level=level).interval.low for level in (0.9, 0.95, 0.999, 0.99999)]
    assert highs == sorted(set(highs))
    assert lows == sorted(set(lows), reverse=True)


def test_clusters_widen_the_interval_of_coverage():
    rng = np.random.default_rng(0)
    y, cluster = np.repeat(rng.normal(size=60), 25), np.repeat(np.arange(60), 25)  # 60 outcomes, each 25 times
    zero, one = np.zeros(1500), np.ones(1500)
    assert headline_error(cal.Gaussian(y, zero, one, group=cluster)).interval.low == 0
    assert headline_error(cal.Gaussian(y, zero, one)).interval.low > 0.01


def test_a_table_of_spreads_has_no_coverage():
    table = cal.BinTable.of(next(task for task in tasks(1.0) if isinstance(task, cal.Gaussian)), cal.table.LogGrid())
    with pytest.raises(cal.InvalidPredictions, match="needs the rows"):
        headline_error(table)


def test_groups_share_the_risk_of_a_false_alarm():
    data = next(tasks(2.0))
    parts = {k: data.take(np.arange(k, 1500, 5)) for k in range(5)}
    adjusted, alone = headline_errors(parts), headline_errors(parts, adjusted=False)
    for name, part in parts.items():
        wider = headline_error(part, level=1 - 0.05 / 5).interval
        bounds, plain = adjusted[name].interval, alone[name].interval
        assert (bounds.low, bounds.high) == (wider.low, plain.high)
        assert bounds.low < plain.low
    for level in (float("nan"), 0.0, 5.0):
        with pytest.raises(cal.InvalidPredictions, match="level must lie"):
            headline_errors(parts, level=level)


def test_control_characters_in_names_of_groups_are_written_out():
    decision = Gate(0.0).decide(estimate(), {"\x1b[2Jgroup": estimate()})
    assert decision.checks[1].sentence.startswith("\\x1b[2Jgroup: ")
