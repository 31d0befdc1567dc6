"""Calibration over time: totals of periods, and the test of a change: its formula by hand, its level, and its power."""

import numpy as np
import pytest
from scipy.stats import binom

import calibrant as cal
from calibrant.data.validation import InvalidPredictions
from calibrant.inference.changes_over_time import (
    DRAWS,
    EventCount,
    EventTotals,
    Residuals,
    SpreadTotals,
    change_point,
    left_out,
    random_signs,
)
from calibrant.numerics.arrays import expit
from tests.reporting.sections.worlds import binary

DAYS = np.datetime64("2025-01-01") + np.arange(365)


def year(rng, n=3000, *, change=0.0, decay=0.0, slope=1.0, shift=0.0, drift=0.0, clusters=None):
    """A year of rows: log odds that `change` in September or `decay`, scores that `drift`, dependence in clusters."""
    day = np.sort(rng.integers(0, 365, n))
    z = rng.normal(-1.5, 1.2, n) + drift * (day / 365 - 0.5)
    own = 0.0
    group = None
    if clusters is not None:
        group = rng.integers(0, clusters, n)
        own = rng.normal(0, 1.0, clusters)[group]
    y = rng.random(n) < expit(shift + slope * z + own + np.where(day >= 243, change, 0.0) + decay * day / 365)
    return cal.Binary(y, expit(z), group=group), DAYS[day]


def test_a_jump_is_found_where_it_is():
    data, days = year(np.random.default_rng(0), 12_000, change=-0.9)
    found = cal.over_time(data, days)
    assert [one.name for one in found][:2] == ["Jan 2025", "Feb 2025"]
    assert (found.change.first, found.change.p_value) == (8, 0.001)
    assert found.change.after.high < 0.8 < found.change.before.low
    assert found.found() == ["Sep 2025", "Oct 2025", "Nov 2025", "Dec 2025"]
    assert sum(one.n for one in found) == 12_000


def test_a_drift_is_found_somewhere_in_the_middle():
    data, days = year(np.random.default_rng(2), 12_000, decay=-1.2)
    found = cal.over_time(data, days)
    assert found.change.p_value == 0.001
    assert 3 <= found.change.first <= 9
    assert found.periods[-1].ratio.high < 0.8
    assert np.polyfit(np.arange(12), [one.ratio.value for one in found], 1)[0] < -0.02


def test_one_odd_period_at_an_end_is_no_change():
    """The last of 60 days deviates most, but has less than a fiftieth of the variance: a change takes two."""
    sums = np.append(np.full(59, -40.0 / 59), 40.0)
    drawn = 5 * np.random.default_rng(0).normal(size=(60, DRAWS))
    scores, information = np.full((60, 1), 25.0), np.array([[1500.0]])
    first, _ = change_point(Residuals(sums, np.full(60, 25.0), scores, information, drawn, drawn.sum(axis=0)[None]))
    assert first == 58


def test_fewer_periods_on_demand():
    data, days = year(np.random.default_rng(0), 3000)
    assert [one.name for one in cal.over_time(data, days, periods=4)] == ["Q1 2025", "Q2 2025", "Q3 2025", "Q4 2025"]
    wide, narrow = (cal.over_time(data, days, periods=4, level=level).periods[0].ratio for level in (0.99, 0.8))
    assert wide.low < narrow.low < narrow.high < wide.high
    with pytest.raises(ValueError, match="periods must be a whole number of at least 2"):
        cal.over_time(data, days, periods=1)


def test_results_are_printed():
    data, days = year(np.random.default_rng(0), 3000, change=-0.9)
    found = cal.over_time(data, days, periods=4)
    text = repr(found).splitlines()
    assert text[0].split()[:4] == ["period", "n", "observed", "expected"]
    assert text[1].startswith("Q1 2025")
    assert text[-1].startswith("Most likely change: from Q4 2025 on") or text[-1].startswith(
        "Most likely change: from Q3"
    )
    assert len(text) == 6
    assert found.to_dict()["periods"][0]["name"] == "Q1 2025"
    page = found._repr_html_()
    assert "Calibration over time" in page
    assert "Most likely change" in page


