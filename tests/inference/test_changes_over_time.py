"""Periods and their totals, and the test of a change: its formula by hand, its level, and its power."""

import datetime

import numpy as np
import pytest
from scipy.stats import binom

import calibrant as cal
from calibrant.data.validation import InvalidPredictions
from calibrant.inference.changes_over_time import (
    DRAWS,
    MOST,
    EventCount,
    EventTotals,
    Residuals,
    SpreadTotals,
    change_point,
    periods,
    random_signs,
    summed,
)
from tests.reporting.sections.worlds import binary

DAYS = np.datetime64("2024-12-30") + np.arange(800)


def put(values):
    return periods(values, name="when", length=len(values))


@pytest.mark.parametrize(
    ("count", "first", "last"),
    [
        (20, "2024-12-30", "2025-01-18"),
        (100, "week of 2024-12-30", "week of 2025-04-07"),
        (800, "Dec 2024", "Mar 2027"),
    ],
)
def test_the_shortest_periods_of_which_there_are_few(count, first, last):
    found = put(DAYS[:count])
    assert (found.names[0], found.names[-1]) == (first, last)
    assert len(found.names) <= MOST
    assert np.all(np.diff(found.index) >= 0)
    assert set(found.index) == set(range(len(found.names)))


def test_quarters_and_years():
    assert put(np.datetime64("2020-01-01") + np.arange(2000)).names[:2] == ["Q1 2020", "Q2 2020"]
    assert put(np.datetime64("1990-01-01") + 30 * np.arange(400)).names[0] == "1990"
    centuries = put(np.datetime64("1800-01-01") + 30 * np.arange(2800))
    assert len(centuries.names) <= MOST
    assert " to " in centuries.names[0]


@pytest.mark.parametrize(
    "values",
    [
        ["2025-03-01", "2025-01-31", "2025-01-31"],
        [datetime.date(2025, 3, 1), datetime.date(2025, 1, 31), datetime.date(2025, 1, 31)],
        [datetime.datetime(2025, 3, 1, 12), datetime.datetime(2025, 1, 31), datetime.datetime(2025, 1, 31, 23)],
        np.array(["2025-03-01T10", "2025-01-31T00", "2025-01-31T23"], dtype="datetime64[h]"),
    ],
)
def test_dates_of_every_kind(values):
    found = put(values)
    assert found.names == ["2025-01-31", "2025-03-01"]
    assert found.index.tolist() == [1, 0, 0]


def test_columns_of_pandas():
    pd = pytest.importorskip("pandas")
    assert put(pd.Series(DAYS[:3])).names == ["2024-12-30", "2024-12-31", "2025-01-01"]
    assert put(pd.period_range("2025-01", periods=3, freq="M")).names == ["2025-01-01", "2025-02-01", "2025-03-01"]


def test_numbers_by_value_or_in_steps():
    assert put([3, 1, 2]).names == ["1", "2", "3"]
    found = put(np.arange(1000))
    assert found.names[:2] == ["0 to 50", "50 to 100"]
    assert np.bincount(found.index).tolist() == [50] * 20


def test_texts_in_order_and_joined_where_too_many():
    assert put(["2025Q2", "2025Q1"]).names == ["2025Q1", "2025Q2"]
    found = put([f"sprint {k:03d}" for k in range(100)])
    assert found.names[0] == "sprint 000 to sprint 002"
    assert len(found.names) == 34


def test_missing_times_have_no_period():
    assert put(["2025-01-01", None, "2025-01-02"]).index.tolist() == [0, -1, 1]
    assert put([1.0, np.nan, 2.0]).index.tolist() == [0, -1, 1]
    assert put([None, None]).names == []


def test_a_wrong_length_names_the_column():
    with pytest.raises(InvalidPredictions, match="when"):
        periods([1, 2, 3], name="when", length=2)


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

    found = change_point(residuals(sums, drawn))
    assert found.first == by_hand(sums).argmax() + 1
    larger = sum(by_hand(column).max() >= by_hand(sums).max() for column in drawn.T)
    assert found.p_value == (1 + larger) / (DRAWS + 1)


def test_the_level_holds_whatever_the_number_of_periods():
    rng = np.random.default_rng(1)
    for size in (2, 12, 40):
        p = []
        for _ in range(200):
            sums = rng.standard_normal(size)
            p.append(change_point(residuals(sums - sums.mean(), rng.standard_normal((size, 199)))).p_value)
        assert np.mean(np.array(p) < 0.05) < 0.09


def test_nothing_to_split():
    assert change_point(residuals([0.0], np.zeros((1, 9)))) is None
    assert change_point(residuals([0.0, 0.0], np.zeros((2, 9)), variance=0.0)) is None


def test_signs_keep_clusters_together():
    parts = np.array([[1.0, 2.0], [3.0, -1.0]])
    drawn = random_signs(parts, 0)
    assert drawn.shape == (2, DRAWS)
    assert {tuple(column) for column in drawn.T} == {(4.0, 1.0), (-4.0, -1.0), (2.0, -3.0), (-2.0, 3.0)}


def test_sums_by_index():
    np.testing.assert_array_equal(summed(np.array([0, 1, 0]), np.array([[1.0], [2.0], [3.0]]), 3), [[4], [2], [0]])


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
    one, other = EventTotals.of_rows(data, INDEX, 6, 0), EventTotals.of_tables(tables, 0)
    np.testing.assert_allclose(one.p_values, other.p_values, rtol=1e-2)
    np.testing.assert_allclose(one.residuals().sums, other.residuals().sums, atol=0.2)


def test_residuals_add_up_to_nothing():
    """The constant model was fitted to all rows."""
    for columns in ({}, {"group": np.arange(1200) // 3}, {"weight": np.random.default_rng(0).random(1200)}):
        found = EventTotals.of_rows(binary(1200, slope=0.6, shift=-1.0, **columns), INDEX, 6, 0).residuals()
        assert abs(found.sums.sum()) < 0.5
        assert np.all(np.abs(found.drawn.mean(axis=1)) < 0.3 * found.drawn.std(axis=1))


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
    assert SpreadTotals.of_tables(tables, 0).residuals() is None
    assert SpreadTotals.of_tables(tables, 0).ratio(0, 2).value == pytest.approx(totals.ratio(0, 2).value, rel=1e-2)
