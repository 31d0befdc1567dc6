"""From what a user gives to the table an estimator needs, and what is refused in which words."""

from dataclasses import replace

import numpy as np
import pytest

import calibrant as cal
from calibrant.numerics.rows import SUMS
from calibrant.table.bintable import (
    binned,
    fine,
    group_tables,
    number_of_rows,
    outcome_cells,
    require_fine,
    require_kind,
)
from tests.reporting.samples import SPREAD

P = np.array([0.1, 0.2, 0.2, 0.7, 0.9])
Y = np.array([0, 1, 0, 1, 1])
DATA = cal.Binary(Y, P)
EXACT = cal.BinTable.of(DATA, cal.table.Distinct())
BINS = cal.BinTable.of(DATA, cal.EqualWidth(4))
SPREADS = cal.BinTable.of(cal.Gaussian([0.3, -1.2], mean=[0.0, 0.0], std=[0.5, 1.0]), cal.table.Distinct())
UNLABELED = cal.PositiveUnlabeled([0.95, 0.7], P, prior=0.5)


@pytest.mark.parametrize("given", [(Y, P), (DATA, None), (EXACT, None)], ids=["arrays", "predictions", "cells"])
@pytest.mark.parametrize("bins", [3, cal.EqualMass(3), cal.EqualWidth(2), cal.Edges([0, 0.3, 1])], ids=repr)
def test_the_same_bins_from_arrays_predictions_and_cells(given, bins):
    table, words = binned(*given, bins)
    expected = cal.BinTable.of(DATA, bins)
    np.testing.assert_array_equal(table.edges, expected.edges)
    for name in ("count", "predicted", "observed", "product"):
        np.testing.assert_allclose(getattr(table, name), getattr(expected, name), rtol=1e-14)
    assert words == ("EqualMass(n_bins=3)" if bins == 3 else repr(bins))


def test_given_bins_are_taken_as_they_are():
    table, words = binned(BINS, None, cal.EqualMass(2))
    assert table is BINS
    assert words == "4 given bins"


def test_squares_can_be_left_out():
    data = cal.PositiveUnlabeled(P, P, prior=0.2)
    tables = [binned(data, None, cal.EqualWidth(2), squares=squares)[0] for squares in (True, False)]
    np.testing.assert_allclose(tables[0].predicted_squares, [np.sum(P[:3] ** 2), np.sum(P[3:] ** 2)])
    assert np.isnan(tables[1].predicted_squares).all()
    np.testing.assert_allclose(tables[0].predicted, tables[1].predicted)


def test_binning_warns_of_an_impossible_prior():
    rng = np.random.default_rng(0)
    data = cal.PositiveUnlabeled(rng.beta(9, 1, 500), rng.random(500), prior=0.9)
    with pytest.warns(UserWarning, match="larger than the data allow"):
        binned(data, None, cal.EqualMass(5))


def test_tables_of_spreads_are_binned_unless_probabilities_are_needed():
    assert binned(SPREADS, None, cal.EqualMass(2))[0].n == 2
    with pytest.raises(ValueError, match=r"^this needs probabilities and outcomes"):
        binned(SPREADS, None, cal.EqualMass(2), needed_by="this")


def test_fine_cells_are_the_distinct_scores():
    table = fine(Y, P, needed_by="this")
    np.testing.assert_array_equal(table.key, [0.1, 0.2, 0.7, 0.9])
    np.testing.assert_array_equal(table.observed, [0, 1, 1, 1])
    assert fine(EXACT, None, needed_by="this") is EXACT
    assert fine(SPREADS, None, needed_by="this", spread=True) is SPREADS


def test_cells_without_weight_are_left_out_and_labelled_positives_alone_are_kept():
    empty = cal.Binary(Y, P, weight=[0, 1, 1, 1, 0])
    np.testing.assert_array_equal(fine(empty, None, needed_by="this").key, [0.2, 0.7])
    np.testing.assert_array_equal(fine(UNLABELED, None, needed_by="this").key, [0.1, 0.2, 0.7, 0.9, 0.95])


def test_rows_without_outcomes_are_refused_where_outcomes_are_needed():
    assert outcome_cells(EXACT, needed_by="this") is EXACT
    assert outcome_cells(DATA, needed_by="this").n == 5
    with pytest.raises(ValueError, match=r"tables have no outcomes per row, which this needs"):
        outcome_cells(UNLABELED, needed_by="this")


