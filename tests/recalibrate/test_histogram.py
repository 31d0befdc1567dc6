"""Maps that are constant on parts of the scores, the kernel map, and the wrappers."""

import numpy as np
import pytest
from scipy.special import betaln
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

import calibrant as cal
from calibrant import recalibrate as rc


def world(n=1000, seed=0):
    rng = np.random.default_rng(seed)
    p = rng.random(n)
    return p, (rng.random(n) < p**2).astype(int)


@pytest.mark.parametrize("bins", [cal.EqualMass(7), cal.EqualWidth(5), cal.Edges([0, 0.3, 0.5, 1])], ids=repr)
def test_histogram_gives_the_share_of_positives_of_the_bin(bins):
    p, y = world()
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
    p, y = world(300)
    fitted = rc.ScalingBinning(scaling=rc.Beta(), bins=cal.EqualMass(5)).fit(p, y)
    scaled = rc.Beta().fit(p, y).predict_proba(p)[:, 1]
    table = cal.BinTable.of(cal.Binary(y, scaled), cal.EqualMass(5))
    np.testing.assert_allclose(fitted.values_, table.predicted_mean, atol=1e-9)
    assert len(np.unique(fitted.predict_proba(p)[:, 1])) == 5
    with pytest.raises(TypeError, match="map of one event"):
        rc.ScalingBinning(scaling=rc.Temperature()).fit(p, y)


def test_bayesian_binning_is_the_average_of_histograms_by_evidence():
    p, y = world(80)
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


@pytest.mark.parametrize("bandwidth", [0.02, 0.1, 0.5])
def test_nadaraya_watson_is_the_double_sum(bandwidth):
    p, y = world(400)
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


def test_partition_gives_the_class_shares_of_its_cluster():
    rng = np.random.default_rng(0)
    p = rng.dirichlet([1, 1, 1], 500)
    y = np.array([rng.choice(3, p=row) for row in p])
    fitted = rc.Partition(clusters=6).fit(p, y)
    nearest = ((p[:, None] - fitted.centres_) ** 2).sum(axis=2).argmin(axis=1)
    for cluster in range(6):
        share = np.bincount(y[nearest == cluster], minlength=3) / (nearest == cluster).sum()
        if share.all():
            np.testing.assert_allclose(fitted.values_[cluster], share)
    assert len(rc.Partition().fit([0.1, 0.2, 0.2], [0, 1, 0]).centres_) == 2


def test_a_cluster_without_some_class_gives_it_laplaces_rule():
    fitted = rc.Partition(clusters=1).fit([[0.2, 0.3, 0.5], [0.3, 0.2, 0.5]], [0, 1])
    np.testing.assert_allclose(fitted.values_, [[0.4, 0.4, 0.2]])
    certain = rc.Partition(clusters=1, allow_certainty=True).fit([[0.2, 0.3, 0.5], [0.3, 0.2, 0.5]], [0, 1])
    np.testing.assert_allclose(certain.values_, [[0.5, 0.5, 0]])


def test_one_vs_rest_is_one_map_per_class_scaled_to_one():
    rng = np.random.default_rng(0)
    p = rng.dirichlet([1, 1, 1, 1], 300)
    y = np.array([rng.choice(4, p=row) for row in p])
    columns = [rc.Beta().fit(p[:, k], y == k).predict_proba(p[:, k])[:, 1] for k in range(4)]
    expected = np.stack(columns, axis=1)
    expected /= expected.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(rc.OneVsRest(rc.Beta()).fit(p, y).predict_proba(p), expected, atol=1e-12)
    logits = rc.OneVsRest(rc.Beta(), input="logits").fit(np.log(p) + 3, y)
    np.testing.assert_allclose(logits.predict_proba(np.log(p) + 3), expected, atol=1e-7)


def test_one_vs_rest_needs_a_map_and_survives_columns_of_zero():
    with pytest.raises(TypeError, match="OneVsRest needs a map"):
        rc.OneVsRest(LogisticRegression()).fit([[0.2, 0.3, 0.5]] * 3, [0, 1, 2])
    certain = rc.OneVsRest(rc.Isotonic(allow_certainty=True)).fit(np.eye(3), [1, 2, 0])
    np.testing.assert_allclose(certain.predict_proba(np.eye(3)).sum(axis=1), 1)


def test_any_classifier_serves_as_a_map():
    p, y = world()
    logistic = rc.FromClassifier(LogisticRegression(C=np.inf, tol=1e-10)).fit(p, y)
    np.testing.assert_allclose(logistic.predict_proba(p), rc.Platt().fit(p, y).predict_proba(p), atol=1e-5)
    tree = rc.FromClassifier(DecisionTreeClassifier(max_depth=2), features="probabilities", laplace=1.0).fit(p, y)
    assert len(np.unique(tree.predict_proba(p))) <= 8
    with pytest.raises(ValueError, match="features must be"):
        rc.FromClassifier(LogisticRegression(), features="ranks").fit(p, y)
    with pytest.raises(ValueError, match="at least two classes"):
        rc.FromClassifier(LogisticRegression()).fit([0.2, 0.4], [1, 1])


def test_a_classifier_that_missed_a_class_keeps_its_column():
    rng = np.random.default_rng(0)
    p = rng.dirichlet([1, 1, 1], 97)
    q = rc.FromClassifier(LogisticRegression()).fit(p, rng.integers(0, 2, 97)).predict_proba(p)
    np.testing.assert_allclose(q[:, 2], 1 / 100)
    np.testing.assert_allclose(q.sum(axis=1), 1, atol=1e-12)
