"""Risk-coverage curves, against sums written out."""

import numpy as np
import pytest
from scipy import stats

import calibrant as cal
from calibrant.inference import selective_prediction
from calibrant.inference.selective_prediction import OrderedLosses
from calibrant.numerics.confidence_limits import mid_p_interval

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
    table = cal.risk_coverage(cal.BinTable.of(data, cal.table.Distinct()))
    for name in ("confidence", "coverage", "risk", "low", "high"):
        assert getattr(table, name) == pytest.approx(getattr(curve, name))
    assert (table.aurc, table.excess) == pytest.approx((curve.aurc, curve.excess))
    assert table.aurc.interval.high == pytest.approx(curve.aurc.interval.high)
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


def test_no_errors_and_only_errors_have_intervals_of_some_width():
    confidence = np.linspace(0.6, 0.9, 50)
    right, wrong = (cal.risk_coverage(np.full(50, y), confidence).aurc.interval for y in (1, 0))
    assert right.low == 0
    assert right.high == pytest.approx(-2 / 50 * np.log(0.05))  # half of the chance of no error of this size is 2.5%
    assert 0.7 < wrong.low < 0.95
    assert wrong.high == 1
    grouped = cal.risk_coverage(cal.Binary(np.ones(50), confidence, group=np.arange(50) // 5))
    assert grouped.aurc.interval.high > right.high  # ten clusters, of which nothing is known inside


def test_a_confidence_that_ranks_better_has_a_smaller_area():
    z = RNG.normal(size=4000)
    y = RNG.random(4000) < stats.norm.cdf(2 * z)
    shuffled = stats.norm.cdf(np.abs(RNG.permutation(z)) * np.sign(z))
    assert cal.risk_coverage(y, stats.norm.cdf(z)).aurc < cal.risk_coverage(y, shuffled).aurc


def test_copies_in_clusters_say_no_more_than_their_originals():
    rows = np.repeat(np.arange(120), 4)
    alone, copies = cal.risk_coverage(Y, P), cal.risk_coverage(cal.Binary(Y[rows], P[rows], group=rows))
    assert copies.risk == pytest.approx(alone.risk)
    assert copies.high[20:] == pytest.approx(alone.high[20:], abs=0.03)
    reach = [curve.aurc.interval.high - curve.aurc for curve in (alone, copies)]
    assert reach[1] == pytest.approx(reach[0], rel=0.15)
    with pytest.raises(cal.InvalidPredictions, match="at least 8 groups"):
        cal.risk_coverage(cal.Binary(Y, P, group=np.arange(120) % 3))


@pytest.mark.parametrize("loss", ["brier", "log_loss"])
def test_other_losses_are_averaged_and_tables_agree(loss):
    each = (P - Y) ** 2 if loss == "brier" else -np.log(np.where(Y == 1, P, 1 - P))
    curve = cal.risk_coverage(Y, P, loss=loss)
    given = cal.risk_coverage(Y, P, loss=each)
    order = np.argsort(-np.maximum(P, 1 - P))
    assert curve.risk == pytest.approx(np.cumsum(each[order]) / np.arange(1, 121))
    assert curve.aurc == pytest.approx(area(each[order]))
    assert curve.ideal == pytest.approx(area(np.sort(each)))
    assert given.high == pytest.approx(curve.high)
    table = cal.risk_coverage(cal.BinTable.of(cal.Binary(Y, P), cal.table.Distinct()), loss=loss)
    assert table.high == pytest.approx(curve.high)
    assert table.excess.interval.low == pytest.approx(curve.excess.interval.low)
    last = curve.high[-1] - curve.risk[-1]
    assert last == pytest.approx(stats.t.ppf(0.975, 119) * each.std(ddof=1) / np.sqrt(120))
    assert np.isinf(curve.high[0])
    assert curve.to_dict()["high"][0] is None


def test_several_classes_and_numbers_have_losses_too():
    rng = np.random.default_rng(0)
    logits = rng.normal(size=(300, 3))
    p = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    y = np.array([rng.choice(3, p=row) for row in p])
    data = cal.Multiclass(y, p)
    onehot = np.eye(3)[y]
    assert cal.risk_coverage(data, loss="brier").risk[-1] == pytest.approx(((p - onehot) ** 2).sum(axis=1).mean())
    assert cal.risk_coverage(data, loss="log_loss").risk[-1] == pytest.approx(cal.log_loss(data))
    sigma = rng.uniform(0.5, 2, 300)
    values = rng.normal(0, sigma)
    forecast = cal.Gaussian(values, np.zeros(300), sigma)
    good, bad = (cal.risk_coverage(forecast, loss=values**2, confidence=c) for c in (-sigma, sigma))
    assert good.aurc.interval.high < bad.aurc.interval.low
    with pytest.raises(cal.InvalidPredictions, match="loss and confidence"):
        cal.risk_coverage(forecast)


@pytest.mark.no_cover
@pytest.mark.parametrize("n", [200, 2000])
def test_intervals_of_the_areas_cover(n):
    rng = np.random.default_rng(n)
    z = rng.normal(size=400_000)
    truth = {
        loss: cal.risk_coverage(rng.random(len(z)) < stats.norm.cdf(z), stats.norm.cdf(z), loss=loss)
        for loss in ("error", "brier")
    }
    covered = {(loss, name): [] for loss in truth for name in ("aurc", "excess")}
    for _ in range(100):
        p = stats.norm.cdf(rng.normal(size=n))
        y = rng.random(n) < p
        for loss, population in truth.items():
            curve = cal.risk_coverage(y, p, loss=loss)
            for name in ("aurc", "excess"):
                covered[loss, name].append(getattr(population, name).value in getattr(curve, name).interval)
    assert min(np.mean(found) for found in covered.values()) > 0.95 - 3 * np.sqrt(0.05 * 0.95 / 100)


def test_simultaneous_bands_hold_at_all_shares_at_once():
    rng, held = np.random.default_rng(0), []
    for _ in range(100):
        p = rng.uniform(0.5, 1, 400)
        curve = cal.risk_coverage(rng.random(400) < p, p, band="simultaneous")
        truth = (1 - curve.confidence) / 2  # the mean of 1 - p above the confidence
        held.append(bool(np.all((curve.low <= truth) & (truth <= curve.high))))
    assert np.mean(held) > 0.95 - 3 * np.sqrt(0.05 * 0.95 / 100)


def test_wrong_losses_are_refused():
    with pytest.raises(ValueError, match="'brier', 'log_loss' or an array"):
        cal.risk_coverage(Y, P, loss="hinge")
    with pytest.raises(ValueError, match="'brier', 'log_loss' or an array"):
        cal.risk_coverage(cal.Multiclass(Y, np.stack([1 - P, P], axis=1)), loss="hinge")
    with pytest.raises(cal.InvalidPredictions, match="no rows"):
        cal.risk_coverage(cal.BinTable.of(cal.Binary(Y, P), cal.table.Distinct()), loss=np.ones(120))
    with pytest.raises(cal.InvalidPredictions, match="loss has 3 rows, expected 120"):
        cal.risk_coverage(Y, P, loss=[1, 2, 3])


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


ORDERED_LOSSES_RNG = np.random.default_rng(2)
CONFIDENCE = np.round(ORDERED_LOSSES_RNG.random(80), 1)
LOSS, WEIGHT = ORDERED_LOSSES_RNG.gamma(1.0, size=80), ORDERED_LOSSES_RNG.gamma(2.0, size=80)
CLUSTER = ORDERED_LOSSES_RNG.integers(0, 12, 80)


def made(cluster=None):
    return OrderedLosses.of(CONFIDENCE, LOSS, WEIGHT, WEIGHT**2, cluster)


def test_risks_are_means_of_the_most_confident():
    found = made()
    values = found.confidence[found.ends]
    for value, risk, running in zip(values, found.risk, found.running, strict=True):
        some = value <= CONFIDENCE
        assert risk == pytest.approx(np.average(LOSS[some], weights=WEIGHT[some]))
        assert running == pytest.approx(WEIGHT[some].sum())


@pytest.mark.parametrize("cluster", [None, CLUSTER])
def test_variances_are_diagonals_of_the_covariance_up_to_the_correction_for_few_rows(cluster):
    found = made(cluster)
    runs = np.array([3, 6, 9])
    variance, carrying = found.variances(runs)
    diagonal = np.diag(found.covariance(runs))
    factor = 1.0 if cluster is not None else carrying / (carrying - 1)
    assert variance == pytest.approx(diagonal * factor)
    some = found.confidence[found.ends[6]] <= CONFIDENCE
    parts = WEIGHT * some * (LOSS - found.risk[6])
    sums = parts if cluster is None else np.bincount(CLUSTER, parts)
    assert diagonal[1] == pytest.approx((sums**2).sum() / WEIGHT[some].sum() ** 2)


def test_the_influence_is_the_derivative_of_the_area_by_weight():
    rows, step = np.arange(3000), 1e-4
    rng = np.random.default_rng(0)
    confidence, loss = rng.random(3000), rng.gamma(1.0, size=3000)
    found = OrderedLosses.of(confidence, loss, np.ones(3000), np.ones(3000))
    influence = np.empty(3000)
    influence[np.argsort(-confidence)] = found.area_influence()
    for k in (5, 700, 2999):
        weight = np.where(rows == k, 1 + step * 3000, 1.0)
        # The area of weighted rows: the mean over rows of the running mean.
        order = np.argsort(-confidence)
        running = np.cumsum((weight * loss)[order]) / np.cumsum(weight[order])
        changed = np.average(running, weights=weight[order])
        plain = np.mean(np.cumsum(loss[order]) / (rows + 1))
        assert (changed - plain) / step == pytest.approx(influence[k], rel=0.05, abs=0.05)


@pytest.mark.parametrize("ties", [False, True])
def test_the_influence_is_exact_in_runs_of_equal_confidence(ties):
    """Of the ideal order of errors, whose area is r + (1 - r) log(1 - r), it is -log(1 - r) times error less rate."""
    rng = np.random.default_rng(1)
    wrong = (rng.random(4000) < 0.3).astype(float)
    confidence = -wrong if ties else -wrong - 1e-9 * rng.random(4000)
    found = OrderedLosses.of(confidence, wrong, np.ones(4000), np.ones(4000))
    rate = wrong.mean()
    assert found.area() == pytest.approx(rate + (1 - rate) * np.log(1 - rate), abs=1e-3)
    if ties:
        expected = -np.log(1 - rate) * (found.loss - rate)
        assert found.area_influence() == pytest.approx(expected, abs=2e-3)
    assert found.spread(found.area_influence())[0] == pytest.approx(
        -np.log(1 - rate) * np.sqrt(rate * (1 - rate) / 4000), rel=0.02
    )


def test_the_largest_part_is_that_of_the_most_confident_error():
    found = OrderedLosses.of(np.array([0.9, 0.8, 0.7, 0.6]), np.array([0.0, 1, 0, 1]), np.ones(4), np.ones(4))
    assert found.largest_part() == pytest.approx((1 / 2 + 1 / 3 + 1 / 4) / 4)
    cluster = np.array([0, 1, 1, 1])
    both = OrderedLosses.of(found.confidence, found.loss, np.ones(4), np.ones(4), cluster)
    assert both.largest_part() == pytest.approx((1 / 2 + 1 / 3 + 1 / 4 + 1 / 4) / 4)
    assert both.clusters_up_to([0, 1, 3]).tolist() == [1, 2, 2]


def test_a_hundred_points_are_enough_for_a_simultaneous_band(monkeypatch):
    rng = np.random.default_rng(0)
    confidence = rng.random(5000)
    data = cal.Binary(rng.random(5000) < confidence, 0.5 + 0.4995 * confidence)

    def width():
        curve = cal.risk_coverage(data, band="simultaneous")
        return float((curve.high - curve.low)[300])

    found = width()
    monkeypatch.setattr(selective_prediction, "_BAND_POINTS", 800)
    assert found == pytest.approx(width(), rel=0.035)


@pytest.mark.parametrize("loss", ["error", "brier", "log_loss"])
def test_confidence_ranks_by_itself_and_every_wrong_answer_is_an_error(loss, monkeypatch):
    data = cal.Confidence(Y, P)
    curve = cal.risk_coverage(data, loss=loss)
    losses = {"error": 1 - Y, "brier": (P - Y) ** 2, "log_loss": -np.log(np.where(Y, P, 1 - P))}[loss]
    ordered = losses[np.argsort(-P)]
    assert curve.risk == pytest.approx(np.cumsum(ordered) / np.arange(1, 121))
    assert curve.confidence == pytest.approx(np.sort(P)[::-1])
    if loss == "error":
        assert curve.aurc == pytest.approx(area(ordered))
        assert curve.risk[-1] == pytest.approx(1 - Y.mean())
    monkeypatch.setattr(selective_prediction, "GRID_ROWS", 10)
    assert cal.risk_coverage(data, loss=loss).aurc == pytest.approx(curve.aurc)


def test_the_top_label_is_ranked_as_the_vectors_are():
    p = RNG.dirichlet([1, 1, 1], 60)
    data = cal.Multiclass(RNG.integers(0, 3, 60), p)
    assert cal.risk_coverage(data.top_label()).aurc == pytest.approx(float(cal.risk_coverage(data).aurc))
