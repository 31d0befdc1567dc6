"""The mean of standardised errors: Student's interval, over rows or clusters."""

import numpy as np
import pytest
from scipy.stats import ttest_1samp

import calibrant as cal
from calibrant.reporting.sections.mean_error import mean_standardised_error


def test_rows_are_students_test():
    rng = np.random.default_rng(0)
    y, std = rng.normal(0.2, 1.0, 60), rng.uniform(0.5, 2, 60)
    found, expected = mean_standardised_error(cal.Gaussian(y, np.zeros(60), std)), ttest_1samp(y / std, 0)
    assert found.p_value == pytest.approx(expected.pvalue)
    assert found.value.low == pytest.approx(expected.confidence_interval().low)
    assert found.value.high == pytest.approx(expected.confidence_interval().high)


def test_clusters_are_units():
    y = np.repeat(np.random.default_rng(0).normal(0.3, 1, 20), 10)
    data = cal.Gaussian(y, np.zeros(200), np.ones(200), group=np.arange(200) // 10)
    assert mean_standardised_error(data).p_value == pytest.approx(ttest_1samp(y[::10], 0).pvalue)


def test_what_has_no_mean():
    assert mean_standardised_error(cal.Gaussian([1.0], [0.0], [1.0])) is None
    assert mean_standardised_error(cal.Quantiles([1.0, 2.0], [0.1, 0.9], [[0.0, 1.0], [0.0, 1.0]])) is None
