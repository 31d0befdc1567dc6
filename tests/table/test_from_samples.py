"""The bins of many samples are the tables of each."""

import numpy as np
import pytest

import calibrant as cal
from calibrant.numerics.sorted_samples import SortedSamples
from calibrant.table.from_samples import bin_samples
from tests.estimators.batches import WORLDS


@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize("binning", [cal.EqualWidth(4), cal.EqualMass(3), cal.Edges([0, 0.2, 1]), cal.pu.PaperBins()])
def test_sums_are_those_of_the_table_of_each_sample(world, binning):
    scores, outcomes = WORLDS[world].draw(np.random.default_rng(0), (5, 40))
    bins = bin_samples(SortedSamples.of(scores, outcomes), binning)
    share = np.broadcast_to(bins.share, bins.mass.shape)
    for sample, (y, p) in enumerate(zip(outcomes, scores, strict=True)):
        table = cal.BinTable.of(cal.Binary(y, p), binning).filled()
        filled = share[sample] > 0
        assert share[sample][filled] == pytest.approx(table.share)
        gap = table.predicted_mean - table.observed_mean
        assert bins.mass[sample][filled] == pytest.approx(table.share * gap, abs=1e-14)
        several = table.count > 1
        rate = table.observed_mean[several]
        variance = rate * (1 - rate) / (table.count[several] - 1) * table.share[several] ** 2
        assert bins.mass_variance[sample][filled][several] == pytest.approx(variance, abs=1e-15)
        assert np.isnan(bins.mass_variance[sample][filled][~several]).all()


def test_scores_outside_the_edges_are_refused():
    samples = SortedSamples.of(np.array([[0.1, 0.7]]), np.array([[0, 1]], dtype=np.int8))
    with pytest.raises(ValueError, match="outside the edges"):
        bin_samples(samples, cal.EqualWidth(5, low=0.2, high=0.8))
