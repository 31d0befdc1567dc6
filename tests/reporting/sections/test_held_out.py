"""Held-out predictions: every row once, by a map that has not seen it."""

import numpy as np
import pytest

import calibrant as cal
from calibrant.recalibrate import Isotonic, Platt
from calibrant.reporting.part import Part
from calibrant.reporting.sections.held_out import TRAINING_GRID, HeldOut, held_out_rows
from tests.reporting.sections.worlds import binary


@pytest.mark.parametrize("kind", ["rows", "weighted", "clustered", "table"])
def test_every_row_is_held_out_once(kind):
    weight = np.random.default_rng(2).integers(0, 3, 3000).astype(float) if kind == "weighted" else None
    group = np.arange(3000) // 10 if kind == "clustered" else None
    data = binary(3000, weight=weight, group=group)
    data = cal.BinTable.of(data, cal.table.HybridGrid()) if kind == "table" else data
    part = Part(data)
    held_out = HeldOut.of(part)
    assert held_out.entries.total == pytest.approx(part.cells.total)
    assert held_out.entries.ones.sum() == pytest.approx(part.cells.observed.sum())
    assert len(held_out.bounds) == 5
    assert [where.start for where in held_out.bounds[1:]] == [where.stop for where in held_out.bounds[:-1]]
    after = held_out.after(held_out.score)
    table = after if isinstance(after, cal.BinTable) else cal.BinTable.of(after, cal.table.Distinct()).filled()
    np.testing.assert_allclose(table.sums.sum(axis=1), part.cells.sums.sum(axis=1), rtol=1e-6)


@pytest.mark.parametrize("recalibrator", [Platt(), Isotonic()])
def test_predictions_are_those_of_maps_fitted_without_the_fold(recalibrator):
    part = Part(binary(1000, slope=0.7))
    held_out = HeldOut.of(part)
    q = held_out.predicted(held_out.fitted(recalibrator))
    for where, others in zip(held_out.bounds, part.folds.training, strict=True):
        expected = recalibrator.fit_table(others).predict_proba(held_out.score[where])[:, 1]
        np.testing.assert_array_equal(q[where], expected)


def test_counting_on_a_grid_hardly_changes_a_map():
    part = Part(binary(30_000, slope=0.7))
    held_out = HeldOut.of(part)
    assert max(len(table) for table in held_out.training) < TRAINING_GRID.cells
    q = held_out.predicted(held_out.fitted(Platt()))
    for where, others in zip(held_out.bounds, part.folds.training, strict=True):
        exact = Platt().fit_table(others).predict_proba(held_out.score[where])[:, 1]
        np.testing.assert_allclose(q[where], exact, atol=2e-4)


def test_clusters_are_held_out_whole():
    group = np.arange(1000) // 20
    held_out = HeldOut.of(Part(binary(1000, group=group)))
    folds = [set(held_out.rows.group[where]) for where in held_out.bounds]
    assert sum(len(fold) for fold in folds) == len(set.union(*folds)) == 50
    assert isinstance(held_out.after(held_out.score), cal.Binary)


def test_the_error_of_a_difference_is_paired():
    held_out = HeldOut.of(Part(binary(2000, slope=0.7)))
    q = held_out.predicted(held_out.fitted(Platt()))
    assert held_out.error_of_difference(q, q, "log loss") == 0
    assert held_out.error_of_difference(q, held_out.score, "log loss") > 0


@pytest.mark.parametrize("columns", [{}, {"group": np.arange(900) // 7}, {"weight": np.arange(900) % 3}])
def test_rows_keep_their_order(columns):
    data = binary(900, slope=0.6, shift=-0.5, **columns)
    part = Part(data)
    held_out = HeldOut.of(part)
    fitted = held_out.fitted(Platt())
    rows = held_out_rows(data, fitted, part.seed)
    np.testing.assert_array_equal(rows.y_true, data.y_true)
    counted = slice(None) if data.weight is None else data.weight > 0
    own = np.sort(held_out.predicted(fitted)) if data.weight is None else np.unique(held_out.predicted(fitted))
    np.testing.assert_allclose(np.sort(rows.y_prob[counted]), own, atol=1e-12)
    assert np.corrcoef(rows.y_prob, data.y_prob)[0, 1] > 0.95
