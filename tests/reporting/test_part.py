"""A report builds its cells once, and computes each interval, test and set of cross-fitted maps once per part."""

from collections import Counter

import numpy as np
import pytest

import calibrant as cal
from calibrant.estimators.variational_engine import Variational
from calibrant.inference import Inversion, MultiScale
from calibrant.pu import PUInversion
from calibrant.recalibrate.base import BinaryRecalibrator
from calibrant.reporting.part import Part
from tests.reporting.samples import GROUPS, OVER, SPREAD, P


@pytest.fixture
def calls(monkeypatch):
    """How often each expensive step was taken."""
    counted = Counter()

    def count(owner, name, label):
        found = vars(owner)[name]
        bare = found.__func__ if isinstance(found, classmethod) else found

        def counting(*arguments, **options):
            counted[label] += 1
            return bare(*arguments, **options)

        monkeypatch.setattr(owner, name, classmethod(counting) if isinstance(found, classmethod) else counting)

    count(cal.BinTable, "of", "tables of rows")
    count(Inversion, "interval", "intervals")
    count(PUInversion, "interval", "positive-unlabeled intervals")
    count(MultiScale, "test", "tests")
    count(Variational, "of", "sets of cross-fitted maps")
    count(BinaryRecalibrator, "fit_table", "recalibrations")
    return counted


#: The world behind the biases is fitted to some of the rows, and its fit tested: one table and one test more.
FIT = 1


def test_a_report_builds_one_table_and_one_of_each_result(calls):
    cal.report(OVER)
    assert calls["tables of rows"] == calls["tests"] == 1 + FIT
    assert calls["intervals"] == calls["sets of cross-fitted maps"] == 1
    assert calls["recalibrations"] <= 6 * 5  # six maps, five folds


def test_each_group_has_one_table_one_interval_and_one_test(calls):
    cal.report(OVER, by=GROUPS)
    parts = 1 + len(set(GROUPS))
    assert calls["tables of rows"] == calls["tests"] == parts + FIT
    assert calls["intervals"] == parts
    assert calls["sets of cross-fitted maps"] == 1


def test_a_given_table_is_taken_as_it_is(calls):
    table = cal.BinTable.of(OVER, cal.table.HybridGrid())
    calls.clear()
    cal.report(table)
    assert calls["tables of rows"] == 0
    assert calls["intervals"] == calls["tests"] == calls["sets of cross-fitted maps"] == 1


def test_several_classes_add_only_the_tables_of_the_classes(calls):
    rng = np.random.default_rng(0)
    probs = rng.dirichlet(np.ones(3), 1000)
    cal.report(cal.Multiclass((rng.random(1000)[:, None] > probs.cumsum(axis=1)).sum(axis=1), probs))
    assert calls["tables of rows"] == 1 + 3 + FIT
    assert calls["tests"] == 1 + FIT
    assert calls["intervals"] == calls["sets of cross-fitted maps"] == 1


def test_positive_unlabeled_rows_are_sorted_into_one_table(calls):
    rng = np.random.default_rng(0)
    cal.report(cal.PositiveUnlabeled(rng.beta(3, 1, 400), rng.random(3000), prior=0.4))
    assert calls["tables of rows"] == calls["positive-unlabeled intervals"] == 1


def test_a_regression_report_measures_its_bins_on_one_table(calls, monkeypatch):
    monkeypatch.setattr("calibrant.reporting.regression._repairs", lambda *_: ())
    cal.report(SPREAD)
    assert calls["tables of rows"] == 1


def test_every_estimate_of_the_true_error_has_the_same_interval():
    found = cal.report(OVER)
    intervals = {measure.estimate.interval for measure in found.measures if measure.estimate.interval is not None}
    assert intervals == {cal.interval(cal.ece, OVER).interval}


def test_results_are_those_of_the_library():
    part = Part(OVER, seed=3)
    assert part.variational.error(1) == cal.calibration_error(part.cells, norm=1, seed=3)
    assert part.variational.part(1, "over") == cal.overconfidence(part.cells, seed=3)
    assert part.test == cal.calibration_test(OVER)
    assert part.headline == pytest.approx(cal.averaged_error(OVER), abs=1e-12)


def test_weighted_rows_are_reported_and_a_common_factor_changes_nothing():
    weight = np.random.default_rng(4).random(3000)
    one, ten = (cal.report(cal.Binary(OVER.y_true, P, weight=factor * weight)) for factor in (1.0, 10.0))
    assert one.headline == pytest.approx(ten.headline, abs=1e-9)
    assert [repair.name for repair in one.repairs] == [repair.name for repair in ten.repairs]
    assert one.verdict.startswith("Over-confident by")
