"""Cross-fitting: rows and tables in folds, and maps that never saw the rows they are applied to."""

from typing import ClassVar

import numpy as np
import pytest
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression

import calibrant as cal
from calibrant.estimators.cross_fitting import (
    binary_rows,
    multiclass_rows,
    recalibrated,
    recalibrator_name,
    table_cells,
    tables_by_fold,
)
from calibrant.table.binning import Distinct, HybridGrid
from calibrant.table.bintable import BinTable
from tests.estimators.worlds import Fixed, over_world, paper_world
from tests.numerics.worlds import draw_classes


def test_groups_stay_in_one_fold_and_count_as_units():
    rng = np.random.default_rng(13)
    group = np.repeat(np.arange(100), 10)
    f = np.repeat(rng.random(100), 10)
    y = np.repeat(rng.random(100) < f[::10], 10)  # ten copies of each row
    data = cal.Binary(y, f, group=group)
    held = binary_rows(data, [1.0] * 5, 0)
    assert all(len(set(held.fold[held.cluster == g])) == 1 for g in range(100))
    copies, blind = cal.variational_error(data), cal.variational_error(cal.Binary(y, f))
    assert copies.details["standard_error"] > 2.5 * blind.details["standard_error"]
    assert blind > copies + 0.02  # copies in other folds betray the outcome


def test_weights_count_and_rows_of_no_weight_do_not():
    rng = np.random.default_rng(14)
    f = rng.random(400)
    y = (rng.random(400) < f).astype(int)
    w = np.where(f > 0.5, 1.0, 0.0)
    some = cal.variational_error(cal.Binary(y, f, weight=w), recalibrator=Fixed(lambda p: p**2))
    only = cal.variational_error(y[f > 0.5], f[f > 0.5], recalibrator=Fixed(lambda p: p**2))
    assert some == pytest.approx(float(only), abs=1e-12)
    twice = cal.Binary(np.append(y, y), np.append(f, f))
    double = cal.variational_error(cal.Binary(y, f, weight=2 * np.ones(400)), recalibrator=Fixed(lambda p: p**2))
    assert double == pytest.approx(float(cal.variational_error(twice, recalibrator=Fixed(lambda p: p**2))), abs=1e-12)


def test_any_scikit_learn_classifier_and_any_map_can_recalibrate():
    data = over_world(np.random.default_rng(15), 2000)
    for recalibrator in (LogisticRegression(), cal.recalibrate.Isotonic(), cal.recalibrate.Platt()):
        assert 0.11 < cal.variational_error(data, recalibrator=recalibrator) < 0.16
    with pytest.raises(TypeError, match="fit and predict_proba"):
        cal.variational_error(data, recalibrator="isotonic")


def test_cross_fitted_isotonic_agrees_with_scikit_learns():
    rng = np.random.default_rng(16)
    data = over_world(rng, 400)
    held = binary_rows(data, [1.0] * 5, [0, 0])
    f, y, g = held.predicted[:, 0], held.outcome[:, 0], np.empty(400)
    for k in range(5):
        own = held.fold == k
        g[own] = IsotonicRegression(y_min=0, y_max=1, out_of_bounds="clip").fit(f[~own], y[~own]).predict(f[own])
    ours = cal.variational_error(data, norm="squared", recalibrator=cal.recalibrate.Isotonic())
    assert ours == pytest.approx(((f - y) ** 2 - (g - y) ** 2).mean(), abs=2e-3)


def test_a_class_missing_from_a_training_fold_is_no_obstacle():
    rng = np.random.default_rng(17)
    f = rng.dirichlet(np.ones(4), 60)
    labels = np.where(np.arange(60) == 0, 3, rng.integers(0, 3, 60))
    data = cal.Multiclass(labels, f)
    assert np.isfinite(cal.variational_error(data))
    assert np.isfinite(cal.variational_error(data, recalibrator=LogisticRegression()))


@pytest.mark.no_cover
def test_a_fine_table_gives_nearly_what_the_rows_give():
    data = paper_world(np.random.default_rng(0), 20_000)
    for cells in (Distinct(), HybridGrid(2**16)):
        table = BinTable.of(data, cells)
        for norm, close in ((1, 2e-3), ("squared", 4e-4), ("kl", 2e-3)):
            rows, sums = cal.variational_error(data, norm=norm), cal.variational_error(table, norm=norm)
            assert sums.n == 20_000
            assert sums == pytest.approx(float(rows), abs=close)  # the folds differ, the rows are the same


