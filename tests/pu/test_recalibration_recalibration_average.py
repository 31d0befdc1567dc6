"""PUAverage under a wrong prior: never worse than nothing, and it says how much the prior matters."""

import warnings

import numpy as np
import pytest

import calibrant as cal
from calibrant import pu
from calibrant import recalibrate as rc
from tests.pu.test_recalibration import true_error
from tests.pu.worlds import BETTER, CALIBRATED, LESS, TRUE_ERROR, everybody, positives
from tests.recalibrate.sql_maps import ENGINES, frame_of

pytestmark = pytest.mark.filterwarnings("ignore::calibrant.pu.PriorSensitivityWarning")


def data(world=LESS, prior=0.5, seed=0, sizes=(500, 5000)):
    rng = np.random.default_rng(seed)
    return cal.PositiveUnlabeled(positives(rng, sizes[0], world), everybody(rng, sizes[1], world)[0], prior=prior)


def test_both_maps_have_the_prior_nearest_to_the_mean_score():
    for prior, interval, expected in ((0.5, None, 0.45), (0.5, (0.3, 0.6), None), (0.3, (0.25, 0.35), 0.35)):
        rows = data(prior=prior)
        fitted = pu.PUAverage(prior_interval=interval).fit(rows)
        used = rows.unlabeled.mean() if expected is None else expected
        assert fitted.prior_used_ == pytest.approx(used)
        told = cal.PositiveUnlabeled(rows.positive, rows.unlabeled, prior=used)
        parts = [inner.fit(told).predict_proba(rows.unlabeled) for inner in (pu.PUPlatt(), pu.PUIsotonic())]
        np.testing.assert_allclose(fitted.predict_proba(rows.unlabeled), np.mean(parts, axis=0), atol=1e-9)


@pytest.mark.no_cover
@pytest.mark.parametrize("world", [LESS, BETTER, CALIBRATED], ids=["less", "better", "calibrated"])
def test_a_prior_ten_per_cent_off_does_little_harm(world):
    """Above all not what a map that trusts it does.

    A mean of five errors has a standard error of 0.002 to 0.003. `PUPlatt` with a wrong prior has an error of 0.06,
    with the true one 0.02; the average then costs up to 0.013 more, and 0.038 where the mean score is below the prior.
    """
    for factor in (0.9, 1.0, 1.1):
        errors = {"average": [], "platt": []}
        for seed in range(5):
            rows = data(world, 0.5 * factor, seed)
            errors["average"].append(true_error(pu.PUAverage().fit(rows), world))
            errors["platt"].append(true_error(pu.PUPlatt().fit(rows), world))
        assert np.mean(errors["average"]) < max(TRUE_ERROR[world] + 0.004, 0.04)
        if factor > 1 or world != LESS:  # the mean score of that world is below the true prior
            assert np.mean(errors["average"]) < np.mean(errors["platt"]) + 0.017 * (factor == 1)


def test_the_sensitivity_is_that_of_the_two_ends_and_the_warning_says_it():
    rows = data(CALIBRATED)
    with pytest.warns(pu.PriorSensitivityWarning, match=r"priors 0\.45 and 0\.55 .* differ by 0\.\d+ on av"):
        fitted = pu.PUAverage().fit(rows)
    ends = []
    for prior in (0.45, 0.55):
        told = cal.PositiveUnlabeled(rows.positive, rows.unlabeled, prior=prior)
        parts = [inner.fit(told).predict_proba(rows.unlabeled) for inner in (pu.PUPlatt(), pu.PUIsotonic())]
        ends.append(np.mean(parts, axis=0)[:, 1])
    assert fitted.sensitivity_ == pytest.approx(np.abs(ends[1] - ends[0]).mean(), abs=1e-9)
    change = np.abs(fitted.predict_proba(rows.unlabeled)[:, 1] - rows.unlabeled).mean()
    assert fitted.change_ == pytest.approx(change)


def test_a_large_repair_with_a_prior_known_well_does_not_warn():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fitted = pu.PUAverage(prior_interval=(0.495, 0.505)).fit(data((-2.0, 1.0)))
    assert fitted.sensitivity_ < fitted.change_


def test_a_prior_that_the_scores_rule_out_is_cut():
    rng = np.random.default_rng(0)
    rows = cal.PositiveUnlabeled(
        rng.uniform(0.6, 1, 2000), np.concatenate([rng.uniform(0, 0.6, 8000), rng.uniform(0.6, 1, 2000)]), prior=0.2
    )
    fitted = pu.PUAverage(prior_interval=(0.1, 0.9)).fit(rows)
    assert 0.2 < fitted.prior_interval_[1] < 0.3
    largest = pu.largest_prior(cal.BinTable.of(rows, cal.EqualMass(20)), level=0.95)
    assert fitted.prior_interval_[1] == pytest.approx(largest)


def test_weights_files_and_sql(tmp_path):
    rows = data()
    weight = np.random.default_rng(1).uniform(0.5, 2, len(rows))
    weighted = cal.PositiveUnlabeled(rows.positive, rows.unlabeled, prior=0.5, weight=weight)
    other = cal.PositiveUnlabeled(rows.positive, rows.unlabeled, prior=0.5, weight=7 * weight)
    new = np.linspace(0, 1, 1001)
    fitted = pu.PUAverage().fit(weighted)
    np.testing.assert_allclose(pu.PUAverage().fit(other).predict_proba(new), fitted.predict_proba(new), atol=1e-9)
    fitted.save(tmp_path / "map.json")
    np.testing.assert_array_equal(rc.load(tmp_path / "map.json").predict_proba(new), fitted.predict_proba(new))
    for dialect, engine in ENGINES.items():
        found = engine([fitted.to_sql("p", dialect=dialect)], frame_of(new))[:, 0]
        np.testing.assert_allclose(found, fitted.predict_proba(new)[:, 1], rtol=0, atol=1e-12)


def test_two_samples_of_logits_and_bad_intervals():
    rng = np.random.default_rng(0)
    fitted = pu.PUAverage(prior=0.5, input="logits").fit(rng.normal(1, 1, 300), rng.normal(0, 1.4, 3000))
    assert np.isfinite(fitted.predict_proba([-2.0, 0.0, 2.0])).all()
    with pytest.raises(ValueError, match="prior_interval must rise"):
        pu.PUAverage(prior_interval=(0.6, 0.4)).fit(data())
    with pytest.raises(ValueError, match="prior_interval"):
        pu.PUAverage(prior_interval=(0.0, 0.4)).fit(data())
