"""Net benefit over thresholds."""

import numpy as np
import pytest

import calibrant as cal

RNG = np.random.default_rng(6)
P = np.round(1 / (1 + np.exp(-RNG.normal(-1, 1.2, 300))), 2).clip(0.01, 0.99)
Y = (RNG.random(300) < P).astype(int)
AT = np.array([0.05, 0.2, 0.31, 0.5, 0.8])


def written_out(y, p, t, w=None):
    w = np.ones(len(y)) if w is None else w
    treated = p >= t
    return ((w * y)[treated].sum() - t / (1 - t) * (w * (1 - y))[treated].sum()) / w.sum()


def test_it_is_true_less_weighted_false_positives():
    weight = RNG.gamma(2.0, size=300)
    curve = cal.net_benefit(Y, P, thresholds=AT)
    assert curve.value == pytest.approx([written_out(Y, P, t) for t in AT])
    assert curve.treat_all == pytest.approx([written_out(Y, np.ones(300), t) for t in AT])
    assert curve.treated == pytest.approx([(t <= P).mean() for t in AT])
    assert (curve.low <= curve.value).all()
    assert (curve.value <= curve.high).all()
    weighted = cal.net_benefit(cal.Binary(Y, P, weight=weight), thresholds=AT)
    assert weighted.value == pytest.approx([written_out(Y, P, t, weight) for t in AT])
    scaled = cal.net_benefit(cal.Binary(Y, P, weight=1e3 * weight), thresholds=AT)
    assert scaled.high == pytest.approx(weighted.high)


def test_standardized_it_is_divided_by_the_prevalence():
    plain, standard = (cal.net_benefit(Y, P, thresholds=AT, standardized=flag) for flag in (False, True))
    assert standard.value == pytest.approx(plain.value / Y.mean())
    assert standard.treat_all == pytest.approx(plain.treat_all / Y.mean())
    assert (standard.low <= standard.value).all()
    assert (standard.high <= 1).all()


def test_a_large_sample_has_the_interval_of_the_mean():
    p = np.tile(P, 100)
    y = RNG.random(30_000) < p
    curve = cal.net_benefit(y, p, thresholds=AT[:4])
    worth = [np.where(p >= t, np.where(y, 1.0, -t / (1 - t)), 0.0) for t in AT[:4]]
    reach = 1.959964 * np.array([w.std() for w in worth]) / np.sqrt(30_000)
    assert curve.high - curve.value == pytest.approx(reach, rel=0.03)
    assert curve.value - curve.low == pytest.approx(reach, rel=0.03)


def test_rows_tables_clusters_and_the_default_thresholds():
    data = cal.Binary(Y, P)
    curve = cal.net_benefit(data)
    assert curve.threshold == pytest.approx(np.arange(1, 100) / 100)
    table = cal.net_benefit(cal.BinTable.of(data, cal.table.Distinct()))
    assert table.to_dict() == curve.to_dict()
    scores = np.repeat([0.1, 0.3, 0.7], 10)  # whose sums over the number of rows are below them by rounding
    same = cal.Binary(np.tile([0, 1], 15), scores)
    both = (same, cal.BinTable.of(same, cal.table.Distinct()))
    at_scores = [cal.net_benefit(one, thresholds=[0.1, 0.3, 0.7]).value for one in both]
    assert at_scores[1] == pytest.approx(at_scores[0])
    rows = np.repeat(np.arange(300), 4)
    copies = cal.net_benefit(cal.Binary(Y[rows], P[rows], group=rows))
    assert copies.value == pytest.approx(curve.value)
    assert copies.low == pytest.approx(curve.low, abs=1e-9)
    assert copies.high == pytest.approx(curve.high, abs=1e-9)
    with pytest.raises(cal.InvalidPredictions, match="at least 8 groups"):
        cal.net_benefit(cal.Binary(Y, P, group=np.arange(300) % 3))


