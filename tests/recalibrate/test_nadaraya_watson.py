"""The kernel map: the double sum, and places without neighbours."""

import numpy as np
import pytest

from calibrant import recalibrate as rc
from tests.recalibrate.worlds import squared_world


@pytest.mark.parametrize("bandwidth", [0.02, 0.1, 0.5])
def test_nadaraya_watson_is_the_double_sum(bandwidth):
    p, y = squared_world(400)
    new = np.linspace(0, 1, 41)
    kernel = np.exp(-0.5 * ((new[:, None] - p) / bandwidth) ** 2)
    fitted = rc.NadarayaWatson(bandwidth=bandwidth).fit(p, y)
    expected = np.clip(kernel @ y / kernel.sum(axis=1), 1 / 402, 401 / 402)
    np.testing.assert_allclose(fitted.predict_proba(new)[:, 1], expected, atol=2e-5)


def test_nadaraya_watson_far_from_all_rows_takes_the_nearest_estimate():
    fitted = rc.NadarayaWatson(bandwidth=0.01).fit([0.1, 0.11, 0.12], [0, 1, 0])
    assert fitted.predict_proba([0.9])[0, 1] == pytest.approx(1 / (3 + 2))  # beyond 0.12, where a 0 was seen
    with pytest.raises(ValueError, match="bandwidth must be"):
        rc.NadarayaWatson(bandwidth=0).fit([0.1, 0.2], [0, 1])
