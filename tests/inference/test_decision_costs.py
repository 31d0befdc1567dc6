"""Net benefit before and after recalibration, and the calibration decision loss."""

import json

import numpy as np
import pytest

import calibrant as cal
from calibrant.estimators.cross_fitting import CrossFitted
from calibrant.inference import miscalibration_cost
from calibrant.inference.decision_costs import _Gains, _Moves

AT = np.array([0.2, 0.05, 0.5, 0.8])


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
    found = miscalibration_cost(data, thresholds=AT, recalibrator=Half())
    before, after = (cal.net_benefit(data.y_true, p, thresholds=AT).value for p in (data.y_prob, data.y_prob**2))
    assert found.before == pytest.approx(before)
    assert found.after == pytest.approx(after)
    assert found.cost == pytest.approx(np.maximum(after - before, 0.0))
    weight = np.random.default_rng(1).gamma(2.0, size=500)
    weighted = cal.Binary(data.y_true, data.y_prob, weight=weight)
    found = miscalibration_cost(weighted, thresholds=AT, recalibrator=Half())
    after = cal.net_benefit(cal.Binary(data.y_true, data.y_prob**2, weight=weight), thresholds=AT).value
    assert found.after == pytest.approx(after)


@pytest.mark.parametrize("n", [2000, 20_000])
def test_the_true_cost_is_within_the_interval_of_the_smoothers(n):
    found = miscalibration_cost(rows(n, seed=1), thresholds=AT)
    truth = np.array([true_cost(t) for t in AT])
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
    table = miscalibration_cost(cal.BinTable.of(data, cal.table.Distinct()), thresholds=AT)
    assert table.before == pytest.approx(cal.net_benefit(data, thresholds=AT).value)
    copies = np.repeat(np.arange(1500), 3)
    clustered = cal.Binary(data.y_true[copies], data.y_prob[copies], group=copies)
    found = miscalibration_cost(clustered, thresholds=AT, recalibrator=Half())
    alone = miscalibration_cost(data, thresholds=AT, recalibrator=Half())
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
