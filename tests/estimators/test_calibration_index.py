"""The integrated calibration index."""

import numpy as np
import pytest

import calibrant as cal
from calibrant.numerics.local_regression import loess

RNG = np.random.default_rng(5)
P = RNG.random(400)
Y = (RNG.random(400) < P**2).astype(int)


def test_with_loess_it_is_the_mean_distance_to_that_curve():
    distance = np.abs(P - loess(P, Y.astype(float), np.ones(400)))
    found = cal.ici(Y, P, curve="loess")
    assert found == pytest.approx(distance.mean())
    quantiles = np.quantile(distance, [0.5, 0.9], method="inverted_cdf")
    assert [found.details["E50"], found.details["E90"]] == pytest.approx(quantiles)
    assert found.details["Emax"] == pytest.approx(distance.max())


def test_both_curves_find_a_known_gap():
    p = np.random.default_rng(1).random(20_000)
    y = np.random.default_rng(2).random(20_000) < p**2
    for curve in ("smooth", "loess"):
        found = cal.ici(y, p, curve=curve)
        assert found == pytest.approx(1 / 6, abs=0.01)
        assert found.details["Emax"] == pytest.approx(0.25, abs=0.02)
        assert found.details["E50"] < found.details["E90"] < found.details["Emax"]


def test_the_smooth_curve_shrinks_what_is_noise():
    y = RNG.random(400) < P
    assert cal.ici(y, P) < cal.ici(y, P, curve="loess") < 0.1


def test_its_interval_is_that_of_the_true_error():
    data = cal.Binary(Y, P)
    assert cal.interval(cal.ici, data).interval == cal.interval(cal.ece, data).interval
    assert str(cal.ici(data).target) == "true error (L1)"


@pytest.mark.parametrize("curve", ["smooth", "loess"])
def test_one_outcome_one_score_and_certain_scores(curve):
    assert cal.ici(np.zeros(50), np.full(50, 0.3), curve=curve) == pytest.approx(0.3, abs=0.03)
    assert 0 <= cal.ici([0, 1], [0.0, 1.0], curve=curve) < 0.5
    assert cal.ici(np.ones(50), P[:50], curve=curve) > 0.3


def test_unknown_curves_are_refused():
    with pytest.raises(ValueError, match="curve must be"):
        cal.ici(Y, P, curve="spline")
