"""P-values of groups that allow for all of them: of rows, of clustered rows, of tables, of forecasts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from calibrant.data.forecasts import Forecast
from calibrant.data.predictions import Predictions
from calibrant.data.validation import InvalidPredictions
from calibrant.inference.forecasts.regression_tests import MeanSquaredZ
from calibrant.inference.group_search import all_tests
from calibrant.inference.groupings import Grouping
from calibrant.inference.hypothesis_tests.multiscale import statistics, weights, with_drawn
from calibrant.inference.multiplicity import cauchy_combined, gamma_tails, holm, step_down_min
from calibrant.inference.sample import Sample
from calibrant.numerics.arrays import Floats
from calibrant.reporting.sections.mean_error import mean_standardised_error
from calibrant.table.bintable import BinTable

#: Cells per group, and simulated samples, of the test of tables.
_CELLS, _DRAWS = 256, 999


def adjusted_p_values(data: Predictions, grouping: Grouping) -> Floats:
    """For each group of rows the p-value of calibration, adjusted for all groups; NaN where it cannot be tested.

    Outcomes and classes are tested as by `calibrant.by_group`, forecasts for the mean and the mean square of their
    standardised errors, with Holm's adjustment.
    """
    if isinstance(data, Forecast):
        return np.array(holm([spread_p_value(data.take(rows)) for rows in grouping.rows()]))
    return all_tests(data, [grouping])[0].adjusted


def adjusted_of_tables(tables: Sequence[BinTable], seed: int = 0) -> Floats:
    """The same for tables of one event each: the statistics of `MultiScale`, ranked step-down over all groups."""
    rng = np.random.default_rng([seed, 4])
    found = np.empty((_DRAWS + 1, len(tables)))
    for k, table in enumerate(tables):
        cells = Sample.of(table, needed_by="report").pooled(_CELLS)
        values = statistics(cells, with_drawn(cells, 2 * _DRAWS, rng))
        tails = gamma_tails(values[_DRAWS + 1 :], values[: _DRAWS + 1])
        found[:, k] = cauchy_combined(tails, weights(tails.shape[1]))
    return step_down_min(found[0], found[1:])


def spread_p_value(data: Any) -> float:
    """Of a forecast or a table of spreads: is the mean square of z 1 and, where there are rows, is its mean 0?"""
    try:
        of_square = MeanSquaredZ().test(data).p_value
    except (InvalidPredictions, ValueError):  # one row, or no error at all
        return float("nan")
    shift = mean_standardised_error(data)
    return of_square if shift is None else min(2 * min(of_square, shift.p_value), 1.0)
