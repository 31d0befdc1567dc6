"""The search over slices in a few of the worlds of its reproduction."""

import numpy as np
import pytest

from reproduce import slices


@pytest.mark.parametrize(("confirm", "cluster_rows"), [(False, 1), (True, 1), (False, 10)])
def test_a_wrong_combination_of_20_columns_is_found(confirm, cluster_rows):
    found = slices.cell("uniform", 0.15, 20_000, confirm, cluster_rows, 1)
    assert found["combination_found"] == 1
    assert found["flagged"] == 1


def test_the_worlds_are_right_in_every_column():
    data, by = slices.world(np.random.default_rng(0), 200_000, "rare", 0.15)
    assert len(by) == slices.COLUMNS
    for name in ("names 2", "names 6"):
        for value in np.unique(by[name]):
            rows = by[name] == value
            assert abs((data.y_prob - data.y_true)[rows].mean()) < 0.012
    rows = (by["names 2"] == "a") & (by["names 6"] == "a")
    assert (data.y_true - data.y_prob)[rows].mean() == pytest.approx(0.15, abs=0.02)


def test_rows_of_a_cluster_share_luck_and_columns_and_are_calibrated():
    data, by = slices.world(np.random.default_rng(0), 50_000, "uniform", 0.0, 10)
    assert all(np.all(by[name].reshape(-1, 10) == by[name].reshape(-1, 10)[:, :1]) for name in slices.SHARED_COLUMNS)
    residual = (data.y_true - data.y_prob).reshape(-1, 10)
    assert abs(residual.mean()) < 0.01
    assert (residual.sum(axis=1) ** 2).mean() > 2 * (residual**2).sum(axis=1).mean()


def test_calibrated_models_are_not_flagged_and_rows_are_written(tmp_path, monkeypatch):
    monkeypatch.setattr(slices, "RESULTS", tmp_path)
    monkeypatch.setattr(slices, "cell", lambda *task: {"flagged": 0, "combination_found": 0, "column_flagged": 0})
    assert slices.main(1).count("\n") == 2 + 24
    assert "20 columns" in slices.seconds(2000, 10)
