"""One rule decides, and it cannot fail open."""

import numpy as np
import pytest

import calibrant as cal
from calibrant.inference import Gate, PitInversion, headline_error, headline_errors
from calibrant.results import Estimate, Interval, Significance


def estimate(value=0.03, low=0.01, high=0.05, side="two-sided"):
    return Estimate(value, name="Error", method="m", n=9, interval=Interval(low, high, 0.95, "m", side=side))


@pytest.mark.parametrize(
    ("by", "passes", "fails"), [("lower", 0.01, 0.0099), ("estimate", 0.03, 0.0299), ("upper", 0.05, 0.0499)]
)
def test_the_number_that_decides(by, passes, fails):
    assert Gate(passes, by=by).failures({"a": estimate()}) == []
    (sentence,) = Gate(fails, by=by).failures({"a": estimate(), "b": estimate(0.0, 0.0, 0.0)})
    assert sentence.startswith("a: ")
    assert f"is above {fails:g}" in sentence


def test_a_test_fails_below_alpha():
    found = Significance(3.0, 0.04, "some test", 100)
    assert Gate(0.04).failures({"test": found}) == []
    assert Gate(0.05).failures({"test": found}) == ["test: p = 0.04 (some test) is below 0.05"]


@pytest.mark.parametrize("limit", [float("nan"), -0.1, 1.0, 5.0, float("inf")])
def test_impossible_limits_are_refused(limit):
    with pytest.raises(cal.InvalidPredictions, match="limit of a gate"):
        Gate(limit)


def test_an_unknown_end_is_refused():
    with pytest.raises(cal.InvalidPredictions, match="decides by"):
        Gate(0.02, by="middle")


NAN = float("nan")
UNDECIDABLE = {
    "NaN estimate": ("estimate", estimate(NAN)),
    "NaN lower end": ("lower", estimate(low=NAN)),
    "NaN upper end": ("upper", estimate(high=NAN)),
    "no interval": ("lower", Estimate(0.5, name="Error", method="m", n=9)),
    "an upper bound has no lower end": ("lower", estimate(0.5, 0.0, 0.9, side="upper")),
    "a lower bound has no upper end": ("upper", estimate(0.5, 0.4, np.inf, side="lower")),
    "NaN p-value": ("lower", Significance(1.0, NAN, "some test", 9)),
}


@pytest.mark.parametrize("case", UNDECIDABLE)
def test_what_cannot_be_decided_does_not_pass(case):
    by, found = UNDECIDABLE[case]
    with pytest.raises(cal.InvalidPredictions, match="a: "):
        Gate(0.02, by=by).failures({"a": found})


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
    data = next(tasks(1.0))
    parts = {k: data.take(np.arange(k, 1500, 5)) for k in range(5)}
    adjusted, alone = headline_errors(parts), headline_errors(parts, adjusted=False)
    assert {found.interval.level for found in adjusted.values()} == {1 - 0.05 / 5}
    assert {found.interval.level for found in alone.values()} == {0.95}
    for level in (float("nan"), 0.0, 5.0):
        with pytest.raises(cal.InvalidPredictions, match="level must lie"):
            headline_errors(parts, level=level)


def test_control_characters_in_names_of_groups_are_written_out():
    (sentence,) = Gate(0.0).failures({"\x1b[2Jgroup": estimate()})
    assert sentence.startswith("\\x1b[2Jgroup: ")
