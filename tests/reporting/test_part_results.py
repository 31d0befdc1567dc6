"""A report builds its cells once, and computes each interval, test and set of cross-fitted maps once per part."""

from collections import Counter

import numpy as np
import pytest

import calibrant as cal
from calibrant.estimators.variational_engine import Variational
from calibrant.inference import Inversion, MultiScale
from calibrant.pu import PUInversion
from calibrant.recalibrate.base import BinaryRecalibrator
from calibrant.reporting.part_results import Part
from tests.reporting.samples import OVER, P


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


def test_a_report_builds_one_table_and_one_of_each_result(calls):
    cal.report(OVER)
    assert calls["tables of rows"] == calls["tests"] == 1
    assert calls["intervals"] == 2  # of the error, and of the error after recalibration
    assert calls["sets of cross-fitted maps"] == 1
    assert calls["recalibrations"] <= 6 * 5  # six maps, five folds


def test_a_given_table_is_taken_as_it_is(calls):
    table = cal.BinTable.of(OVER, cal.table.HybridGrid())
    calls.clear()
    cal.report(table)
    assert calls["tables of rows"] == 0
    assert calls["tests"] == calls["sets of cross-fitted maps"] == 1


def test_every_estimate_of_the_true_error_has_the_same_interval():
    found = cal.report(OVER)
    of_error = [m.estimate for m in found.measures if m.estimate.target and m.estimate.target.quantity == "true error"]
    assert {estimate.interval for estimate in of_error if estimate.interval} == {cal.interval(cal.ece, OVER).interval}


def test_results_are_those_of_the_library():
    part = Part(OVER, seed=3)
    assert part.variational.error(1) == cal.variational_error(part.cells, norm=1, seed=3)
    assert part.variational.part(1, "over") == cal.overconfidence(part.cells, seed=3)
    assert part.test == cal.calibration_test(OVER)
    assert part.headline == pytest.approx(cal.averaged_error(OVER), abs=1e-12)
    assert part.slope.interval == cal.interval(cal.calibration_slope, OVER).interval
    assert part.observed_expected.interval == cal.interval(cal.observed_expected, OVER).interval
    assert part.intercept == cal.calibration_intercept(OVER)


def test_clusters_are_tested_as_such():
    group = np.repeat(np.arange(300), 10)
    part = Part(cal.Binary(OVER.y_true, P, group=group))
    assert part.clustered
    assert part.test.method == "Clustered score test"
    assert part.test.p_value < 0.001


def test_weighted_rows_are_reported_and_a_common_factor_changes_nothing():
    weight = np.random.default_rng(4).random(3000)
    one, ten = (cal.report(cal.Binary(OVER.y_true, P, weight=factor * weight)) for factor in (1.0, 10.0))
    assert one.headline == pytest.approx(ten.headline, abs=1e-9)
    assert [row.name for row in one.recalibration.maps] == [row.name for row in ten.recalibration.maps]
    assert str(one.verdict) == str(ten.verdict)
    assert one.contents.facts.effective_rows == pytest.approx(weight.sum() ** 2 / (weight**2).sum())
