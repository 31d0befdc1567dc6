"""Estimators of probabilities refuse tables of spreads, and those of spreads refuse tables of probabilities."""

import numpy as np
import pytest

import calibrant as cal

RNG = np.random.default_rng(0)
P, S, MU = RNG.random(400), np.exp(RNG.normal(size=400)), RNG.normal(size=400)
RATES, SPREADS = cal.Binary(RNG.random(400) < P, P), cal.Gaussian(MU + S * RNG.normal(size=400), MU, S)

OF_RATES = [
    "ece",
    "mce",
    "label_binned_ece",
    "debiased_ece",
    "sweep_ece",
    "ks_error",
    "auc",
    "brier",
    "log_loss",
    "decompose",
    "kde_ece",
    "smooth_ece",
    "kernel_error",
    "averaged_error",
    "variational_error",
    "overconfidence",
    "underconfidence",
    "refinement",
    "observed_expected",
    "calibration_intercept",
    "calibration_slope",
    "ici",
    "kuiper_error",
]
OF_SPREADS = [
    "ence",
    "uce",
    "debiased_ence",
    "sweep_ence",
    "ence_curve",
    "spread_curve",
    "mean_squared_z",
    "scale_factor",
    "std_dispersion",
]
CUTS = {"cells": cal.table.Distinct(), "bins": cal.EqualMass(5)}


@pytest.mark.parametrize("cut", CUTS)
@pytest.mark.parametrize("name", OF_RATES)
def test_estimators_of_probabilities_refuse_tables_of_spreads(name, cut):
    with pytest.raises(ValueError, match=r"needs probabilities and outcomes, .* use ence"):
        getattr(cal.estimators, name)(cal.BinTable.of(SPREADS, CUTS[cut]))


@pytest.mark.parametrize("cut", CUTS)
@pytest.mark.parametrize("name", OF_SPREADS)
def test_estimators_of_spreads_refuse_tables_of_probabilities(name, cut):
    with pytest.raises(ValueError, match=rf"^{name} needs predicted spreads .* use ece"):
        getattr(cal.estimators, name)(cal.BinTable.of(RATES, CUTS[cut]))


@pytest.mark.parametrize("name", OF_RATES)
def test_estimators_of_probabilities_take_their_own_tables(name):
    assert getattr(cal.estimators, name)(cal.BinTable.of(RATES, cal.table.Distinct())) is not None


@pytest.mark.parametrize("name", OF_SPREADS)
def test_estimators_of_spreads_take_their_own_tables(name):
    assert getattr(cal.estimators, name)(cal.BinTable.of(SPREADS, cal.table.LogGrid())) is not None


def test_every_estimator_that_takes_a_table_is_listed_here():
    tables = [cal.BinTable.of(RATES, cal.table.Distinct()), cal.BinTable.of(SPREADS, cal.table.LogGrid())]
    takes = set()
    for name in cal.estimators.__all__:
        if not name.islower() or not callable(getattr(cal.estimators, name)):
            continue
        for table in tables:
            try:
                getattr(cal.estimators, name)(table)
            except (TypeError, ValueError, AssertionError):
                continue
            takes.add(name)
    assert takes == {*OF_RATES, *OF_SPREADS, "calibration_error"}  # which has a method for each


def test_the_kind_survives_regrouping_addition_and_choice():
    table = cal.BinTable.of(SPREADS, cal.table.LogGrid())
    for same in (table + table, table.coarsen(cal.EqualMass(5)), table.filled(), cal.ence(SPREADS).bins):
        assert same.task == cal.table.Spread()
        assert cal.ence(same).value >= 0
    with pytest.raises(ValueError, match="cut alike"):
        cal.BinTable.of(SPREADS, cal.table.Distinct()) + cal.BinTable.of(RATES, cal.table.Distinct())


def test_tests_and_resampling_of_outcomes_refuse_tables_of_spreads():
    table = cal.BinTable.of(SPREADS, cal.table.Distinct())
    with pytest.raises(ValueError, match="needs probabilities"):
        cal.calibration_test(table)
    with pytest.raises(ValueError, match="needs probabilities"):
        cal.interval(cal.ece, table)


@pytest.mark.parametrize("name", ["ece", "mce", "debiased_ece", "sweep_ece", "ks_error"])
def test_rows_of_spreads_are_refused_as_their_tables_are(name):
    with pytest.raises(ValueError, match="needs probabilities"):
        getattr(cal.estimators, name)(SPREADS)
