"""The error that remains after recalibration, cross-fitted: maps are measured on folds they were not fitted on."""

from __future__ import annotations

import numpy as np

from calibrant.estimators.averaged import averaged_error
from calibrant.estimators.proper_scores import brier, log_loss
from calibrant.numerics.arrays import Floats
from calibrant.reporting.folds import cell_sums
from calibrant.reporting.model import Repair
from calibrant.reporting.part import Part
from calibrant.table.binning import Distinct
from calibrant.table.bintable import BinTable, merge


def repairs(part: Part) -> tuple[tuple[Repair, ...], BinTable]:
    """Six recalibration maps, lowest loss first, and the table of predictions after the best one."""
    from calibrant.recalibrate.isotonic import Isotonic
    from calibrant.recalibrate.logistic import Beta, Platt, Quadratic, Temperature
    from calibrant.recalibrate.spline import Spline

    finite = np.isfinite(part.log_loss)
    score, before = (log_loss, float(part.log_loss)) if finite else (brier, float(part.brier))
    found = []
    for recalibrator in (Temperature(), Platt(), Beta(), Quadratic(), Spline(), Isotonic()):
        after = []
        for held, others in zip(*part.folds, strict=True):
            fitted = recalibrator.fit_table(others)
            after.append(_remapped(held, fitted.predict_proba(held.predicted_mean)[:, 1]))
        table = merge(after)
        repair = Repair(type(recalibrator).__name__, float(averaged_error(table, norm=1)), float(score(table)), before)
        found.append((repair, table))
    found.sort(key=lambda pair: pair[0].loss)
    return tuple(repair for repair, _ in found), found[0][1]


def _remapped(table: BinTable, q: Floats) -> BinTable:
    """The same rows with other predictions, in the order of the old ones."""
    sums = cell_sums(q, table.weight, table.observed, table.weight_squares, table.count)
    return BinTable(Distinct(), q, q, q, sums)
