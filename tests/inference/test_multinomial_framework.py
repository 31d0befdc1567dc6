"""Intercepts and slopes of several classes."""

import json

import numpy as np
import pytest

import calibrant as cal
from calibrant.inference import multinomial_framework, multinomial_recalibration


def rows(n, seed=0, shape=(2.0, 2.0, 2.0), power=1.0, shift=(1.0, 1.0, 1.0)):
    """Rows whose true probabilities are those predicted, to some power and times some factor."""
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(shape, n)
    true = p**power * np.array(shift)
    true /= true.sum(axis=1, keepdims=True)
    return cal.Multiclass((rng.random((n, 1)) > true.cumsum(axis=1)[:, :-1]).sum(axis=1), p)


def test_two_classes_have_the_numbers_of_binary_predictions():
    rng = np.random.default_rng(0)
    p = rng.random(250)
    y = (rng.random(250) < p**1.5).astype(int)
    found = multinomial_recalibration(y, np.stack([1 - p, p], axis=1), reference=0)
    slope, intercept = (cal.interval(number, y, p) for number in (cal.calibration_slope, cal.calibration_intercept))
    assert found.slopes[0] == pytest.approx(slope, abs=1e-6)
    assert found.slopes[0].interval.low == pytest.approx(slope.interval.low, abs=5e-3)
    assert found.slopes[0].interval.high == pytest.approx(slope.interval.high, abs=5e-3)
    assert found.intercepts[0] == pytest.approx(intercept, abs=1e-6)
    assert found.intercepts[0].interval.high == pytest.approx(intercept.interval.high, abs=0.05)
    assert found.joint_intercepts == pytest.approx([slope.details["intercept"]], abs=1e-6)


def test_the_numbers_are_those_of_the_world():
    found = multinomial_recalibration(rows(30_000, power=0.5), reference=0)
    assert all(0.5 in slope.interval for slope in found.slopes)
    shifted = multinomial_recalibration(rows(30_000, shift=(1.0, 1.5, 0.7)), reference=0)
    assert shifted.intercepts[0] == pytest.approx(np.log(1.5), abs=0.1)
    assert shifted.intercepts[1] == pytest.approx(np.log(0.7), abs=0.1)
    assert shifted.slopes[0].interval.method == "normal approximation"


def test_other_references_turn_the_sign_and_labels_are_kept():
    data = rows(2000, shift=(1.0, 2.0, 1.0))
    named = cal.Multiclass(np.array(["x", "y", "z"])[data.y_true], data.y_prob, classes=["x", "y", "z"])
    found = multinomial_recalibration(named, reference="y")
    assert found.classes == ("x", "z")
    first = multinomial_recalibration(named, reference="x")
    assert found.intercepts[0] == pytest.approx(-first.intercepts[0])
    assert multinomial_recalibration(named).reference == "y"  # the most frequent


@pytest.mark.no_cover
@pytest.mark.parametrize(("n", "shape"), [(120, (2.0, 2.0, 2.0)), (400, (0.4, 2.0, 6.0))])
def test_intervals_cover_with_few_rows_and_a_rare_class(n, shape):
    covered = []
    for seed in range(20):
        found = multinomial_recalibration(rows(n, seed=seed, shape=shape), reference=2)
        covered += [[0.0 in a.interval, 1.0 in b.interval] for a, b in zip(found.intercepts, found.slopes, strict=True)]
    assert np.mean(covered, axis=0).min() > 0.95 - 3 * np.sqrt(0.05 * 0.95 / 120)


def test_normal_and_profile_intervals_agree_for_many_rows(monkeypatch):
    data = rows(5000)
    profile = multinomial_recalibration(data).slopes[0].interval
    monkeypatch.setattr(multinomial_framework, "_PROFILED_ROWS", 100)
    normal = multinomial_recalibration(data).slopes[0].interval
    assert (profile.low, profile.high) == pytest.approx((normal.low, normal.high), abs=0.01)


def test_weights_have_no_unit_and_copies_in_clusters_say_no_more():
    data = rows(400)
    weight = np.random.default_rng(1).gamma(2.0, size=400)
    once, again = (
        multinomial_recalibration(cal.Multiclass(data.y_true, data.y_prob, weight=c * weight)) for c in (1, 50)
    )
    assert once.slopes[0].interval.high == pytest.approx(again.slopes[0].interval.high)
    copies = np.repeat(np.arange(400), 3)
    clustered = cal.Multiclass(data.y_true[copies], data.y_prob[copies], group=copies)
    wide, alone = multinomial_recalibration(clustered).slopes[1], multinomial_recalibration(data).slopes[1]
    assert wide == pytest.approx(alone)
    assert wide.interval.high - wide == pytest.approx(alone.interval.high - alone, rel=0.1)
    with pytest.raises(cal.InvalidPredictions, match="at least 8 groups"):
        multinomial_recalibration(cal.Multiclass(data.y_true, data.y_prob, group=np.arange(400) % 4))


def test_classes_that_never_occur_separation_and_constant_scores_are_said():
    data = rows(200)
    seen = cal.Multiclass(data.y_true % 2, data.y_prob, classes=[0, 1, 2])
    found = multinomial_recalibration(seen, reference=0)
    assert found.intercepts[1] == -np.inf
    assert np.isnan(found.slopes[1])
    assert "never observed: 2" in found.note
    assert np.isfinite(found.slopes[0])
    plain = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert plain["classes"][1]["intercept"]["value"] is None
    assert plain["classes"][1]["slope"]["interval"]["high"] is None
    sure = np.full((30, 3), 0.1) + 0.7 * np.eye(3)[np.arange(30) % 3]
    separated = multinomial_recalibration(np.arange(30) % 3, sure)
    assert "separated" in separated.note
    flat = multinomial_recalibration(np.arange(30) % 3, np.full((30, 3), 1 / 3))
    assert "all scores" in str(flat).lower()
    assert flat.intercepts[0] == pytest.approx(0, abs=1e-9)
    one = multinomial_recalibration(cal.Multiclass(np.zeros(20, int), data.y_prob[:20], classes=[0, 1, 2]))
    assert [a.value for a in one.intercepts] == [-np.inf, -np.inf]


def test_rows_of_probability_zero_are_left_out_and_wrong_references_refused():
    data = rows(100)
    p = data.y_prob.copy()
    p[:10] = [0.5, 0.5, 0.0]
    found = multinomial_recalibration(data.y_true, p)
    assert found.left_out == 10
    assert "10 left out" in str(found)
    with pytest.raises(cal.InvalidPredictions, match="not one of the classes"):
        multinomial_recalibration(data, reference="z")
    with pytest.raises(cal.InvalidPredictions, match="never observed"):
        multinomial_recalibration(cal.Multiclass(np.zeros(9, int), data.y_prob[:9], classes=[0, 1, 2]), reference=1)
    with pytest.raises(cal.InvalidPredictions, match="it never is"):
        multinomial_recalibration(data.y_true[:10], p[:10])
