"""Fold tables hold every row once."""

import numpy as np
import pytest

import calibrant as cal
from calibrant.reporting.folds import fold_tables
from tests.reporting.samples import OVER, P


def cells_of(data):
    return data if isinstance(data, cal.BinTable) else cal.BinTable.of(data, cal.table.Distinct())


@pytest.mark.parametrize("kind", ["rows", "weighted", "clustered", "table"])
def test_folds_hold_every_row_once(kind):
    weight = np.random.default_rng(2).integers(0, 3, 3000) if kind == "weighted" else None
    group = np.arange(3000) // 10 if kind == "clustered" else None
    data = cal.Binary(OVER.y_true, P, weight=weight, group=group)
    data = cal.BinTable.of(data, cal.table.HybridGrid()) if kind == "table" else data
    cells = cells_of(data).filled()
    held_out, training = fold_tables(data, cells, 0)
    assert sum(fold.n for fold in held_out) == cells.n
    for held, others in zip(held_out, training, strict=True):
        both = cal.table.merge([held, others])
        np.testing.assert_allclose(both.sums[[0, 1, 2, 4]], cells.sums[[0, 1, 2, 4]], atol=1e-9)
        np.testing.assert_allclose(both.predicted, cells.predicted, rtol=1e-9)


def test_clusters_stay_in_one_fold():
    scores = np.repeat(np.linspace(0.01, 0.99, 50), 4)
    data = cal.Binary(np.arange(200) % 2, scores, group=np.repeat(np.arange(50), 4))
    held_out, _ = fold_tables(data, cells_of(data), 3)
    assert all(np.all(fold.count == 4) for fold in held_out)