@pytest.mark.no_cover
def test_dividing_cells_into_folds_is_dividing_rows():
    data = paper_world(np.random.default_rng(1), 400, "calibrated")
    rows = [cal.variational_error(data, seed=s) for s in range(60)]
    cells = [cal.variational_error(BinTable.of(data, Distinct()), seed=s) for s in range(60)]
    error = np.sqrt((np.var(rows) + np.var(cells)) / 60)
    assert abs(np.mean(rows) - np.mean(cells)) < 4 * error


def test_one_table_per_fold_with_weights():
    rng = np.random.default_rng(2)
    data = paper_world(rng, 3000)
    fold, weight = rng.integers(0, 4, 3000), 1 + rng.random(3000)
    tables = [
        BinTable.of(cal.Binary(data.y_true[fold == k], data.y_prob[fold == k], weight=weight[fold == k]), Distinct())
        for k in range(4)
    ]
    found = cal.variational_error(tables)
    assert found.n == 3000
    assert found.method.startswith("4 folds")
    assert found == pytest.approx(0.137, abs=4 * found.details["standard_error"])
    whole = cal.variational_error(cal.Binary(data.y_true, data.y_prob, weight=weight))
    assert found.details["standard_error"] == pytest.approx(whole.details["standard_error"], rel=0.05)


def test_tables_that_cannot_serve_are_refused():
    data = paper_world(np.random.default_rng(3), 100)
    with pytest.raises(ValueError, match="needs a fine table"):
        cal.variational_error(BinTable.of(data, cal.EqualWidth(10)))
    weighted = BinTable.of(cal.Binary(data.y_true, data.y_prob, weight=np.linspace(1, 2, 100)), Distinct())
    with pytest.raises(ValueError, match="one per fold"):
        cal.variational_error(weighted)
    fine = BinTable.of(data, Distinct())
    with pytest.raises(ValueError, match="at least two fine tables"):
        cal.variational_error([fine])
    with pytest.raises(ValueError, match="has its folds already"):
        cal.variational_error([fine, fine], bound=cal.estimators.SplitSampleBound())
    unlabeled = BinTable.of(cal.PositiveUnlabeled([0.5, 0.6], [0.1, 0.5], prior=0.3), Distinct())
    with pytest.raises(ValueError, match="no outcomes per row"):
        cal.variational_error(unlabeled)


def test_a_million_rows_are_counted_on_the_grid_first():
    assert cal.variational_error(paper_world(np.random.default_rng(4), 10**6)) == pytest.approx(0.137157, abs=0.002)


class Memory:
    """A map that remembers the scores it was fitted on and applied to."""

    seen: ClassVar[list] = []

    def fit(self, scores, y, sample_weight=None):
        self.scores, self.weight = scores[:, 0], sample_weight
        return self

    def predict_proba(self, scores):
        self.seen.append((self.scores, scores[:, 0], self.weight))
        return scores[:, 0]


def test_no_map_is_applied_to_a_row_it_was_fitted_on():
    rng = np.random.default_rng(22)
    data = cal.Binary(rng.integers(0, 2, 100), rng.random(100), weight=rng.random(100))
    rows = binary_rows(data, [1.0] * 4, 0)
    Memory.seen.clear()
    fitted = recalibrated(rows, Memory())
    assert np.array_equal(fitted.recalibrated, rows.predicted)
    assert len(Memory.seen) == 4
    for train, test, weight in Memory.seen:
        assert not set(train) & set(test)
        assert len(train) + len(test) == 100
        assert len(weight) == len(train)


def test_folds_that_are_no_target_keep_their_probabilities():
    data = over_world(np.random.default_rng(23), 500)
    rows = binary_rows(data, [1.0] * 5, 0)
    for recalibrator in (None, Fixed(lambda p: p**2)):
        fitted = recalibrated(rows, recalibrator, targets=[4])
        changed = (fitted.recalibrated != rows.predicted)[:, 0]
        assert changed[rows.fold == 4].any()
        assert not changed[(rows.fold != 4) & (rows.predicted[:, 0] > 0)].any() or recalibrator is None


def test_rows_keep_their_numbers_and_rows_without_weight_are_gone():
    weight = np.array([1.0, 0.0, 2.0, 0.5, 0.0, 1.0])
    data = cal.Binary([0, 1, 1, 0, 0, 1], [0.1, 0.2, 0.3, 0.4, 0.5, 0.6], weight=weight)
    rows = binary_rows(data, [1.0, 1.0], 0)
    assert rows.row.tolist() == [0, 2, 3, 5]
    assert rows.n == 4
    assert rows.predicted[:, 0].tolist() == [0.1, 0.3, 0.4, 0.6]
    assert rows.weight_squares.tolist() == [1.0, 4.0, 0.25, 1.0]
    assert rows.information.sum() == pytest.approx(4.5**2 / 6.25)  # the effective number of rows
    some = rows.take(rows.weight > 0.75)
    assert some.row.tolist() == [0, 2, 5]


