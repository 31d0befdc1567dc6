"""Maps that are constant per bin, against averages written out."""

import numpy as np
import pytest
from scipy.special import betaln

import calibrant as cal
from calibrant import recalibrate as rc
from calibrant.numerics.equal_mass import RunningWeight
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
    with pytest.raises(TypeError, match="binary map is needed"):
        rc.ScalingBinning(scaling=rc.Temperature()).fit(p, y)


def test_bayesian_binning_is_the_average_of_histograms_by_evidence():
    p, y = squared_world(80)
    order = np.argsort(p)
    p, y = p[order], y[order]
    new = np.linspace(0.01, 0.99, 33)
    predictions, evidence = [], []
    for number in range(1, 17):
        ranks = 80 * np.arange(1, number) // number
        edges = np.concatenate([[0], p[ranks - 1], [1]])
        index, place = np.searchsorted(edges[1:-1], p), np.searchsorted(edges[1:-1], new)
        weight, positive = np.bincount(index, minlength=number), np.bincount(index, y, number)
        alpha = 2 / number * (edges[1:] + edges[:-1]) / 2
        beta = 2 / number - alpha
        evidence.append((betaln(positive + alpha, weight - positive + beta) - betaln(alpha, beta)).sum())
        predictions.append(((positive + alpha) / (weight + 2 / number))[place])
    share = np.exp(np.array(evidence) - max(evidence))
    expected = share @ np.array(predictions) / share.sum()
    fitted = rc.BayesianBinning().fit(p, y)
    np.testing.assert_allclose(fitted.predict_proba(new)[:, 1], expected, atol=1e-7)
    assert sum(fitted.evidence_.values()) == pytest.approx(1)


@pytest.mark.parametrize(("n", "fewest", "most"), [(3, 1, 1), (80, 1, 16), (1000, 1, 100), (29_000, 3, 308)])
def test_the_numbers_of_bins_are_those_of_the_paper(n, fewest, most, monkeypatch):
    seen, cuts = [], RunningWeight.cuts

    def counted(self, number):
        seen.append(number)
        return cuts(self, number)

    monkeypatch.setattr(RunningWeight, "cuts", counted)
    rc.BayesianBinning().fit((np.arange(n) + 0.5) / n, np.arange(n) % 2)
    assert seen == list(range(fewest, most + 1))