def test_multiclass_is_followed_by_its_top_label():
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(3), 600)
    data = cal.Multiclass(np.array([rng.choice(3, p=row) for row in p]), p)
    found, top = (cal.over_time(one, np.arange(600) // 200) for one in (data, data.top_label()))
    assert [one.ratio for one in found] == [one.ratio for one in top]
    with pytest.raises(TypeError, match="no events and no spread"):
        cal.over_time(cal.PositiveUnlabeled([1, 0, 0, 1], [0.2, 0.4, 0.5, 0.9], prior=0.3), [1, 2, 1, 2])


WORLDS = {
    "calibrated": {},
    "always off": {"shift": -0.7},
    "too extreme, drifting scores": {"slope": 0.6, "shift": -0.3, "drift": 2.0},
    "clusters": {"clusters": 150},
}


@pytest.mark.no_cover
@pytest.mark.parametrize("world", WORLDS)
def test_changes_are_not_found_where_there_are_none(world):
    """At a level of 5 %, at most 6 of 40 reject with a probability of 99.6 %; so for periods of a calibrated model."""
    rng = np.random.default_rng(1)
    found = [cal.over_time(*year(rng, 1200, **WORLDS[world])) for _ in range(40)]
    assert sum(one.change.p_value < 0.05 for one in found) <= 6
    if world in ("calibrated", "clusters"):
        assert sum(bool(one.found()) for one in found) <= 6


def test_forecasts():
    rng = np.random.default_rng(0)
    day = np.sort(rng.integers(0, 365, 4000))
    std = np.exp(0.3 * rng.normal(size=4000))
    noise = std * rng.standard_t(6, 4000) / np.sqrt(1.5)
    for factor, changed in ((1.0, False), (1.4, True)):
        data = cal.Gaussian(np.where(day >= 243, factor, 1.0) * noise, np.zeros(4000), std)
        found = cal.over_time(data, DAYS[day])
        assert (found.change.p_value < 0.05) == changed
    assert abs(found.change.first - 8) <= 1
    assert found.change.after.low > 1.2


def test_tables_per_period():
    data, days = year(np.random.default_rng(0), 12_000, change=-0.9)
    month = days.astype("datetime64[M]").astype(int) % 12
    tables = {f"month {k + 1}": cal.BinTable.of(data.take(month == k), cal.table.HybridGrid()) for k in range(12)}
    found = cal.over_time(cal.table.merge(list(tables.values())), tables)
    rows = cal.over_time(data, days)
    assert found.change.first == rows.change.first
    assert found.periods[0].name == "month 1"
    assert [one.observed for one in found.periods] == [one.observed for one in rows.periods]


def test_what_has_no_order():
    data = binary(40)
    with pytest.raises(InvalidPredictions, match="two periods"):
        cal.over_time(data, ["2025-01-01"] * 40)
    with pytest.raises(InvalidPredictions, match="two periods"):
        cal.over_time(data, [None] * 40)
    with pytest.raises(InvalidPredictions, match="table per period"):
        cal.over_time(cal.BinTable.of(data, cal.table.Distinct()), [1] * 40)


def test_a_period_without_events_or_expectations():
    data = cal.Binary([0, 0, 1, 0] * 10, [0.0, 0.0, 0.5, 0.5] * 10)
    found = cal.over_time(data, [1, 1, 2, 2] * 10)
    assert np.isnan(found.periods[0].ratio.value)
    assert found.periods[1].ratio.value == pytest.approx(1.0)


def residuals(sums, drawn, variance=1.0):
    size = len(sums)
    return Residuals(
        sums=np.asarray(sums, dtype=float),
        variance=np.full(size, variance),
        scores=np.full((size, 1), variance),
        information=np.array([[size * variance]]),
        drawn=drawn,
        drawn_scores=drawn.sum(axis=0, keepdims=True),
    )


def test_the_statistic_is_that_of_a_bridge():
    """With one parameter and equal variances the largest of S_k / sqrt(k (1 - k / K)) decides."""
    rng = np.random.default_rng(0)
    drawn = rng.standard_normal((10, DRAWS))
    sums = rng.standard_normal(10) + np.repeat([1.0, -1.0], [6, 4])
    sums -= sums.mean()

    def by_hand(values):
        k = np.arange(1, 10)
        bridge = np.cumsum(values - values.mean())[:-1]
        return bridge**2 / (k * (1 - k / 10))

    first, p_value = change_point(residuals(sums, drawn))
    assert first == by_hand(sums).argmax() + 1
    larger = sum(by_hand(column).max() >= by_hand(sums).max() for column in drawn.T)
    assert p_value == (1 + larger) / (DRAWS + 1)


def test_the_level_holds_whatever_the_number_of_periods():
    rng = np.random.default_rng(1)
    for size in (2, 12, 40):
        p = []
        for _ in range(200):
            sums = rng.standard_normal(size)
            p.append(change_point(residuals(sums - sums.mean(), rng.standard_normal((size, 199))))[1])
        assert np.mean(np.array(p) < 0.05) < 0.09


def test_nothing_to_split():
    assert change_point(residuals([0.0], np.zeros((1, 9)))) is None
    assert change_point(residuals([0.0, 0.0], np.zeros((2, 9)), variance=0.0)) is None


@pytest.mark.no_cover
def test_one_large_cluster_is_no_change():
    rng, changes = np.random.default_rng(4), []
    cluster = np.repeat(np.arange(31), [400] + [20] * 30)
    month = np.arange(1000) // 125  # the large cluster comes first
    for _ in range(60):
        p, common = rng.uniform(0.2, 0.8, 1000), rng.random(31)[cluster]
        y = np.where(rng.random(1000) < 0.3, common, rng.random(1000)) < p
        changes.append(cal.over_time(cal.Binary(y, p, group=cluster), month).change.p_value < 0.05)
    assert np.mean(changes) <= 0.1


def test_residuals_from_a_fit_to_the_other_clusters():
    rng = np.random.default_rng(0)
    y, weight, cluster = rng.normal(size=60), rng.uniform(1, 3, 60), np.repeat(np.arange(6), [30, 10, 5, 5, 5, 5])
    x, month = np.column_stack([np.ones(60), rng.normal(size=60)]), np.arange(60) % 4
    weighted, place = x * weight[:, None], 4 * cluster + month
    residual = weight * (y - x @ np.linalg.solve(weighted.T @ x, weighted.T @ y))
    by_cluster = np.bincount(place, residual, 24).reshape(6, 4)
    scores = np.stack([x[cluster == c].T @ residual[cluster == c] for c in range(6)])
    found = left_out(by_cluster, scores, place, cluster, weighted, x)
    other, own = cluster > 0, cluster == 0
    expected = weight * (y - x @ np.linalg.solve(weighted[other].T @ x[other], weighted[other].T @ y[other]))
    assert np.allclose(found[0, :4], np.bincount(month[own], expected[own]), rtol=1e-6)
    assert np.allclose(found[0, 4:], x[own].T @ expected[own], rtol=1e-6)


def test_signs_keep_clusters_together():
    parts = np.array([[1.0, 2.0], [3.0, -1.0]])
    drawn = random_signs(parts, 0)
    assert drawn.shape == (2, DRAWS)
    assert {tuple(column) for column in drawn.T} == {(4.0, 1.0), (-4.0, -1.0), (2.0, -3.0), (-2.0, 3.0)}


def table(p, y, **columns):
    return cal.BinTable.of(cal.Binary(y, p, **columns), cal.table.Distinct())


def test_equal_probabilities_are_binomial():
    count = EventCount.of(table(np.full(40, 0.1), np.arange(40) < 9))
    tail = binom.sf(8, 40, 0.1)
    assert count.p_value == pytest.approx(2 * tail)
    low, high = count.null_ratio()
    assert (low * 4, high * 4) == pytest.approx((binom.ppf(0.025, 40, 0.1), binom.ppf(0.975, 40, 0.1)))


@pytest.mark.no_cover
@pytest.mark.parametrize("spread", [0.3, 1.0, 3.0])
@pytest.mark.parametrize("mean", [-4.0, 0.0])
def test_different_probabilities_are_nearly_so(mean, spread):
    rng = np.random.default_rng(0)
    p = 1 / (1 + np.exp(-rng.normal(mean, spread, 150)))
    drawn = (rng.random((40_000, 150)) < p).sum(axis=1)
    for observed in np.quantile(drawn, [0.01, 0.2, 0.9, 0.995]).astype(int):
        count = EventCount.of(table(p, np.arange(150) < observed))
        exact = min(2 * min(np.mean(drawn <= observed), np.mean(drawn >= observed)), 1.0)
        assert count.p_value == pytest.approx(exact, rel=0.3, abs=0.004)


def test_dependent_rows_say_less():
    rows = table(np.full(400, 0.1), np.arange(400) < 60)
    alone, dependent = EventCount.of(rows), EventCount.of(rows, 4.0)
    assert alone.p_value < 0.01 < dependent.p_value
    assert dependent.observed / dependent.expected == pytest.approx(1.5)
    weighted = EventCount.of(table(np.full(400, 0.1), np.arange(400) < 60, weight=np.full(400, 7.0)))
    assert weighted.p_value == pytest.approx(alone.p_value)


def test_certain_predictions():
    right, wrong = (EventCount.of(table(np.array([0.0, 1.0]), [y, 1])) for y in (0, 1))
    assert (right.p_value, wrong.p_value) == (1.0, 0.0)
    assert right.null_ratio() == (1.0, 1.0)


INDEX = np.arange(1200) * 6 // 1200


def test_totals_are_sums():
    data = binary(1200)
    totals = EventTotals.of_rows(data, INDEX, 6, 0)
    for k in range(6):
        rows = k == INDEX
        assert totals.numbers(k) == pytest.approx((200, data.y_true[rows].sum(), data.y_prob[rows].sum()))
    own = cal.interval(cal.observed_expected, data.take(INDEX < 2))
    ratio = totals.ratio(0, 2)
    assert (ratio.value, ratio.low, ratio.high) == pytest.approx((float(own), own.interval.low, own.interval.high))


def test_rows_and_tables_agree():
    data = binary(1200, slope=0.7)
    tables = [cal.BinTable.of(data.take(k == INDEX), cal.table.HybridGrid()) for k in range(6)]
    one, other = EventTotals.of_rows(data, INDEX, 6, 0), EventTotals(tables, None, None, 0)
    np.testing.assert_allclose(one.p_values, other.p_values, rtol=1e-2)
    np.testing.assert_allclose(one.residuals().sums, other.residuals().sums, atol=0.2)


def test_residuals_add_up_to_nothing():
    """The constant model was fitted to all rows."""
    for columns in ({}, {"group": np.arange(1200) // 3}, {"weight": np.random.default_rng(0).random(1200)}):
        found = EventTotals.of_rows(binary(1200, slope=0.6, shift=-1.0, **columns), INDEX, 6, 0).residuals()
        assert abs(found.sums.sum()) < 0.5
        assert np.all(np.abs(found.drawn.mean(axis=1)) < 0.3 * found.drawn.std(axis=1))


def test_scores_of_one_value_have_a_constant_and_no_slope():
    data = cal.Binary(np.arange(1200) % 2, np.full(1200, 0.3))
    assert EventTotals.of_rows(data, INDEX, 6, 0).residuals().sums == pytest.approx(np.zeros(6), abs=1e-8)


def test_no_model_without_both_outcomes():
    assert EventTotals.of_rows(cal.Binary(np.zeros(1200), np.full(1200, 0.1)), INDEX, 6, 0).residuals() is None
    certain = cal.Binary(np.arange(1200) % 2, np.arange(1200) % 2)
    assert EventTotals.of_rows(certain, INDEX, 6, 0).residuals() is None


def test_spreads():
    rng = np.random.default_rng(0)
    data = cal.Gaussian(1.2 * rng.normal(size=1200), np.zeros(1200), np.ones(1200))
    totals = SpreadTotals.of_rows(data, INDEX, 6, 0)
    n, observed, expected = totals.numbers(2)
    assert (n, expected) == (200, 200)
    assert observed == pytest.approx(200 * float(cal.mean_squared_z(data.take(INDEX == 2))))
    assert totals.ratio(0, 6).value == pytest.approx(float(cal.scale_factor(data)))
    assert totals.null(0)[0] < 1 < totals.null(0)[1]
    assert abs(totals.residuals().sums.sum()) < 1e-9
    tables = [cal.BinTable.of(data.take(k == INDEX), cal.table.LogGrid()) for k in range(6)]
    assert SpreadTotals(tables, None, None, 0).residuals() is None
    assert SpreadTotals(tables, None, None, 0).ratio(0, 2).value == pytest.approx(totals.ratio(0, 2).value, rel=1e-2)
