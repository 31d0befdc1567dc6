"""The bootstrap: means, weights, clusters, estimators of rows."""

import math
from functools import partial

import numpy as np
import pytest
from scipy import stats

import calibrant as cal
from calibrant.estimators.proper_scores import brier_losses, log_loss_losses
from calibrant.inference.sample import row_losses
from calibrant.results import estimates
from tests.inference.worlds import BENT


def test_bootstrap_of_a_mean_is_the_textbook_interval():
    data = BENT.sample(2000)
    found = cal.interval(cal.brier, data, method=cal.Bootstrap(999)).interval
    squares = (data.y_true - data.y_prob) ** 2
    reach = 1.96 * squares.std() / math.sqrt(2000)
    assert found.low == pytest.approx(squares.mean() - reach, abs=reach / 6)
    assert found.high == pytest.approx(squares.mean() + reach, abs=reach / 6)
    other = cal.Bootstrap(999, kind="bias-corrected").interval(cal.brier, data)
    assert (other.low, other.high) == pytest.approx((found.low, found.high), abs=reach / 4)


def test_bootstrap_takes_weights_and_estimators_of_rows():
    data = BENT.sample(1500)
    plain = cal.Bootstrap(299).interval(cal.brier, data)
    weighted = cal.Bootstrap(299).interval(cal.brier, cal.Binary(data.y_true, data.y_prob, weight=np.ones(1500)))
    assert weighted.low == pytest.approx(plain.low, abs=0.004)
    by_rows = cal.Bootstrap(99).interval(lambda d: float(np.mean(d.y_true)), data)
    assert by_rows.low < data.y_true.mean() < by_rows.high
    gaussian = cal.Gaussian(np.sin(np.arange(200.0)), np.zeros(200), np.linspace(0.5, 1, 200))
    assert "Bootstrap" in cal.interval(cal.ence, gaussian, method=cal.Bootstrap(49)).interval.method


def test_clusters_are_drawn_whole():
    data = BENT.sample(300)
    tenfold = cal.Binary(np.repeat(data.y_true, 10), np.repeat(data.y_prob, 10), group=np.repeat(np.arange(300), 10))
    found = (
        cal.Bootstrap(299).interval(cal.brier, data),
        cal.inference.Clustered(299).interval(cal.brier, tenfold),
        cal.Bootstrap(299).interval(cal.brier, cal.Binary(tenfold.y_true, tenfold.y_prob)),
    )
    one, clustered, naive = (interval.high - interval.low for interval in found)
    assert clustered == pytest.approx(one, rel=0.2)
    assert naive < 0.5 * one


def test_percentile_intervals_are_refused():
    with pytest.raises(ValueError, match="percentile"):
        cal.Bootstrap(kind="percentile")


def test_scores_of_distributions_are_resampled_without_evaluating_them_again():
    rng = np.random.default_rng(0)
    y = rng.normal(size=300)
    asked = []

    class Counted:
        """A normal distribution that counts how often its density is asked for."""

        def cdf(self, x):
            return stats.norm.cdf(x)

        def ppf(self, q):
            return stats.norm.ppf(q)

        def logpdf(self, x):
            asked.append(len(x))
            return stats.norm.logpdf(x)

    ours = cal.interval(cal.nll, cal.Distribution(y, Counted())).interval
    assert len(asked) < 100
    gaussian = cal.interval(cal.nll, cal.Gaussian(y, np.zeros(300), np.ones(300))).interval
    assert (ours.low, ours.high) == pytest.approx((gaussian.low, gaussian.high))
    error = np.std(stats.norm.logpdf(y)) / np.sqrt(300)
    assert ours.high - ours.low == pytest.approx(2 * 1.96 * error, rel=0.1)
    infinite = cal.Distribution(np.append(y, 9.0), stats.uniform(-5, 10))
    with pytest.raises(cal.InvalidPredictions, match="first at row 300"):
        cal.interval(cal.nll, infinite)


