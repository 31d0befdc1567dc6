"""Net benefit over thresholds, before and after recalibration, and the calibration decision loss."""

import json

import numpy as np
import pytest

import calibrant as cal
from calibrant.estimators.cross_fitting import CrossFitted
from calibrant.inference import miscalibration_cost
from calibrant.inference.decision_curves import _Gains, _Moves, _standardized_limits

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


PLACES = np.array([0.2, 0.05, 0.5, 0.8])


def rows(n, power=2.0, seed=0):
    rng = np.random.default_rng(seed)
    p = rng.random(n)
    return cal.Binary(rng.random(n) < p**power, p)


def true_cost(t, power=2.0, nodes=200_001):
    p = (np.arange(nodes) + 0.5) / nodes
    c = p**power
    return float(np.mean(np.abs(c - t) / (1 - t) * ((p >= t) != (c >= t))))


class Half:
    """A map that is known: every probability becomes its square."""

    def fit(self, scores, y, sample_weight=None):
        self.classes_ = np.array([0, 1])
        return self

    def predict_proba(self, scores):
        p = np.asarray(scores).reshape(len(scores), -1)[:, -1] ** 2
        return np.stack([1 - p, p], axis=1)

    def get_params(self, deep=True):
        return {}


def test_before_and_after_are_net_benefits_written_out():
    data = rows(500)
    found = miscalibration_cost(data, thresholds=PLACES, recalibrator=Half())
    before, after = (cal.net_benefit(data.y_true, p, thresholds=PLACES).value for p in (data.y_prob, data.y_prob**2))
    assert found.before == pytest.approx(before)
    assert found.after == pytest.approx(after)
    assert found.cost == pytest.approx(np.maximum(after - before, 0.0))
    weight = np.random.default_rng(1).gamma(2.0, size=500)
    weighted = cal.Binary(data.y_true, data.y_prob, weight=weight)
    found = miscalibration_cost(weighted, thresholds=PLACES, recalibrator=Half())
    after = cal.net_benefit(cal.Binary(data.y_true, data.y_prob**2, weight=weight), thresholds=PLACES).value
    assert found.after == pytest.approx(after)


@pytest.mark.parametrize("n", [2000, 20_000])
def test_the_true_cost_is_within_the_interval_of_the_smoothers(n):
    found = miscalibration_cost(rows(n, seed=1), thresholds=PLACES)
    truth = np.array([true_cost(t) for t in PLACES])
    assert (found.low <= truth).all()
    assert (truth <= found.high).all()
    assert found.cost == pytest.approx(truth, abs=5 / np.sqrt(n))


def test_the_decision_loss_is_the_largest_cost_in_units_of_the_payoff():
    found = miscalibration_cost(rows(20_000))
    grid = np.linspace(0.01, 0.99, 197)
    truth = max(true_cost(t, nodes=20_001) * min(1, (1 - t) / t) for t in grid)
    loss = found.decision_loss
    assert loss == pytest.approx((found.cost * np.minimum(1, (1 - found.threshold) / found.threshold)).max())
    assert loss.interval.low < truth < loss.interval.high
    assert loss.interval.low > 0.04
    assert loss.interval.high < 0.12
    calibrated = miscalibration_cost(rows(20_000, power=1.0)).decision_loss
    assert calibrated.interval.low == 0
    assert calibrated.value < 0.01


def test_simultaneous_bands_are_wider_and_tables_and_clusters_work():
    data = rows(1500)
    pointwise, everywhere = (miscalibration_cost(data, band=band) for band in ("pointwise", "simultaneous"))
    assert (everywhere.low <= pointwise.low).all()
    assert (everywhere.high >= pointwise.high).all()
    table = miscalibration_cost(cal.BinTable.of(data, cal.table.Distinct()), thresholds=PLACES)
    assert table.before == pytest.approx(cal.net_benefit(data, thresholds=PLACES).value)
    copies = np.repeat(np.arange(1500), 3)
    clustered = cal.Binary(data.y_true[copies], data.y_prob[copies], group=copies)
    found = miscalibration_cost(clustered, thresholds=PLACES, recalibrator=Half())
    alone = miscalibration_cost(data, thresholds=PLACES, recalibrator=Half())
    assert found.cost - found.low == pytest.approx(alone.cost - alone.low, rel=0.05)
    assert found.high == pytest.approx(alone.high, rel=0.05)
    high = found.decision_loss.interval.high
    assert alone.decision_loss.interval.high == pytest.approx(high, rel=0.05)
    assert json.loads(json.dumps(found.to_dict()))["decision_loss"]["interval"]["high"] == high


