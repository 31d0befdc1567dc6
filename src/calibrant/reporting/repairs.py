"""What recalibration would leave, measured on folds the map was not fitted on. Works on tables, whatever their size."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from calibrant.data.predictions import Binary
from calibrant.estimators.averaged import averaged_error
from calibrant.estimators.cross_fitting import GRID_CELLS, GRID_ROWS
from calibrant.estimators.proper_scores import brier, log_loss
from calibrant.numerics.arrays import Floats
from calibrant.numerics.folds import fold_counts, fold_of_rows
from calibrant.reporting.model import Repair
from calibrant.table.binning import Distinct, HybridGrid
from calibrant.table.bintable import BinTable, merge

FOLDS = 5


def repairs(data: Binary | BinTable, *, seed: int = 0) -> tuple[tuple[Repair, ...], BinTable]:
    """Every map worth trying, best loss first, and the table of predictions after the best one."""
    from calibrant.recalibrate import Beta, Isotonic, Platt, Quadratic, Spline, Temperature

    parts = fold_tables(data, seed)
    whole = merge(parts)
    score = log_loss if np.isfinite(log_loss(whole)) else brier
    before = float(score(whole))
    found = []
    for recalibrator in (Temperature(), Platt(), Beta(), Quadratic(), Spline(), Isotonic()):
        after = []
        for k, held in enumerate(parts):
            fitted = recalibrator.fit_table(merge(parts[:k] + parts[k + 1 :]))
            after.append(remapped(held, fitted.predict_proba(held.predicted_mean)[:, 1]))
        table = merge(after)
        repair = Repair(type(recalibrator).__name__, float(averaged_error(table, norm=1)), float(score(table)), before)
        found.append((repair, table))
    found.sort(key=lambda pair: pair[0].loss)
    return tuple(repair for repair, _ in found), found[0][1]


def fold_tables(data: Binary | BinTable, seed: int) -> list[BinTable]:
    """The rows divided at random into folds, one fine table each; groups stay whole."""
    if isinstance(data, Binary) and (len(data) <= GRID_ROWS or data.weight is not None or data.group is not None):
        fold = fold_of_rows(len(data), [1] * FOLDS, seed=seed, cluster=data.group)
        cells = Distinct() if len(data) <= GRID_ROWS else HybridGrid(GRID_CELLS)
        parts = [data.take(fold == k) for k in range(FOLDS) if (fold == k).any()]
        return [BinTable.of(part, cells) for part in parts if part.weight is None or part.weight.any()]
    table = data if isinstance(data, BinTable) else BinTable.of(data, HybridGrid(GRID_CELLS))
    mean = table.predicted_mean
    counts = fold_counts(np.stack([table.count - table.observed, table.observed]), [1] * FOLDS, seed=seed)
    return [replace(table, sums=_sums(mean, zeros + ones, ones)).filled() for zeros, ones in counts]


def remapped(table: BinTable, q: Floats) -> BinTable:
    """The same rows with other predictions: an exact table of the new scores."""
    scale = table.weight_squares / table.weight
    sums = _sums(q, table.weight, table.observed)
    sums[0], sums[2] = table.count, table.weight * scale
    return merge([BinTable(Distinct(), q, q, q, sums)])


def _sums(p: Floats, weight: Floats, ones: Floats) -> Floats:
    return np.stack([weight, weight, weight, weight * p, ones, weight * p * p, ones * p, ones])
