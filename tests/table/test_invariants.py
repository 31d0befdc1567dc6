"""Tables made from rows are possible; others are refused by name."""

from dataclasses import replace

import numpy as np
import pytest

import calibrant as cal
from calibrant.numerics.rows import SUMS
from calibrant.scale import bin_table, bin_tables
from calibrant.table import Distinct, HybridGrid, LogGrid, Unlabeled
from calibrant.table.invariants import require_possible
from tests.scale.logs import make_log

GRIDS = [Distinct(), HybridGrid(), HybridGrid(2**8, equal_width=15), cal.EqualMass(7), cal.EqualWidth(7)]


def data(n, seed):
    rng = np.random.default_rng(seed)
    p = rng.beta(0.3, 0.3, n).round(rng.integers(1, 17))
    y = (rng.random(n) < p).astype(int)
    weight = rng.lognormal(0, 3, n) * 10.0 ** rng.integers(-100, 100)
    yield cal.Binary(y, p)
    yield cal.Binary(y, p.astype(np.float32))
    yield cal.Binary(y, p, weight=weight)
    yield cal.PositiveUnlabeled(p[: n // 3 + 1], p, prior=0.3)
    if 0 < y.sum() < n:
        yield cal.PositiveUnlabeled.from_labels(y, p, scenario="single-sample", prior=0.9)


@pytest.mark.parametrize("n", [1, 3, 400])
@pytest.mark.parametrize("grid", GRIDS, ids=repr)
def test_tables_of_rows_are_possible_and_so_are_their_parts_and_sums(n, grid):
    for seed in range(3):
        for one in data(n, seed):
            table = cal.BinTable.of(one, grid)
            for made in (table, table.filled(), table + table, table.in_rows()):
                require_possible(made)
            if table.fine and n > 3:
                require_possible(table.coarsen(cal.EqualMass(9)))
                require_possible(table.coarsen(cal.EqualWidth(9)))


def test_tables_of_spreads_and_of_engines_are_possible():
    log = make_log(700)
    rng = np.random.default_rng(0)
    for unit in (1e-60, 1.0, 1e60):
        spread = cal.Gaussian(unit * log.z, unit * log.mu, unit * log.sigma, weight=rng.random(700))
        require_possible(cal.BinTable.of(spread, LogGrid()))
        require_possible(cal.BinTable.of(spread, cal.EqualMass(9)))
    require_possible(cal.BinTable.of(cal.Quantiles(log.z, [0.1, 0.9], np.sort(log[["mu", "z"]])), cal.EqualMass(2)))
    for exact in (True, cal.EqualWidth(15)):
        require_possible(bin_table(log, y_true="y", y_prob="p", weight="w", exact=exact))
    for table in bin_tables(log, y_true="y", y_prob="p", by="country", exact=True).values():
        require_possible(table)


def changed(table, column, value, place=0):
    sums = table.sums.copy()
    sums[SUMS.index(column), place] = value
    return replace(table, sums=sums)


TABLE = cal.BinTable.of(cal.Binary([0, 1, 1, 0], [0.2, 0.2, 0.7, 0.9]), HybridGrid())
PU = cal.BinTable.of(cal.PositiveUnlabeled([0.2, 0.6], [0.2, 0.6, 0.8], prior=0.4), HybridGrid())
BINS = cal.BinTable.of(cal.Binary([0, 1, 1, 0], [0.2, 0.2, 0.7, 0.9]), cal.EqualWidth(4))
IMPOSSIBLE = {
    "a negative count": (changed(TABLE, "count", -2.0), "count must be finite and not negative, but 1 of 3 rows"),
    "half a row": (changed(TABLE, "count", 1.5), "count must be whole"),
    "NaN": (changed(TABLE, "observed", np.nan), "observed must be finite"),
    "infinite": (changed(TABLE, "weight", np.inf), "weight must be finite"),
    "seven times the prediction": (changed(TABLE, "predicted", 7 * 0.4), "predicted"),
    "more events than rows": (changed(TABLE, "observed", 9.0), "observed must not exceed the weight"),
    "more weight than rows can have": (changed(TABLE, "weight", 9.0), "weight must fit"),
    "no squares of weights": (changed(TABLE, "weight_squares", 0.0), "weight must fit"),
    "squares of predictions": (changed(TABLE, "predicted_squares", 0.0), "predicted_squares must fit"),
    "NaN squares of a fine table": (changed(TABLE, "predicted_squares", np.nan), "predicted_squares must not"),
    "too large a product": (changed(TABLE, "product", 5.0), "product must not exceed"),
    "squares of outcomes": (changed(TABLE, "observed_squares", 5.0), "observed_squares must fit"),
    "unsorted": (replace(TABLE, low=TABLE.low[::-1], high=TABLE.high[::-1]), "low must rise|between low and high"),
    "bounds exchanged": (replace(TABLE, low=TABLE.high + 0.01), "low must not be above high"),
    "scores above 1": (replace(TABLE, low=TABLE.low + 1, high=TABLE.high + 1), r"low must lie in \[0, 1\]"),
    "unknown cells": (replace(TABLE, key=TABLE.key + 2**16), "key must be the number of a cell"),
    "broken keys": (replace(TABLE, key=TABLE.key + 0.5), "key must be whole"),
    "unknown bins": (replace(BINS, key=BINS.key + 1), "key must be the number of a bin"),
    "the same bin twice": (replace(BINS, key=0 * BINS.key), "key must rise"),
    "other edges": (replace(BINS, low=BINS.low * 0.9), "low must be an edge"),
    "a prior of 5": (replace(PU, task=Unlabeled(5.0)), r"prior must lie in \(0, 1\], got 5.0"),
    "a prior of 0": (replace(PU, task=Unlabeled(0.0)), "prior must lie"),
    "a prior of text": (replace(PU, task=Unlabeled("half")), "prior must lie"),
    "a label frequency of 2": (replace(PU, task=Unlabeled(None, 2.0)), "label_frequency must lie"),
    "nested what": (replace(PU, task=Unlabeled(0.4, nested=3)), "nested must be true or false"),
    "negative invalid rows": (replace(TABLE, invalid={"missing": -1}), "invalid"),
    "half an invalid row": (replace(TABLE, invalid={"missing": 0.5}), "invalid"),
}


@pytest.mark.parametrize("case", IMPOSSIBLE)
def test_what_no_rows_can_give_is_refused(case):
    table, words = IMPOSSIBLE[case]
    with pytest.raises(ValueError, match=words):
        require_possible(table)


@pytest.mark.parametrize("case", IMPOSSIBLE)
def test_a_saved_table_that_is_impossible_is_an_invalid_file(case, tmp_path):
    IMPOSSIBLE[case][0].save(tmp_path / "table.parquet")
    with pytest.raises(cal.InvalidFile, match=r"table\.parquet is not a valid table"):
        cal.BinTable.load(tmp_path / "table.parquet")
