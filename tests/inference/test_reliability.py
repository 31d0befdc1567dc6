"""Reliability curves and their bands for every task."""

import json

import numpy as np
import pytest
from sklearn.isotonic import IsotonicRegression

import calibrant as cal
from calibrant.simulate import PAPER_WORLDS, PowerCurve, UniformScores, World

BENT = World(UniformScores(), PowerCurve(2))


def test_the_curve_is_the_isotonic_regression():
    data = BENT.sample(300)
    curve = cal.reliability_curve(data, draws=20)
    theirs = IsotonicRegression().fit(data.y_prob, data.y_true).predict(curve.predicted)
    assert curve.observed == pytest.approx(theirs)


def test_a_calibrated_model_stays_in_the_consistency_band_and_a_bent_one_leaves_it():
    calibrated = [cal.reliability_curve(BENT.calibrated().sample(500, k), draws=100).outside for k in range(20)]
    assert np.mean(calibrated) < 0.12
    assert cal.reliability_curve(BENT.sample(500), draws=100).outside > 0.4


@pytest.mark.parametrize("world", [BENT, PAPER_WORLDS["resnet152_imgnet"]], ids=["bent", "network"])
def test_the_confidence_band_holds_the_true_curve_everywhere(world):
    held = []
    for k in range(25):
        curve = cal.reliability_curve(world.sample(400, k), draws=2)
        chance = world.curve(curve.predicted)
        held.append(np.all((curve.confidence_low <= chance + 1e-9) & (chance <= curve.confidence_high + 1e-9)))
    assert np.mean(held) >= 0.92
    assert curve.simultaneous


def test_the_confidence_band_holds_where_the_curve_jumps():
    """512 cells of 100,000 rows hold scores on both sides of a step."""
    rng, missed = np.random.default_rng(0), 0
    for _ in range(8):
        p = rng.random(100_000)
        curve = cal.reliability_curve(rng.random(100_000) < np.floor(20 * p) / 20, p, draws=2)
        truth = np.floor(20 * curve.predicted) / 20
        missed += bool(((truth < curve.confidence_low) | (truth > curve.confidence_high)).any())
    assert missed <= 1  # of 5 % each


def test_a_cell_of_one_score_keeps_its_own_bounds():
    rng = np.random.default_rng(1)
    p = np.append(np.full(5000, 0.5), rng.random(5000))
    data = cal.Binary(rng.random(10_000) < p, p)
    curve, width = cal.reliability_curve(data, draws=2), {}
    for name, place in (("alone", np.argmax(curve.share)), ("shared", np.argmax(curve.share) + 5)):
        width[name] = curve.confidence_high[place] - curve.confidence_low[place]
    assert width["alone"] < 0.12 < width["shared"]


def test_bins_have_binomial_bands():
    data = BENT.sample(1000)
    curve = cal.reliability_curve(data, bins=cal.EqualWidth(5))
    table = cal.ece(data, bins=cal.EqualWidth(5)).bins
    assert curve.observed == pytest.approx(table.observed_mean)
    assert np.all((curve.consistency_low < curve.predicted) & (curve.predicted < curve.consistency_high))
    assert np.all((curve.confidence_low < curve.observed) & (curve.observed < curve.confidence_high))


def test_spread_and_positives_have_curves():
    rng = np.random.default_rng(0)
    std = rng.uniform(0.5, 2, 2000)
    spread = cal.reliability_curve(cal.Gaussian(rng.normal(size=2000) * std, np.zeros(2000), std))
    assert (spread.kind, spread.outside) == ("spread", pytest.approx(0.0, abs=0.25))
    assert np.all((spread.confidence_low < spread.observed) & (spread.observed < spread.confidence_high))
    positives = cal.PositiveUnlabeled(rng.beta(2, 1, 500), rng.random(5000), prior=0.5)
    curve = cal.reliability_curve(positives)
    assert curve.kind == "positive-unlabeled"
    assert np.all((curve.consistency_low <= curve.predicted) & (curve.predicted <= curve.consistency_high))
    assert curve.outside <= 0.3


def test_weights_are_taken_by_their_effective_number():
    data = BENT.sample(300)
    one, other = (
        cal.reliability_curve(cal.Binary(data.y_true, data.y_prob, weight=w), draws=10)
        for w in (None, np.full(300, 3.0))
    )
    assert other.observed == pytest.approx(one.observed)
    assert other.confidence_low == pytest.approx(one.confidence_low)


def test_curves_are_plain_data_and_exact_by_seed():
    data = BENT.sample(200)
    one, other = (cal.reliability_curve(data, draws=20, seed=3) for _ in range(2))
    assert json.dumps(one.to_dict()) == json.dumps(other.to_dict())
    assert "isotonic" in repr(one)


def test_a_curve_draws_itself():
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    _, ax = plt.subplots()
    assert cal.reliability_curve(BENT.sample(200), draws=10).plot(ax, color="k") is ax
    assert len(ax.collections) == 2
    plt.close("all")


def test_bad_levels_are_refused():
    with pytest.raises(ValueError, match="level"):
        cal.reliability_curve(BENT.sample(20), level=2)


def test_the_kind_is_that_of_the_task():
    data = BENT.sample(200)
    isotonic = cal.reliability_curve(data, kind="isotonic", draws=5)
    assert isotonic.to_dict() == cal.reliability_curve(data.y_true, data.y_prob, draws=5).to_dict()
    assert cal.reliability_curve(data, kind="binned").kind == "binned"
    assert len(cal.reliability_curve(data, kind="binned", bins=cal.EqualMass(4)).predicted) == 4
    with pytest.raises(ValueError, match="no bins"):
        cal.reliability_curve(data, kind="isotonic", bins=cal.EqualMass(4))
    with pytest.raises(ValueError, match="kind must be 'isotonic'"):
        cal.reliability_curve(data, kind="spread")
    with pytest.raises(ValueError, match="kind must be 'spread'"):
        cal.reliability_curve(cal.Gaussian([0.0, 1.0], [0.0, 0.0], [1.0, 2.0]), kind="isotonic")


def test_confidence_gaps_need_bins():
    with pytest.raises(ValueError, match="has no bins"):
        cal.inference.confidence_gaps(cal.brier(BENT.sample(20)))
