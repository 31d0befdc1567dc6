"""Maps fitted to positives and unlabeled rows: against ordinary maps, against SciPy, and in known worlds."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit, logit
from sklearn.isotonic import IsotonicRegression

import calibrant as cal
from calibrant import pu
from calibrant import recalibrate as rc
from tests.pu.worlds import LESS, drawn, everybody
from tests.recalibrate.sql_maps import ENGINES, frame_of

MAPS = [pu.PUPlatt(), pu.PUTemperature(), pu.PUBeta(), pu.PUIsotonic(), pu.PUHistogram()]
X = np.linspace(-12, 12, 20_001)
DENSITY = np.exp(-((X - 1) ** 2) / 2) / 2 + np.exp(-((X + 1) ** 2) / 2) / 2
DENSITY /= DENSITY.sum()


def true_error(fitted, world=LESS):
    """Calibration error of the repaired model: outputs against the mean outcome of all x that share the output."""
    output = fitted.predict_proba(expit(world[0] + world[1] * X))[:, 1]
    _, which = np.unique(np.round(output, 12), return_inverse=True)
    return float(np.abs(np.bincount(which, DENSITY * (output - expit(2 * X)))).sum())


@pytest.mark.parametrize(
    ("pu_map", "ordinary"),
    [
        (pu.PUPlatt(ridge=1e-9), rc.Platt()),
        (pu.PUTemperature(ridge=1e-9), rc.Temperature()),
        (pu.PUBeta(ridge=1e-9), rc.Beta()),
        (pu.PUIsotonic(), rc.Isotonic(allow_certainty=True)),
    ],
    ids=repr,
)
def test_with_its_own_positives_a_sample_gives_the_ordinary_map(pu_map, ordinary):
    p, y = everybody(np.random.default_rng(0), 1500, LESS)
    fitted = pu_map.fit(cal.PositiveUnlabeled(p[y], p, prior=y.mean()))
    np.testing.assert_allclose(fitted.predict_proba(p), ordinary.fit(p, y).predict_proba(p), atol=2e-6)


def test_platt_minimises_the_penalised_unbiased_risk():
    data = drawn(np.random.default_rng(1), 100, 1000, LESS)
    h_u, h_p = logit(data.unlabeled), logit(data.positive)

    def risk(coefficients):
        a, b = coefficients
        away = a**2 + (b - 1) ** 2 * np.mean(h_u**2)
        return np.mean(np.logaddexp(0, a + b * h_u)) - 0.5 * np.mean(a + b * h_p) + 0.05 / 2 * away

    best = minimize(risk, [0, 1], tol=1e-12).x
    np.testing.assert_allclose(pu.PUPlatt(ridge=0.05).fit(data).coefficients_, best, atol=1e-4)


def test_platt_exists_for_every_sample_and_keeps_the_base_rate():
    rng = np.random.default_rng(2)
    for _ in range(100):
        fitted = pu.PUPlatt().fit(drawn(rng, 30, 300, LESS))
        assert np.isfinite(fitted.coefficients_).all()
    separated = cal.PositiveUnlabeled([0.99] * 5, [0.01] * 5 + [0.99] * 5, prior=0.5)
    assert np.abs(pu.PUPlatt().fit(separated).coefficients_).max() < 20
    data = drawn(rng, 2000, 20_000, LESS)
    assert pu.PUPlatt(ridge=1e-9).fit(data).predict_proba(data.unlabeled)[:, 1].mean() == pytest.approx(0.5, abs=1e-6)


def test_platt_repairs_the_less_calibrated_model():
    rng = np.random.default_rng(3)
    after = [true_error(pu.PUPlatt().fit(drawn(rng, 1000, 10_000, LESS))) for _ in range(15)]
    assert np.mean(after) <= 0.02
    small = [true_error(pu.PUPlatt().fit(drawn(rng, 100, 1000, LESS))) for _ in range(40)]
    assert np.mean(small) <= 0.050  # 0.037 in the record at a ridge of 0.01, 0.074 before


@pytest.mark.parametrize(("pu_map", "expected"), [(pu.PUIsotonic(), 0.027), (pu.PUHistogram(), 0.031)], ids=repr)
def test_shapes_repair_the_less_calibrated_model_as_recorded(pu_map, expected):
    rng = np.random.default_rng(4)
    after = [true_error(pu_map.fit(drawn(rng, 1000, 10_000, LESS))) for _ in range(20)]
    assert np.mean(after) == pytest.approx(expected, abs=0.006)


def test_beta_keeps_its_bounds():
    rng = np.random.default_rng(6)
    for _ in range(20):
        a, b, _ = pu.PUBeta(ridge=1e-6).fit(drawn(rng, 15, 60, LESS)).coefficients_
        assert min(a, b) >= 0


@pytest.mark.parametrize("pu_map", MAPS, ids=repr)
def test_maps_can_be_saved_weighted_and_fitted_to_two_samples(pu_map, tmp_path):
    data = drawn(np.random.default_rng(7), 40, 200, LESS)
    fitted = pu_map.fit(data)
    p = np.linspace(0, 1, 21)
    fitted.save(tmp_path / "map.json")
    np.testing.assert_array_equal(rc.load(tmp_path / "map.json").predict_proba(p), fitted.predict_proba(p))
    by_hand = type(pu_map)(prior=0.5).fit(data.positive, data.unlabeled)
    np.testing.assert_allclose(by_hand.predict_proba(p), fitted.predict_proba(p))
    logits = type(pu_map)(prior=0.5, input="logits").fit(logit(data.positive), logit(data.unlabeled))
    np.testing.assert_allclose(logits.predict_proba(logit(p[1:-1])), fitted.predict_proba(p[1:-1]), atol=1e-9)
    weight = np.full(len(data), 3.0)
    heavy = type(pu_map)().fit(cal.PositiveUnlabeled(data.positive, data.unlabeled, prior=0.5, weight=weight))
    np.testing.assert_allclose(heavy.predict_proba(p), fitted.predict_proba(p), atol=1e-9)


@pytest.mark.parametrize("pu_map", MAPS, ids=repr)
def test_the_unit_of_the_weights_does_not_matter(pu_map):
    """Importance weights: a constant factor changes nothing, equal weights are no weights, and 0 is no row."""
    data, rng, p = drawn(np.random.default_rng(7), 40, 200, LESS), np.random.default_rng(8), np.linspace(0, 1, 21)

    def fitted(weight, rows=slice(None)):
        positive, unlabeled = data.positive[rows], data.unlabeled[rows]
        weighted = cal.PositiveUnlabeled(positive, unlabeled, prior=0.5, weight=weight)
        return type(pu_map)(laplace=1.0).fit(weighted)

    for weight in (rng.exponential(size=240), rng.integers(0, 4, 240), 10.0 ** rng.uniform(-100, 100, 240)):
        expected = fitted(weight).predict_proba(p)
        assert np.isfinite(expected).all()
        for factor in (1e-3, 7, 1e6):
            np.testing.assert_allclose(fitted(factor * weight).predict_proba(p), expected, rtol=0, atol=1e-9)
    np.testing.assert_allclose(fitted(np.full(240, 7.0)).predict_proba(p), fitted(None).predict_proba(p), atol=1e-12)
    zeros = np.concatenate([np.repeat([1.0, 0.0], 20), np.ones(20), np.zeros(180)])
    np.testing.assert_array_equal(fitted(zeros).predict_proba(p), fitted(None, slice(20)).predict_proba(p))
    assert fitted(zeros).weight_ == 40


def test_maps_refuse_what_they_cannot_use():
    with pytest.raises(cal.InvalidPredictions, match="needs a PositiveUnlabeled"):
        pu.PUPlatt().fit([0.5], [0.4])
    with pytest.raises(TypeError, match="not both"):
        pu.PUPlatt().fit(cal.PositiveUnlabeled([0.5], [0.5], prior=0.5), [0.1])
    with pytest.raises(ValueError, match="ridge must be positive"):
        pu.PUPlatt(ridge=0.0).fit(cal.PositiveUnlabeled([0.5], [0.5], prior=0.5))


@pytest.mark.parametrize("name", ["PUPlatt", "PUTemperature", "PUBeta", "PUIsotonic", "PUHistogram"])
def test_maps_are_the_same_in_sql(name):
    rng = np.random.default_rng(0)
    data = cal.PositiveUnlabeled(rng.beta(3, 2, 300), rng.beta(2, 3, 1_000), prior=0.3)
    made = getattr(cal.pu, name)(laplace=1.0).fit(data)
    new = np.concatenate([rng.random(5_000), data.positive, data.unlabeled, [0.0, 1.0]])
    for dialect, engine in ENGINES.items():
        found = engine([made.to_sql("p", dialect=dialect)], frame_of(new))[:, 0]
        np.testing.assert_allclose(found, made.predict_proba(new)[:, 1], rtol=0, atol=1e-12)


def test_isotonic_is_that_of_scikit_learn_on_pooled_positives_and_rises():
    data = drawn(np.random.default_rng(5), 80, 500, LESS)
    order = np.sort(data.unlabeled)
    at = np.minimum(np.searchsorted(order, data.positive), 499)
    y = 0.5 * 500 / 80 * np.bincount(at, minlength=500)
    expected = IsotonicRegression(y_min=0, y_max=1).fit(order, y).predict(order)
    fitted = pu.PUIsotonic().fit(data)
    np.testing.assert_allclose(fitted.predict_proba(order)[:, 1], expected, atol=1e-12)
    assert np.all(np.diff(fitted.predict_proba(np.linspace(0, 1, 500))[:, 1]) >= 0)


def test_the_prior_shift_is_bayes_rule():
    p = np.array([0.0, 0.2, 0.5, 0.9, 1.0])
    expected = p * 0.14 / 0.5 / (p * 0.14 / 0.5 + (1 - p) * 0.86 / 0.5)
    np.testing.assert_allclose(pu.prior_shift(p, from_prior=0.5, to_prior=0.14), expected)
    h = np.array([-1.0, 0.0, 3.0])
    shifted = pu.prior_shift(h, from_prior=0.5, to_prior=0.14, input="logits")
    np.testing.assert_allclose(logit(shifted) - h, -1.815, atol=1e-3)
    with pytest.raises(cal.InvalidPredictions, match="one column"):
        pu.prior_shift([[0.5, 0.5]], from_prior=0.5, to_prior=0.1)


def test_the_histogram_is_the_implied_share_of_positives_per_bin():
    rng = np.random.default_rng(0)
    positive, unlabeled = rng.beta(2, 1, 200), rng.random(900)
    data = cal.PositiveUnlabeled(positive, unlabeled, prior=0.3)
    fitted = pu.PUHistogram(bins=cal.EqualWidth(5)).fit(data)
    share = 0.3 * np.histogram(positive, 5, (0, 1))[0] / 200
    np.testing.assert_allclose(fitted.values_, np.minimum(share / (np.histogram(unlabeled, 5, (0, 1))[0] / 900), 1))
    empty = pu.PUHistogram(bins=cal.Edges([0, 0.5, 0.9, 1])).fit(cal.PositiveUnlabeled([0.6], [0.2, 0.6], prior=0.9))
    np.testing.assert_allclose(empty.values_, [0.0, 1.0, 0.95])


def test_the_prior_is_shifted_on_log_odds_too():
    z = np.array([-50.0, 0.0, 3.0])
    expected = expit(z + logit(0.2) - logit(0.5))
    found = pu.prior_shift(z, from_prior=0.5, to_prior=0.2, input="logits")
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    same = pu.prior_shift(expit(z), from_prior=0.3, to_prior=0.3)
    np.testing.assert_allclose(same, expit(z), rtol=1e-12)
    with pytest.raises(cal.InvalidPredictions, match="moves one column"):
        pu.prior_shift([[0.5, 0.5]], from_prior=0.5, to_prior=0.2)
