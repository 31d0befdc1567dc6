"""Risk-coverage curves."""

import numpy as np
import pytest
from scipy import stats

import calibrant as cal
from calibrant.numerics.binomial_interval import mid_p_interval

RNG = np.random.default_rng(9)
P = RNG.random(120)
Y = (RNG.random(120) < P).astype(int)


def area(wrong):
    return np.mean(np.cumsum(wrong) / np.arange(1, len(wrong) + 1))


def test_it_is_the_mean_of_the_running_errors():
    confidence, wrong = np.maximum(P, 1 - P), (P >= 0.5) != Y
    ordered = wrong[np.argsort(-confidence)]
    curve = cal.risk_coverage(Y, P)
    assert curve.aurc == pytest.approx(area(ordered))
    assert curve.ideal == pytest.approx(area(np.sort(wrong)))
    assert curve.excess == pytest.approx(curve.aurc - curve.ideal)
    assert curve.risk == pytest.approx(np.cumsum(ordered) / np.arange(1, 121))
    assert curve.coverage[-1] == 1
    low, high = mid_p_interval(wrong.sum(), 120, 0.95)
    assert (curve.low[-1], curve.high[-1]) == pytest.approx((float(low), float(high)))


def test_ties_count_with_their_mean_error():
    p, y = np.array([0.9, 0.1, 0.9, 0.6]), np.array([1, 1, 1, 0])
    curve = cal.risk_coverage(y, p)
    assert curve.confidence == pytest.approx([0.9, 0.6])
    assert curve.risk == pytest.approx([1 / 3, 1 / 2])
    assert curve.aurc == pytest.approx((3 * (1 / 3) + 1 / 2) / 4)


def test_weights_tables_and_several_classes():
    data = cal.Binary(Y, P)
    curve = cal.risk_coverage(data)
    assert cal.risk_coverage(cal.BinTable.of(data, cal.table.Distinct())).to_dict() == curve.to_dict()
    assert cal.risk_coverage(cal.Binary(Y, P, weight=np.full(120, 9.0))).aurc == pytest.approx(curve.aurc)
    weight = RNG.gamma(2.0, size=120)
    once, again = (cal.risk_coverage(cal.Binary(Y, P, weight=c * weight)) for c in (1, 50))
    assert once.aurc == pytest.approx(again.aurc)
    assert once.high == pytest.approx(again.high)
    two = cal.risk_coverage(cal.Multiclass(Y, np.stack([1 - P, P], axis=1)))
    assert two.aurc == pytest.approx(curve.aurc)


def test_no_errors_all_errors_and_one_score():
    right = cal.risk_coverage([0, 1], [0.1, 0.9])
    assert (right.aurc, right.excess) == (0, 0)
    wrong = cal.risk_coverage([1, 0], [0.1, 0.8])
    assert (wrong.aurc, wrong.excess) == (1, 0)
    flat = cal.risk_coverage([1, 0, 0, 0], np.full(4, 0.3))
    assert flat.aurc == pytest.approx(0.25)
    assert flat.ideal == pytest.approx(1 / 16)


def test_a_confidence_that_ranks_better_has_a_smaller_area():
    z = RNG.normal(size=4000)
    y = RNG.random(4000) < stats.norm.cdf(2 * z)
    shuffled = stats.norm.cdf(np.abs(RNG.permutation(z)) * np.sign(z))
    assert cal.risk_coverage(y, stats.norm.cdf(z)).aurc < cal.risk_coverage(y, shuffled).aurc


def test_groups_are_refused():
    with pytest.raises(cal.InvalidPredictions, match="group"):
        cal.risk_coverage(cal.Binary(Y, P, group=np.arange(120) % 20))


def test_the_area_has_a_bootstrap_interval():
    found = cal.interval(lambda d: cal.risk_coverage(d).aurc, cal.Binary(Y, P), method=cal.Bootstrap(99))
    assert found.interval.low < found < found.interval.high


def test_many_rows_have_a_curve_of_at_most_1000_points():
    p = RNG.random(5000)
    y = RNG.random(5000) < p
    curve = cal.risk_coverage(y, p)
    assert len(curve.risk) == 1000
    assert curve.coverage == pytest.approx(np.arange(1, 1001) / 1000)
    assert curve.risk[-1] == pytest.approx(((p >= 0.5) != y).mean())
    assert curve.aurc == pytest.approx(area(((p >= 0.5) != y)[np.argsort(-np.maximum(p, 1 - p))]))
