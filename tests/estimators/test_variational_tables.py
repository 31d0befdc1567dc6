"""The variational estimate from tables, without the rows, and over the synthetic worlds of the paper."""

import numpy as np
import pytest

import calibrant as cal
from calibrant.table.binning import Distinct, HybridGrid
from calibrant.table.bintable import BinTable


def world(rng, n, kind="over"):
    f = rng.beta(0.5, 0.5, n)
    logit = np.log(f / (1 - f))
    h = {
        "calibrated": f,
        "over": 1 / (1 + np.exp(-0.4 * logit - 0.3)),
        "under": 1 / (1 + np.exp(-4 * logit - 1)),
        "shifted": np.clip(f + 0.02, 0, 1),
    }[kind]
    return cal.Binary(rng.random(n) < h, f)


def test_a_fine_table_gives_nearly_what_the_rows_give():
    data = world(np.random.default_rng(0), 20_000)
    for cells in (Distinct(), HybridGrid(2**16)):
        table = BinTable.of(data, cells)
        for norm, close in ((1, 2e-3), ("squared", 4e-4), ("kl", 2e-3)):
            rows, sums = cal.calibration_error(data, norm=norm), cal.calibration_error(table, norm=norm)
            assert sums.n == 20_000
            assert sums == pytest.approx(float(rows), abs=close)  # the folds differ, the rows are the same


def test_dealing_cells_into_folds_is_dealing_rows():
    data = world(np.random.default_rng(1), 400, "calibrated")
    rows = [cal.calibration_error(data, seed=s) for s in range(60)]
    cells = [cal.calibration_error(BinTable.of(data, Distinct()), seed=s) for s in range(60)]
    error = np.sqrt((np.var(rows) + np.var(cells)) / 60)
    assert abs(np.mean(rows) - np.mean(cells)) < 4 * error


def test_one_table_per_fold_with_weights():
    rng = np.random.default_rng(2)
    data = world(rng, 3000)
    fold, weight = rng.integers(0, 4, 3000), 1 + rng.random(3000)
    tables = [
        BinTable.of(cal.Binary(data.y_true[fold == k], data.y_prob[fold == k], weight=weight[fold == k]), Distinct())
        for k in range(4)
    ]
    found = cal.calibration_error(tables)
    assert found.n == 3000
    assert found.method.startswith("4 folds")
    assert found == pytest.approx(0.137, abs=4 * found.details["standard_error"])
    whole = cal.calibration_error(cal.Binary(data.y_true, data.y_prob, weight=weight))
    assert found.details["standard_error"] == pytest.approx(whole.details["standard_error"], rel=0.05)


def test_tables_that_cannot_serve_are_refused():
    data = world(np.random.default_rng(3), 100)
    with pytest.raises(ValueError, match="needs a fine table"):
        cal.calibration_error(BinTable.of(data, cal.EqualWidth(10)))
    weighted = BinTable.of(cal.Binary(data.y_true, data.y_prob, weight=np.linspace(1, 2, 100)), Distinct())
    with pytest.raises(ValueError, match="one per fold"):
        cal.calibration_error(weighted)
    fine = BinTable.of(data, Distinct())
    with pytest.raises(ValueError, match="at least two fine tables"):
        cal.calibration_error([fine])
    with pytest.raises(ValueError, match="has its folds already"):
        cal.calibration_error([fine, fine], bound=cal.estimators.SplitSampleBound())
    unlabeled = BinTable.of(cal.PositiveUnlabeled([0.5, 0.6], [0.1, 0.5], prior=0.3), Distinct())
    with pytest.raises(ValueError, match="no outcomes per row"):
        cal.calibration_error(unlabeled)


def test_a_million_rows_are_counted_on_the_grid_first():
    assert cal.calibration_error(world(np.random.default_rng(4), 10**6)) == pytest.approx(0.137157, abs=0.002)


@pytest.mark.parametrize(
    ("kind", "truth"), [("calibrated", 0), ("over", 0.137157), ("under", 0.131246), ("shifted", 0.018797)]
)
def test_the_mean_estimate_does_not_exceed_the_truth(kind, truth):
    rng = np.random.default_rng(5)
    found = [cal.calibration_error(world(rng, 200, kind)) for _ in range(60)]
    assert np.mean(found) <= truth + 2.5 * np.std(found) / np.sqrt(60)
    assert np.mean(found) > 0.8 * truth - 0.012
