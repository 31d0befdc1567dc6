"""The Kolmogorov-Smirnov error, and binary estimators averaged over classes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import calibrant as cal


@given(st.lists(st.tuples(st.integers(0, 10).map(lambda k: k / 10), st.booleans()), min_size=1, max_size=50))
def test_the_ks_error_is_the_largest_running_gap(rows):
    p, y = (np.array(column, dtype=float) for column in zip(*rows, strict=True))
    expected = max(abs((p - y)[p <= s].sum()) / len(p) for s in p)
    assert cal.ks_error(y, p) == pytest.approx(expected, abs=1e-12)
    assert cal.ks_error(y, p) <= cal.ece(y, p, bins=cal.EqualMass(50)) + 1e-12


def test_the_top_label_is_the_first_of_equal_maxima_and_keeps_weight_and_group():
    data = cal.Multiclass([1, 0], [[0.5, 0.5], [0.4, 0.6]], weight=[1, 2], group=["x", "y"])
    top = data.top_label()
    np.testing.assert_array_equal(top.y_true, [0, 0])
    np.testing.assert_array_equal(top.weight, [1, 2])
    np.testing.assert_array_equal(top.group, ["x", "y"])
