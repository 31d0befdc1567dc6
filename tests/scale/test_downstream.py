"""What a table is for: everything that takes rows of probabilities takes their table."""

import matplotlib as mpl
import numpy as np
import pytest

import calibrant as cal
from calibrant.scale import GaussianColumns, bin_table

mpl.use("agg")


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(3)
    p = rng.random(20_000)
    return cal.Binary(rng.random(len(p)) < p**1.3, p)


@pytest.fixture(scope="module")
def table(rows):
    import polars as pl

    return bin_table(pl.DataFrame({"y": rows.y_true, "p": rows.y_prob}), y_true="y", y_prob="p")


ESTIMATORS = ["ece", "debiased_ece", "sweep_ece", "smooth_ece", "kde_ece", "ks_error", "brier", "log_loss", "auc"]


@pytest.mark.parametrize("name", ESTIMATORS)
def test_estimates_of_the_table_are_those_of_the_rows(table, rows, name):
    assert float(getattr(cal, name)(table)) == pytest.approx(float(getattr(cal, name)(rows)), abs=2e-4)


def test_the_variational_error_deals_its_folds_from_the_counts(table, rows):
    assert float(cal.variational_error(table)) == pytest.approx(float(cal.variational_error(rows)), abs=5e-3)


def test_intervals_tests_and_curves_take_the_table(table, rows):
    found, expected = cal.interval(cal.ece, table).interval, cal.interval(cal.ece, rows).interval
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high), abs=5e-3)
    assert cal.calibration_test(table).p_value < 0.01
    assert len(cal.reliability_curve(table).observed) > 5


@pytest.mark.parametrize("name", ["Isotonic", "Beta", "Platt", "Temperature"])
def test_one_dimensional_maps_are_fitted_to_the_table(table, rows, name):
    recalibrator = getattr(cal.recalibrate, name)
    by_table, by_rows = recalibrator().fit(table), recalibrator().fit(rows)
    at = np.linspace(0.05, 0.95, 10)
    np.testing.assert_allclose(by_table.predict(at), by_rows.predict(at), atol=5e-3)


def test_reports_and_plots_take_the_table(table):
    found = cal.report(table, by={"all": table})
    assert found.n == 20_000
    assert found.verdict
    assert cal.plot.reliability_diagram(table) is not None


def test_a_table_of_spreads_has_its_own_report():
    import pandas as pd

    rng = np.random.default_rng(1)
    sigma = np.exp(rng.normal(size=5_000))
    frame = pd.DataFrame({"y": 1.5 * sigma * rng.normal(size=5_000), "mu": 0.0, "sigma": sigma})
    table = bin_table(frame, y_true="y", task=GaussianColumns("mu", "sigma"))
    assert cal.ence(table) == pytest.approx(0.5, abs=0.05)
    assert cal.report(table).n == 5_000