def test_probabilities_of_several_classes_are_divided_by_their_sum():
    p = np.array([[0.2, 0.3, 0.5005], [0.5, 0.25, 0.25]])
    rows = multiclass_rows(cal.Multiclass([2, 0], p), [1.0, 1.0], 0)
    assert rows.predicted.sum(axis=1) == pytest.approx(1.0, abs=1e-15)
    assert rows.row is not None
    assert rows.row.tolist() == [1, 0]  # by the sum of squares
    assert rows.outcome.tolist() == [[1, 0, 0], [0, 0, 1]]
    assert rows.columns == 3


def test_cells_in_folds_hold_every_row_once():
    data = over_world(np.random.default_rng(24), 2000)
    table = BinTable.of(cal.Binary(data.y_true, np.round(data.y_prob, 2)), Distinct())
    rows = table_cells(table, [1.0] * 5, 0)
    assert rows.row is None
    assert rows.weight.sum() == rows.n == 2000
    assert rows.weight @ rows.outcome[:, 0] == data.y_true.sum()
    assert np.bincount(rows.fold, rows.weight) == pytest.approx(400, abs=80)
    parts = tables_by_fold([table, table])
    assert parts.folds == 2
    assert parts.n == 4000
    assert np.array_equal(np.bincount(parts.fold, parts.weight), [2000, 2000])


def test_rows_without_a_map_say_so():
    rows = binary_rows(over_world(np.random.default_rng(25), 20), [1.0, 1.0], 0)
    with pytest.raises(RuntimeError, match="no map yet"):
        assert rows.fitted


def test_the_map_is_named():
    assert recalibrator_name(None, 1) == recalibrator_name(None, 2) == "averaged smoothers"
    assert recalibrator_name(None, 3) == "conditional logit"
    assert recalibrator_name(LogisticRegression(C=2.0), 1) == "LogisticRegression(C=2.0)"


def test_two_columns_get_the_map_of_one():
    rng = np.random.default_rng(26)
    p = rng.random(300)
    data = cal.Multiclass(draw_classes(rng, np.column_stack([1 - p, p])), np.column_stack([1 - p, p]))
    fitted = recalibrated(multiclass_rows(data, [1.0] * 5, 0), None).fitted
    assert fitted.sum(axis=1) == pytest.approx(1.0)


def test_maps_are_told_how_many_rows_the_cells_of_a_table_stand_for():
    seen = []

    class Watched(cal.recalibrate.Platt):
        def fit(self, scores, y, sample_weight=None, *, effective_n=None):
            seen.append((sample_weight.sum(), effective_n))
            return super().fit(scores, y, sample_weight, effective_n=effective_n)

    rng = np.random.default_rng(0)
    p = rng.integers(1, 20, 4000) / 20
    y = rng.random(4000) < p**2
    cal.variational_error(cal.BinTable.of(cal.Binary(y, p), cal.table.Distinct()), recalibrator=Watched())
    for total, effective in seen:
        assert effective == pytest.approx(total)
        assert total > 2000
    seen.clear()
    weight = rng.integers(1, 3, 4000)
    cal.variational_error(cal.Binary(y, p, weight=weight), recalibrator=Watched())
    assert all(total > 1.05 * effective for total, effective in seen)


def test_rows_without_weight_are_in_no_fold():
    rng = np.random.default_rng(0)
    p, y = rng.dirichlet(np.ones(3), 60), rng.integers(0, 3, 60)
    weight = np.where(np.arange(60) < 25, 1.0, 0.0)
    alone = cal.variational_error(cal.Multiclass(y[:25], p[:25]))
    assert cal.variational_error(cal.Multiclass(y, p, weight=weight)) == pytest.approx(float(alone), rel=1e-9)
    few = np.where(np.arange(60) < 1, 1.0, 0.0)
    for data in (cal.Multiclass(y, p, weight=few), cal.Binary(y == 1, p[:, 1], weight=few)):
        with pytest.raises(cal.InvalidPredictions, match="5 folds need at least as many rows that have weight, got 1"):
            cal.variational_error(data)
    with pytest.raises(cal.InvalidPredictions, match="needs 20 of them, got 12"):
        cal.interval(cal.variational_error, cal.Multiclass(y, p, weight=np.where(np.arange(60) < 12, 1.0, 0.0)))
