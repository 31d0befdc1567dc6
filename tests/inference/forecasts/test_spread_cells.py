"""Sums of squared z-scores per distinct spread."""

import numpy as np
import pytest

import calibrant as cal
from calibrant.inference.forecasts.spread_cells import SpreadCells
from tests.inference.spreads import forecasts


def test_cells_of_rows_and_of_their_table_agree():
    rng = np.random.default_rng(0)
    data = forecasts(rng, 400)
    rounded = cal.Gaussian(data.y_true, data.mean, np.maximum(data.std.round(1), 0.1))
    for one in (data, rounded):
        rows = SpreadCells.of(one, needed_by="test")
        table = SpreadCells.of(cal.BinTable.of(one, cal.table.Distinct()), needed_by="test")
        for name in ("sigma", "share", "share_squares", "second", "fourth"):
            np.testing.assert_allclose(getattr(rows, name), getattr(table, name), rtol=1e-9)
        assert np.all(table.largest >= rows.largest * (1 - 1e-9))  # a bound where rows are not known
        assert np.all(table.largest_fourth >= rows.largest_fourth * (1 - 1e-9))
    assert SpreadCells.of(data, needed_by="test").mean_square == pytest.approx(cal.mean_squared_z(data))


def test_outputs_of_one_row_are_a_cluster_and_rows_without_weight_are_left_out():
    rng = np.random.default_rng(1)
    y = rng.normal(size=(50, 3))
    wide = SpreadCells.of(cal.Gaussian(y, np.zeros_like(y), np.ones_like(y)), needed_by="test")
    assert wide.cluster is not None
    assert np.bincount(wide.cluster).tolist() == [3] * 50
    assert wide.largest_share == pytest.approx((y**2).sum(axis=1).max() / (y**2).sum())
    weight = np.where(np.arange(60) < 50, 2.0, 0.0)
    data = forecasts(rng, 60, weight=weight)
    alone = SpreadCells.of(data.take(np.arange(50)), needed_by="test")
    some = SpreadCells.of(data, needed_by="test")
    assert (some.effective_n, some.mean_square) == pytest.approx((50, alone.mean_square))