def test_no_events_all_events_and_constant_scores():
    none = cal.net_benefit(np.zeros(50), P[:50], thresholds=AT)
    assert none.prevalence == 0
    assert (none.value <= 0).all()
    assert (none.high >= none.value).all()
    with pytest.raises(cal.InvalidPredictions, match="no events"):
        cal.net_benefit(np.zeros(50), P[:50], standardized=True)
    every = cal.net_benefit(np.ones(50), P[:50], thresholds=AT)
    assert every.treat_all == pytest.approx(np.ones(5))
    assert len(every.useful) == 0
    flat = cal.net_benefit([0, 1, 1, 0], np.full(4, 0.3), thresholds=[0.3, 0.31])
    assert flat.value == pytest.approx([0.5 - 0.5 * 3 / 7, 0.0])
    assert np.isfinite([flat.low, flat.high]).all()
    assert (flat.high > 0).all()  # that nobody was treated in four rows does not prove that nobody is
    assert set(cal.net_benefit(Y, P).useful) <= set(np.arange(1, 100) / 100)


@pytest.mark.parametrize("bad", [[0.0, 0.5], [0.5, 1.0], [1.2]])
def test_thresholds_lie_between_0_and_1(bad):
    with pytest.raises(cal.InvalidPredictions, match="thresholds"):
        cal.net_benefit(Y, P, thresholds=bad)


def test_simultaneous_bands_hold_at_all_thresholds_at_once():
    rng, covered = np.random.default_rng(0), {"pointwise": [], "simultaneous": []}
    z = rng.normal(-1, 1.2, 200_000)
    p = 1 / (1 + np.exp(-z))
    at = np.arange(1, 40) / 50
    truth = np.array([np.mean((p >= t) * (p - t / (1 - t) * (1 - p))) for t in at])
    for _ in range(150):
        q = rng.choice(p, 500)
        data = cal.Binary(rng.random(500) < q, q)
        for band, found in covered.items():
            curve = cal.net_benefit(data, thresholds=at, band=band)
            found.append(bool(np.all((curve.low <= truth) & (truth <= curve.high))))
    assert np.mean(covered["simultaneous"]) > 0.91
    assert np.mean(covered["pointwise"]) < 0.85
    assert curve.to_dict()["band"] == "simultaneous"
    clustered = cal.Binary(Y, P, group=np.arange(300) // 3)
    wide, narrow = (cal.net_benefit(clustered, band=band) for band in ("simultaneous", "pointwise"))
    assert (wide.high >= narrow.high).all()


def test_printed_numbers_of_dcurves():
    """R's dcurves, whose own tests print these net benefits of its example (750 patients, 105 cancers).

    At 25% the prediction model treats 72 with and 72 without cancer: 0.0640, and treating everyone -0.1466667. Family
    history, of 24 with and 91 without, has 0.032 at a threshold of 0 (there taken as 1e-9).
    """
    cancer = np.repeat([1, 0, 1, 0], [72, 72, 33, 573])
    found = cal.net_benefit(cancer, np.repeat([0.4, 0.1], [144, 606]), thresholds=[0.25])
    assert found.value == pytest.approx([0.0640], abs=5e-8)
    assert found.treat_all == pytest.approx([-0.1466667], abs=5e-8)
    cancer = np.repeat([1, 0, 1, 0], [24, 91, 81, 554])
    found = cal.net_benefit(cancer, np.repeat([1.0, 0.0], [115, 635]), thresholds=[1e-9])
    assert found.value == pytest.approx([0.032], abs=5e-8)
    assert found.treat_all == pytest.approx([0.140], abs=5e-8)


def test_limits_of_the_standardized_net_benefit_are_those_of_sensitivity_and_false_positives_together():
    from calibrant.inference.decision_curves import _standardized_limits
    from calibrant.numerics.confidence_limits import mid_p_interval

    true, false, prevalence, odds, n = 0.15, 0.1, 0.2, 0.25, 400.0
    low, high = _standardized_limits(
        *map(np.array, ([true], [false])), prevalence, np.array([odds]), np.array([n]), 0.95
    )
    (s_low,), (s_high,) = mid_p_interval(np.array([true * n]), np.array([prevalence * n]), 0.95)
    (q_low,), (q_high,) = mid_p_interval(np.array([false * n]), np.array([(prevalence + false) * n]), 0.95)
    sensitivity, ratio = true / prevalence, false / prevalence
    value = sensitivity - odds * ratio
    up = np.hypot(s_high - sensitivity, odds * (ratio - q_low / (1 - q_low)))
    down = np.hypot(sensitivity - s_low, odds * (q_high / (1 - q_high) - ratio))
    assert (low[0], high[0]) == pytest.approx((value - down, value + up))
