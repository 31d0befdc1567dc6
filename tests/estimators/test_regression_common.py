"""What regression metrics share: the null reference of the relative gap of root mean squares."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import gamma

from calibrant.estimators.regression_common import root_mean_gap


@pytest.mark.parametrize("variance", [0.5, 0.05, 0.0101, 0.0099, 0.002, 1e-4])
def test_mean_and_spread_of_the_gap_are_those_of_the_gamma_law(variance):
    """Integrated numerically; below 0.01 a series stands in for the quotient of gamma functions."""
    law = gamma(1 / variance, scale=variance)
    reach = 12 * np.sqrt(variance)
    ends = max(0.0, 1 - reach), 1 + reach + 20 * variance

    def moment(power):
        def weighted(g):
            return abs(np.sqrt(g) - 1) ** power * law.pdf(g)

        return sum(quad(weighted, *part, epsabs=1e-14, limit=200)[0] for part in ((ends[0], 1.0), (1.0, ends[1])))

    mean, sd = root_mean_gap(np.array([variance]))
    assert mean[0] == pytest.approx(moment(1), rel=1e-6)
    assert sd[0] == pytest.approx(np.sqrt(moment(2) - moment(1) ** 2), rel=1e-5)


def test_the_gap_of_many_rows_is_that_of_a_normal_error_halved():
    mean, sd = root_mean_gap(np.array([1e-6]))
    assert mean[0] == pytest.approx(1e-3 / 2 * np.sqrt(2 / np.pi), rel=1e-3)
    assert sd[0] == pytest.approx(1e-3 / 2 * np.sqrt(1 - 2 / np.pi), rel=1e-3)
