"""Totals of periods, from rows, tables and clusters."""

import numpy as np
import pytest

import calibrant as cal
from calibrant.reporting.sections.period_totals import EventTotals, SpreadTotals
from tests.reporting.sections.worlds import binary

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
