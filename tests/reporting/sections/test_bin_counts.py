"""ECE against the number of bins: the numbers of `ece`, and the range of a calibrated model."""

import numpy as np
import pytest

import calibrant as cal
from calibrant.reporting.part import Part
from calibrant.reporting.sections.bin_counts import STOPS, bin_counts
from calibrant.reporting.sections.omission import CannotBuild
from tests.reporting.sections.worlds import binary, part


@pytest.mark.parametrize("columns", [{}, {"digits": 1}, {"weight": np.random.default_rng(0).random(3000)}])
def test_every_error_is_that_of_ece(columns):
    data = binary(3000, slope=0.7, **columns)
    found = bin_counts(Part(data))
    for k, bins in enumerate(found.counts):
        assert found.equal_mass[k] == pytest.approx(float(cal.ece(data, bins=bins)))
        assert found.equal_width[k] == pytest.approx(float(cal.ece(data, bins=cal.EqualWidth(bins))))


@pytest.mark.no_cover
def test_the_range_is_that_of_calibrated_samples():
    data = binary(1000, mean=-2.0)
    found = bin_counts(Part(data))
    rng = np.random.default_rng(1)
    for bins in (2, 15, 100):
        drawn = [float(cal.ece(rng.random(1000) < data.y_prob, data.y_prob, bins=bins)) for _ in range(300)]
        k = found.counts.index(bins)
        low, high = np.quantile(drawn, [0.05, 0.95])
        assert found.null_low[k] == pytest.approx(low, rel=0.15, abs=0.002)
        assert found.null_high[k] == pytest.approx(high, rel=0.1)


def test_clusters_widen_the_range():
    p = np.repeat(np.random.default_rng(0).random(200), 20)
    y = np.repeat(np.random.default_rng(1).random(200) < p[::20], 20)
    rows, clusters = (bin_counts(Part(cal.Binary(y, p, group=group))) for group in (None, np.arange(4000) // 20))
    assert clusters.null_high[3] > 2 * rows.null_high[3]


def test_a_bin_needs_rows():
    assert bin_counts(part(40)).counts == (2, 3, 5, 8, 10, 15, 20)
    assert bin_counts(part(2000)).counts == STOPS
    for few in (cal.Binary([0, 1, 1], [0.1, 0.2, 0.3]), cal.Binary([0, 1] * 50, [0.5] * 100)):
        with pytest.raises(CannotBuild):
            bin_counts(Part(few))
