"""The variational estimator on positive-unlabeled data: its formulas, folds and standard error."""

import numpy as np
import pytest

import calibrant as cal


class Fixed:
    """A map that is known beforehand."""

    def get_params(self, deep=True):
        return {}

    def fit(self, data):
        return self

    def predict_proba(self, scores):
        g = 0.1 + 0.8 * np.asarray(scores, dtype=float)
        return np.stack([1 - g, g], axis=1)


def sample(*, weighted=False, seed=0):
    rng = np.random.default_rng(seed)
    positive, unlabeled = rng.beta(3, 1.5, 60), rng.beta(1, 1.2, 200)
    weight = rng.random(260) + 0.2 if weighted else None
    return cal.PositiveUnlabeled(positive, unlabeled, prior=0.4, weight=weight)


def means(data):
    """Weighted mean over the positives and over the unlabeled rows."""
    w_p, w_u = (
        np.ones(len(side)) if weight is None else weight
        for side, weight in ((data.positive, data.positive_weight), (data.unlabeled, data.unlabeled_weight))
    )
    return (lambda x: w_p @ x / w_p.sum()), (lambda x: w_u @ x / w_u.sum())


@pytest.mark.parametrize("weighted", [False, True])
def test_the_formulas_written_out(weighted):
    data = sample(weighted=weighted)
    of_p, of_u = means(data)
    f_p, f_u = data.positive, data.unlabeled
    g_p, g_u = 0.1 + 0.8 * f_p, 0.1 + 0.8 * f_u
    l1 = 0.4 * of_p(np.sign(g_p - f_p)) - of_u(np.sign(g_u - f_u) * f_u)
    squared = of_u(f_u**2 - g_u**2) - 2 * 0.4 * of_p(f_p - g_p)

    def log_loss(p, u):
        return -0.4 * of_p(np.log(p / (1 - p))) - of_u(np.log(1 - u))

    kl = log_loss(f_p, f_u) - log_loss(g_p, g_u)
    for norm, expected in ((1, l1), ("squared", squared), ("kl", kl)):
        found = cal.calibration_error(data, norm=norm, recalibrator=Fixed())
        assert found == pytest.approx(expected, rel=1e-9)
        assert found.method == "5 folds, Fixed"
    assert cal.calibration_error(data, norm="kl", recalibrator=Fixed()).name == "Calibration error (KL)"


def test_the_standard_error_adds_those_of_the_two_samples():
    data = sample()
    f_p, f_u = data.positive, data.unlabeled
    of_p, of_u = np.sign(0.1 - 0.2 * f_p), np.sign(0.1 - 0.2 * f_u) * f_u
    expected = np.sqrt(0.4**2 * of_p.var() / len(f_p) + of_u.var() / len(f_u))
    found = cal.calibration_error(data, norm=1, recalibrator=Fixed())
    assert found.details["standard_error"] == pytest.approx(expected, rel=1e-9)


def test_labelled_rows_of_a_single_sample_are_not_counted_as_independent():
    rng = np.random.default_rng(1)
    p = rng.random(400)
    labelled = (rng.random(400) < p) & (rng.random(400) < 0.5)
    data = cal.PositiveUnlabeled.from_labels(labelled, p, prior=0.5, scenario="single-sample")
    found = cal.calibration_error(data, norm=1, recalibrator=Fixed())
    s = np.sign(0.1 - 0.2 * p)
    share = labelled / labelled.sum()
    mean_p, mean_u = share @ s, (s * p).mean()
    noise = 0.5 * share * (s - mean_p) - (s * p - mean_u) / 400
    assert found == pytest.approx(0.5 * mean_p - mean_u, rel=1e-9)
    assert found.details["standard_error"] == pytest.approx(np.sqrt(noise @ noise), rel=1e-9)


def test_a_map_that_changes_nothing_gives_exactly_zero():
    class Same(Fixed):
        def predict_proba(self, scores):
            return np.stack([1 - scores, scores], axis=1)

    for norm in (1, "squared", "kl"):
        assert cal.calibration_error(sample(), norm=norm, recalibrator=Same()) == 0.0


def test_repeats_are_averaged_and_the_seed_decides():
    data = sample()
    again = cal.calibration_error(data, repeats=3)
    assert again.method == "5 folds x 3, PUPlatt"
    assert again == cal.calibration_error(data, repeats=3)
    assert cal.calibration_error(data, seed=1) != cal.calibration_error(data, seed=2)


def test_weights_may_be_scaled():
    data = sample(weighted=True)
    scaled = cal.PositiveUnlabeled(data.positive, data.unlabeled, prior=0.4, weight=5 * data.weight)
    assert cal.calibration_error(scaled) == pytest.approx(float(cal.calibration_error(data)), rel=1e-6)


def test_other_distances_are_refused():
    distance = cal.estimators.Distance(lambda f, q: q, lambda f, q: q)
    with pytest.raises(ValueError, match="on positive-unlabeled data"):
        cal.calibration_error(sample(), norm=distance)