@pytest.mark.no_cover
@pytest.mark.parametrize("score", [cal.brier, cal.log_loss])
def test_scores_of_classes_are_resampled_from_the_losses_of_their_rows(score):
    rng = np.random.default_rng(1)
    p = rng.dirichlet([1.0, 1.0, 2.0], 1500)
    classes = cal.Multiclass(rng.integers(0, 3, 1500), p)
    event = cal.Binary(classes.y_true == 2, p[:, 2])
    asked = []

    @estimates("mean score", losses=brier_losses if score is cal.brier else log_loss_losses)
    def counted(data):
        asked.append(data)
        return score(data)

    for data in (event, classes, cal.Binary(event.y_true, event.y_prob, weight=rng.random(1500))):
        asked.clear()
        found = cal.interval(counted, data, method=cal.Bootstrap(499))
        assert len(asked) <= 2
        again = cal.interval(score, data, method=cal.Bootstrap(499)).interval
        assert (again.low, again.high) == (found.interval.low, found.interval.high)
    table = cal.interval(score, cal.BinTable.of(event, cal.table.Distinct()), method=cal.Bootstrap(999)).interval
    rows = cal.interval(score, event, method=cal.Bootstrap(999)).interval
    assert rows.low == pytest.approx(table.low, abs=0.1 * (table.high - table.low))
    assert rows.high == pytest.approx(table.high, abs=0.1 * (table.high - table.low))


def test_an_infinite_log_loss_has_no_interval_and_a_floor_helps():
    data = cal.Binary([0, 1, 0, 1] * 50, [0.2, 0.7, 0.4, 0.0] * 50)
    with pytest.raises(cal.InvalidPredictions, match="50 rows is infinite"):
        cal.interval(cal.log_loss, data)
    found = cal.interval(partial(cal.log_loss, floor=1e-6), data)
    assert found.interval.low < found < found.interval.high < 10


def test_rows_of_no_weight_are_no_rows():
    data = BENT.sample(60)
    weight = np.repeat([1.0, 2.0, 0.0], [2, 1, 57])
    some = cal.Binary(data.y_true[:3], data.y_prob[:3], weight=weight[:3])
    found, alone = (
        cal.Bootstrap(99).interval(cal.brier, rows)
        for rows in (cal.Binary(data.y_true, data.y_prob, weight=weight), some)
    )
    assert (found.low, found.high) == (alone.low, alone.high)
    assert math.isfinite(found.low + found.high)


def test_a_resample_without_events_is_said_to_be_the_reason():
    rng = np.random.default_rng(0)
    y, p = np.arange(200) == 7, rng.random(200)
    words = r"There is an estimate, but resample \d+ .*\(auc needs both outcomes.*rare rows.*too few for an interval"
    for data in (cal.Binary(y, p), cal.Binary(y, p, group=np.arange(200))):
        with pytest.raises(cal.InvalidPredictions, match=words):
            cal.interval(cal.auc, data, method="bootstrap")
    with pytest.raises(cal.InvalidPredictions, match=words):
        cal.compare(cal.auc, cal.Binary(y, p), cal.Binary(y, (p + y) / 3))


@pytest.mark.parametrize("kind", ["forecast", "binary", "classes", "one group"])
def test_one_row_with_weight_has_no_interval(kind):
    rng = np.random.default_rng(0)
    weight = np.array([1.0] + [0.0] * 29)
    y, p = (np.arange(30) % 2).astype(int), rng.uniform(0.1, 0.9, 30)
    data, score = {
        "forecast": lambda: (cal.Gaussian(rng.normal(size=30), np.zeros(30), np.ones(30), weight=weight), cal.crps),
        "binary": lambda: (cal.Binary(y, p, weight=weight), cal.brier),
        "classes": lambda: (cal.Multiclass(y, np.stack([1 - p, p], axis=1), weight=weight), cal.brier),
        "one group": lambda: (cal.Binary(y, p, group=["a"] * 30), cal.brier),
    }[kind]()
    with pytest.raises(cal.InvalidPredictions, match="at least two"):
        cal.interval(score, data)


def test_forecasts_of_weight_zero_are_not_resampled():
    rng = np.random.default_rng(0)
    y, weight = rng.normal(size=(40, 2)), np.array([1.0, 1.0, 2.0, 1.0] + [0.0] * 36)
    wide = cal.Gaussian(y, np.zeros((40, 2)), np.ones((40, 2)), weight=weight)
    few = cal.Gaussian(y[:4], np.zeros((4, 2)), np.ones((4, 2)), weight=weight[:4])
    found, expected = (cal.interval(cal.crps, data).interval for data in (wide, few))
    assert (found.low, found.high) == (expected.low, expected.high)
    assert found.low < found.high


def test_very_many_rows_are_resampled_as_a_table():
    """Up to 2^20 rows the losses of rows are resampled, and beyond a table, in the same time for any number of rows."""
    for n, as_rows in ((1 << 20, True), ((1 << 20) + 1, False)):
        data = cal.Binary(np.zeros(n, np.int8), np.full(n, 0.5, np.float32))
        assert (row_losses(cal.brier(data), data) is not None) == as_rows
