"""Intervals of AUC, Brier score and log loss that hold with few events."""

from functools import partial

import numpy as np
import pytest
from scipy import stats
from scipy.special import expit

import calibrant as cal
from calibrant.inference import EventLosses, PlacementScore
from calibrant.inference.score_intervals import _Losses, _Placements

SCORES = {"auc": cal.auc, "brier": cal.brier, "log loss": cal.log_loss}


def rare(n, seed, *, clustered=False, weighted=False, shift=0.0):
    """Rows of about half a percent events."""
    rng = np.random.default_rng(seed)
    p = expit(rng.normal(-5.5, 1.0, n))
    group = np.arange(n) // 10 if clustered else None
    c = expit(np.log(p / (1 - p)) + shift + (0.0 if group is None else 0.7 * rng.normal(size=n // 10)[group]))
    return cal.Binary(rng.random(n) < c, p, group=group, weight=rng.choice([1.0, 4.0], n) if weighted else None)


@pytest.mark.parametrize("kind", [{}, {"clustered": True}, {"weighted": True}])
def test_intervals_with_seven_expected_events_hold_and_never_fail(kind):
    """The bootstrap fails in most samples, and its upper ends of losses are too low in a sixth."""
    big = rare(400_000, 0, **kind)
    truth = {name: float(estimator(big)) for name, estimator in SCORES.items()}
    missed = dict.fromkeys(SCORES, 0)
    asked = dict.fromkeys(SCORES, 0)
    for k in range(60):
        data = rare(1000, 100 + k, **kind)
        for name, estimator in SCORES.items():
            if name == "auc" and not data.y_true.any():
                continue
            low, high = cal.interval(estimator, data).interval
            assert 0 <= low <= high
            assert high <= 1 or name == "log loss"
            asked[name] += 1
            missed[name] += not low <= truth[name] <= high
    for name in SCORES:
        assert missed[name] <= stats.binom.ppf(0.9995, asked[name], 0.06)


def test_the_interval_of_the_auc_is_the_set_written_out():
    rng = np.random.default_rng(2)
    p = np.concatenate([rng.normal(1.0, 1.0, 12), rng.normal(0.0, 1.0, 80)])
    p = expit(p).round(1)
    y = np.repeat([1, 0], [12, 80])
    found = cal.interval(cal.auc, y, p)
    wins = (p[:12, None] > p[12:]) + 0.5 * (p[:12, None] == p[12:])
    value = wins.mean()
    delong = wins.mean(axis=1).var(ddof=1) / 12 + wins.mean(axis=0).var(ddof=1) / 80

    def variance(a):
        return (a * (1 - a) + 11 * (a / (2 - a) - a**2) + 79 * (2 * a**2 / (1 + a) - a**2)) / 960

    k = max((delong / variance(np.clip(value, 0.5 / 13, 1 - 0.5 / 13))) ** (12 / 17), 1.0)
    t = min(stats.t.ppf(0.975, 13), 2.4 / 1.96 * stats.norm.ppf(0.975))
    a = np.linspace(0, 1, 1_000_001)
    inside = a[(value - a) ** 2 <= t**2 * k * variance(a)]
    assert found.value == pytest.approx(value)
    assert tuple(found.interval) == pytest.approx((inside[0], inside[-1]), abs=2e-6)
    few = cal.interval(cal.auc, [0] * 30 + [1, 1], np.append(np.linspace(0.1, 0.6, 30), [0.3, 0.5]))
    assert (
        PlacementScore()
        .interval(cal.Binary([0] * 30 + [1, 1], np.append(np.linspace(0.1, 0.6, 30), [0.3, 0.5])), few)
        .high
        == few.interval.high
    )
    wide = _Placements(12.0, 80.0, 4 * variance(0.75), None)
    assert wide._factor(0.75) == pytest.approx(4 ** (12 / 17))
    capped = _Placements(2.0, 30.0, 0.0, None)._quantile(0.95)
    assert capped == pytest.approx(2.4 / 1.96 * stats.norm.ppf(0.975))


def test_the_interval_of_a_loss_is_the_formula_written_out():
    rng = np.random.default_rng(3)
    p = rng.beta(1, 20, 300)
    y = rng.random(300) < p
    n, events = 300, y.sum()
    assert 5 < events < 100
    less, more = p**2, (1 - p) ** 2
    worth = np.maximum(more - less, 0.0) / n
    total, square = worth[y].sum(), (worth[y] ** 2).sum()
    chance = np.sqrt(p) / np.sqrt(p).sum()
    unseen, unseen_square = (max(chance @ worth**k, (worth[y] ** k).mean()) for k in (1, 2))
    loss = np.where(y, more, less)
    variance = loss.var(ddof=1) / n
    rate, z = y.mean(), stats.norm.ppf(0.975)
    rest = z * np.sqrt(max(variance - square * (1 - rate), less.var() / n))
    low = square / total * stats.gamma.ppf(0.025, total**2 / square)
    mean, spread = total + unseen, square + unseen_square
    high = spread / mean * stats.gamma.ppf(0.975, mean**2 / spread)
    down, up = (np.hypot(reach * np.sqrt(1 - rate), rest) for reach in (total - low, high - total))
    found = cal.interval(cal.brier, y, p)
    assert tuple(found.interval) == pytest.approx((loss.mean() - down, loss.mean() + up), rel=1e-9)
    assert cal.interval(cal.brier, ~y, 1 - p).interval.high == pytest.approx(found.interval.high)
    table = cal.BinTable.of(cal.Binary(y, p), cal.table.Distinct())
    assert tuple(cal.interval(cal.brier, table).interval) == pytest.approx(tuple(found.interval), rel=1e-9)


@pytest.mark.parametrize("events", [29, 30, 99, 100])
def test_the_formulas_change_with_the_number_of_events(events):
    """Below 30 the spread of few placements is not trusted to be small; from 100 on losses are normal but skewed."""
    placed = _Placements(float(events), 10_000.0, 1e-7, None)
    assert (placed._factor(0.8) == 1) == (events < 30)
    rng = np.random.default_rng(events)
    p = rng.beta(1, 30, 3000)
    y = np.zeros(3000, bool)
    y[rng.choice(3000, events, replace=False, p=p / p.sum())] = True
    data = cal.Binary(y, p)
    loss = (p - y) ** 2
    centred = loss - loss.mean()
    skewness = (centred**3).mean() / (centred**2).mean() ** 1.5
    z, error = stats.norm.ppf(0.975), loss.std(ddof=1) / np.sqrt(3000)
    shift = skewness / (6 * np.sqrt(3000)) * (1 + 2 * z**2)
    hall = loss.mean() + error * (z + shift)
    high = _Losses.of(data, cal.brier(data)).limits(0.95)[1]
    assert (abs(high - hall) < 1e-12) == (events >= 100)
    assert high == pytest.approx(hall, rel=0.1)


def test_clusters_of_copies_count_once_and_weights_have_no_unit():
    data = rare(1500, 5)
    copies = np.repeat(np.arange(1500), 3)
    many = cal.Binary(data.y_true[copies], data.y_prob[copies], group=copies)
    weighted = cal.Binary(data.y_true, data.y_prob, weight=np.full(1500, 7.0))
    for estimator in SCORES.values():
        own = tuple(cal.interval(estimator, data).interval)
        assert tuple(cal.interval(estimator, many).interval) == pytest.approx(own, rel=0.03)
        assert tuple(cal.interval(estimator, weighted).interval) == pytest.approx(own, rel=0.02)


def test_large_samples_agree_with_the_bootstrap():
    rng = np.random.default_rng(1)
    p = rng.random(4000)
    data = cal.Binary(rng.random(4000) < p, p)
    for estimator in SCORES.values():
        found, drawn = (cal.interval(estimator, data, method=method).interval for method in (None, "bootstrap"))
        width = drawn.high - drawn.low
        assert tuple(found) == pytest.approx(tuple(drawn), abs=0.12 * width)


def test_what_has_no_interval_is_said():
    with pytest.raises(ValueError, match="needs both outcomes"):
        cal.interval(cal.auc, [0, 0, 0], [0.1, 0.2, 0.3])
    with pytest.raises(cal.InvalidPredictions, match="is infinite"):
        cal.interval(cal.log_loss, [0, 1, 0], [0.1, 0.0, 0.3])
    floored = cal.interval(partial(cal.log_loss, floor=1e-6), [0, 1, 0] * 30, [0.1, 0.0, 0.3] * 30)
    assert floored.interval.low < floored < floored.interval.high
    with pytest.raises(TypeError, match="PlacementScore is for auc"):
        cal.interval(cal.brier, [0, 1, 0], [0.1, 0.5, 0.3], method=PlacementScore())
    with pytest.raises(TypeError, match="EventLosses is for mean losses"):
        cal.interval(cal.auc, [0, 1, 0], [0.1, 0.5, 0.3], method=EventLosses())
    none = cal.interval(cal.brier, np.zeros(50), np.full(50, 0.02)).interval
    assert none.low <= 0.02**2
    assert none.high > 0.05  # three events of 50 rows are possible
