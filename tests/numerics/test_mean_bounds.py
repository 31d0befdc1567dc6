"""Lower confidence bounds of a mean of bounded values."""

import math

import numpy as np
import pytest

from calibrant.numerics.mean_bounds import bernstein_lower_bound, betting_lower_bound


@pytest.mark.parametrize(("mean", "n"), [(0.5, 200), (0.03, 500), (0.9, 100)])
def test_the_exact_bounds_fail_no_more_often_than_promised(mean, n):
    rng = np.random.default_rng(0)
    samples = (rng.random((300, n)) < mean).astype(float)
    missed = np.mean([betting_lower_bound(x, 0.1) > mean for x in samples])
    assert missed <= 0.1 + 3 * math.sqrt(0.1 * 0.9 / 300)
    bernstein = [bernstein_lower_bound(x, np.ones(n), 0.1) for x in samples]
    assert np.mean(np.array(bernstein) > mean) <= 0.1
    assert np.mean([betting_lower_bound(x, 0.1) for x in samples]) > np.mean(bernstein)


def test_the_bernstein_bound_is_its_formula_and_pools_equal_values():
    x = np.random.default_rng(1).random(50).round(1)
    term = math.log(2 / 0.05)
    expected = x.mean() - math.sqrt(2 * x.var(ddof=1) * term / 50) - 7 * term / (3 * 49)
    assert bernstein_lower_bound(x, np.ones(50), 0.05) == pytest.approx(max(expected, 0))
    values, count = np.unique(x, return_counts=True)
    assert bernstein_lower_bound(values, count.astype(float), 0.05) == pytest.approx(max(expected, 0))
