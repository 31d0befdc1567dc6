"""Maps that are constant on parts of the scores, the kernel map, and the wrappers."""

import numpy as np
import pytest

import calibrant as cal
from calibrant import recalibrate as rc
from tests.recalibrate.worlds import squared_world


@pytest.mark.parametrize("bins", [cal.EqualMass(7), cal.EqualWidth(5), cal.Edges([0, 0.3, 0.5, 1])], ids=repr)
def test_histogram_gives_the_share_of_positives_of_the_bin(bins):
    p, y = squared_world()
    table = cal.BinTable.of(cal.Binary(y, p), bins)
    histogram = rc.Histogram(bins=bins, allow_certainty=True).fit(p, y)
    np.testing.assert_allclose(histogram.values_, table.observed_mean)
    np.testing.assert_allclose(histogram.edges_[1:-1], table.edges[1:-1])


def test_histogram_bins_are_open_below_and_keep_a_score_on_an_edge():
    histogram = rc.Histogram(bins=cal.EqualWidth(2)).fit([0.4, 0.5, 0.5, 0.6], [0, 0, 1, 1])
    assert histogram.predict_proba([0.5])[0, 1] == pytest.approx(1 / 3)


def test_an_empty_bin_keeps_its_middle_and_a_bin_of_one_outcome_gets_laplaces_rule():
    histogram = rc.Histogram(bins=cal.EqualWidth(4)).fit([0.1, 0.2, 0.6, 0.7], [0, 0, 0, 1])
    np.testing.assert_allclose(histogram.values_, [1 / 4, 3 / 8, 1 / 2, 7 / 8])
    certain = rc.Histogram(bins=cal.EqualWidth(4), allow_certainty=True).fit([0.1, 0.2, 0.6, 0.7], [0, 0, 0, 1])
    assert certain.values_[0] == 0


def test_scaling_binning_averages_the_scaled_scores_of_a_bin():
    p, y = squared_world(300)
    fitted = rc.ScalingBinning(scaling=rc.Beta(), bins=cal.EqualMass(5)).fit(p, y)
    scaled = rc.Beta().fit(p, y).predict_proba(p)[:, 1]
    table = cal.BinTable.of(cal.Binary(y, scaled), cal.EqualMass(5))
    np.testing.assert_allclose(fitted.values_, table.predicted_mean, atol=1e-9)
    assert len(np.unique(fitted.predict_proba(p)[:, 1])) == 5
    with pytest.raises(TypeError, match="map of one event"):
        rc.ScalingBinning(scaling=rc.Temperature()).fit(p, y)
