"""Pooling of adjacent violators."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.isotonic import IsotonicRegression

from calibrant.numerics.smoothers import pool_adjacent_violators


@pytest.mark.no_cover
@given(st.lists(st.tuples(st.floats(0.1, 5), st.floats(-3, 3)), min_size=1, max_size=200))
def test_pooling_gives_the_isotonic_fit(rows):
    weight, value = (np.array(column) for column in zip(*rows, strict=True))
    starts, total, observed = pool_adjacent_violators(weight, weight * value)
    fit = np.repeat(observed / total, np.diff(starts, append=len(weight)))
    expected = IsotonicRegression().fit_transform(np.arange(len(weight)), value, sample_weight=weight)
    np.testing.assert_allclose(fit, expected, atol=1e-9)


def test_pooling_survives_a_cascade_that_vectorised_rounds_cannot_finish():
    value = np.concatenate([np.arange(500.0), [-1e9]])
    starts, _, _ = pool_adjacent_violators(np.ones(501), value)
    assert len(starts) == 1
