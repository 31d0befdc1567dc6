"""Bayesian binning: the average over binnings written out."""

import numpy as np
import pytest
from scipy.special import betaln

from calibrant import recalibrate as rc
from calibrant.numerics.equal_mass import RunningWeight
from tests.recalibrate.worlds import squared_world


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