def test_one_kind_of_table_does_not_stand_for_the_other():
    require_kind(EXACT, needed_by="this")
    require_kind(BINS, needed_by="this")
    require_kind(SPREADS, needed_by="this", spread=True)
    with pytest.raises(ValueError, match=r"^this needs probabilities and outcomes, .* use ence.* Binary\("):
        require_kind(SPREADS, needed_by="this")
    with pytest.raises(ValueError, match=r"^this needs predicted spreads and errors, .* use ece.* Gaussian\("):
        require_kind(EXACT, needed_by="this", spread=True)


def test_bins_are_refused_where_cells_are_needed_after_the_wrong_kind():
    require_fine(EXACT, needed_by="this")
    with pytest.raises(ValueError, match=r"^this needs a fine table \(or the predictions\); this one has only 4 bins"):
        require_fine(BINS, needed_by="this")
    with pytest.raises(ValueError, match=r"^this needs predicted spreads"):
        require_fine(BINS, needed_by="this", spread=True)
    with pytest.raises(ValueError, match="needs a fine table"):
        fine(BINS, None, needed_by="this")


def test_predictions_are_given_once_and_whole():
    for give in (binned, lambda data, p, bins: fine(data, p, needed_by="this")):
        with pytest.raises(TypeError, match="not both"):
            give(DATA, P, cal.EqualMass(2))
        with pytest.raises(TypeError, match="both y_true and y_prob"):
            give(Y, None, cal.EqualMass(2))


MEASURES_OF_TABLES = [
    *(cal.ece, cal.mce, cal.debiased_ece, cal.sweep_ece, cal.averaged_error, cal.smooth_ece, cal.kde_ece, cal.ks_error),
    *(cal.brier, cal.log_loss, cal.auc, cal.variational_error, cal.decompose, cal.calibration_test),
    *(cal.reliability_curve, cal.recalibrate.Platt().fit, cal.recalibrate.Isotonic().fit),
]


@pytest.mark.parametrize("measure", MEASURES_OF_TABLES)
def test_tables_of_nothing_are_refused(measure):
    p = np.linspace(0.1, 0.9, 30)
    table = cal.BinTable.of(cal.Binary(np.arange(30) % 2, p), cal.table.Distinct())
    without_rows = replace(table.take(np.zeros(30, dtype=bool)), invalid={"y_true missing": 7})
    with pytest.raises(
        cal.InvalidPredictions, match=r"no rows with a positive weight \(7 invalid ones were left out\)"
    ):
        measure(without_rows)
    with pytest.raises(cal.InvalidPredictions, match="no rows with a positive weight"):
        measure(replace(table, sums=0 * table.sums))
    of_positives = cal.BinTable.of(cal.PositiveUnlabeled(p[:9], p[9:], prior=0.4), cal.table.Distinct())
    sums = of_positives.sums.copy()
    sums[[SUMS.index("observed"), SUMS.index("observed_squares")]] = 0
    with pytest.raises(cal.InvalidPredictions, match="no labelled positives"):
        measure(replace(of_positives, sums=sums))


def test_tables_of_no_spreads_are_refused():
    table = cal.BinTable.of(cal.Gaussian([1.0, 2.0], [0.0, 0.0], [1.0, 2.0]), cal.table.Distinct())
    for measure in (cal.ence, cal.uce, cal.sweep_ence, cal.mean_squared_z, cal.std_dispersion, cal.spread_curve):
        with pytest.raises(cal.InvalidPredictions, match="no rows with a positive weight"):
            measure(table.take(np.zeros(2, dtype=bool)))


PARITY, HALF = np.arange(1500) % 2, np.repeat(["all rows", None], 750)


def test_a_report_shows_the_largest_groups_and_a_gate_sees_all():
    p = np.linspace(0, 1, 140)
    data, by = cal.Binary(p > 0.5, p), np.arange(140) % 70
    assert len(group_tables(data, by)) == 50
    assert len(group_tables(data, by, most=None)) == 70


def test_every_grouping_of_forecasts_names_its_groups():
    parts = group_tables(SPREAD, {"parity": PARITY, "half": HALF})
    assert list(parts) == ["parity = 0", "parity = 1", "half = 'all rows'", "half = (missing)"]
    assert {number_of_rows(part) for part in parts.values()} == {750}


def test_a_table_has_no_rows_to_group():
    with pytest.raises(cal.InvalidPredictions, match="one table per group"):
        group_tables(cal.BinTable.of(SPREAD, cal.table.LogGrid()), PARITY)