def test_degenerate_data_are_defined_and_wrong_ones_refused():
    none = miscalibration_cost(np.zeros(60), np.full(60, 0.2), thresholds=[0.1, 0.5])
    assert np.isfinite([none.low, none.high]).all()
    assert none.decision_loss.interval.high <= 1
    every = miscalibration_cost(np.ones(60), np.linspace(0.1, 0.9, 60), thresholds=[0.5])
    assert every.cost[0] > 0.3
    with pytest.raises(cal.InvalidPredictions, match="binary predictions"):
        miscalibration_cost(cal.Multiclass([0, 1, 2], np.eye(3)))
    with pytest.raises(cal.InvalidPredictions, match="at least 8 groups"):
        miscalibration_cost(cal.Binary([0, 1] * 30, np.linspace(0.1, 0.9, 60), group=np.arange(60) % 5))
    with pytest.raises(ValueError, match="folds"):
        miscalibration_cost(rows(50), folds=1)


def test_it_can_be_drawn():
    from matplotlib.figure import Figure

    ax = miscalibration_cost(rows(300)).plot(ax=Figure().subplots())
    assert "95% interval, pointwise" in [text.get_text() for text in ax.get_legend().get_texts()]


def test_the_upper_end_is_the_largest_limit_of_another_score_to_treat_from():
    """Written out with the limits of shares by Wilson's formula, for every score."""
    data, z, t = rows(200, seed=4), 1.959964, 0.4

    def wilson(share, sign):
        root = np.sqrt(share * (1 - share) * 200 + z**2 / 4)
        return (share * 200 + z**2 / 2 + sign * z * root) / (200 + z**2)

    found = 0.0
    for score in np.append(np.sort(data.y_prob), 2.0):
        moved = (data.y_prob >= min(score, t)) & (data.y_prob < max(score, t))
        hits, misses = np.mean(moved & (data.y_true == 1)), np.mean(moved & (data.y_true == 0))
        sign = 1 if score < t else -1
        reach = abs(wilson(hits, sign) - hits), t / (1 - t) * abs(wilson(misses, -sign) - misses)
        shared = np.sqrt(hits * misses / ((1 - hits) * (1 - misses)))
        spread = np.sqrt(reach[0] ** 2 + reach[1] ** 2 + 2 * shared * reach[0] * reach[1])
        found = max(found, (sign * (hits - t / (1 - t) * misses) + spread) * moved.any())
    assert _Moves.of(data).limit(t, 0.95) == pytest.approx(found, rel=1e-6)


@pytest.mark.no_cover
@pytest.mark.parametrize("curve", ["calibrated", "jump"])
def test_ends_are_not_negative_and_of_the_size_of_the_cost(curve):
    """Of 2,000 rows the interval is as wide as a few costs of a mild error; where the curve jumps it holds the cost."""
    rng, missed, width = np.random.default_rng(8), 0, []
    for _ in range(12):
        p = rng.random(2000)
        data = cal.Binary(rng.random(2000) < (p if curve == "calibrated" else np.where(p < 0.5, 0.2, 0.7)), p)
        found = miscalibration_cost(data, thresholds=[0.3])
        assert found.low[0] >= 0
        assert found.cost[0] >= 0
        width.append(found.high[0] - found.low[0])
        truth = 0.0 if curve == "calibrated" else 0.2 * 0.1 / 0.7  # scores from 0.3 to 0.5 have a probability of 0.2
        missed += not found.low[0] <= truth <= found.high[0]
    assert missed <= 2
    assert np.mean(width) < (0.02 if curve == "calibrated" else 0.04)


@pytest.mark.parametrize("clustered", [False, True])
def test_how_gains_vary_together_is_what_row_by_row_sums_say(clustered):
    rng = np.random.default_rng(0)
    weight = rng.exponential(size=500)
    p, at = rng.random((500, 1)).round(2), np.array([0.7, 0.2, 0.5, 0.5, 0.35])  # neither rising nor distinct
    rows = CrossFitted(
        p,
        (rng.random(500) < 0.4).astype(np.int64),
        weight,
        weight**2,
        np.zeros(500, np.intp),
        500,
        cluster=np.arange(500) % 20 if clustered else None,
        recalibrated=np.clip(p + rng.normal(0, 0.3, (500, 1)), 0, 1),
    )
    gains = _Gains.of(rows, at)
    worth = np.where(rows.outcome > 0, 1.0, -at / (1 - at))
    each = ((rows.fitted >= at).astype(int) - (p >= at)) * worth
    assert gains.value == pytest.approx(weight @ each / weight.sum())
    apart = (each - gains.value) * weight[:, None]
    if clustered:
        apart = np.stack([apart[rows.cluster == k].sum(axis=0) for k in range(20)])
    np.testing.assert_allclose(gains.covariance(), apart.T @ apart)
