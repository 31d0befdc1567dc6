"""Proper scores of forecasts: closed forms against foreign code, and the score a forecast expects of itself."""

import json
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from scipy import special, stats
from scipy.special import ndtri

import calibrant as cal
from calibrant.estimators import regression_scores as score_references
from calibrant.estimators.regression_scores import (
    EXCHANGED,
    crps_by_quadrature,
    crps_of_counts,
    exchanged_ensembles,
    fair_crps,
    gaussian_crps,
    student_log_losses,
)
from calibrant.numerics.rows import Rows
from tests.estimators.regression_peers import PEERS, peer_rows


def test_scores_agree_with_uncertainty_toolbox():
    data, _ = peer_rows()
    levels = np.linspace(0.01, 0.99, 99)
    assert cal.nll(data) == pytest.approx(PEERS["nll"], rel=1e-12)
    assert cal.crps(data) == pytest.approx(PEERS["crps"], rel=1e-12)
    assert cal.estimators.sharpness(data) == pytest.approx(PEERS["sharpness"], rel=1e-12)
    assert cal.pinball(data, levels=levels) == pytest.approx(PEERS["check"], rel=1e-12)
    assert np.mean([cal.interval_score(data, nominal=p) for p in levels]) == pytest.approx(PEERS["interval_score"])


@pytest.mark.no_cover
def test_ensemble_and_student_crps_agree_with_scoringrules():
    data, draws = peer_rows()
    assert cal.crps(cal.Samples(data.y_true, draws)) == pytest.approx(PEERS["fair_crps"], rel=1e-12)
    student = cal.Distribution(data.y_true, stats.t(5, data.mean, data.std))
    assert cal.crps(student) == pytest.approx(PEERS["t5_crps"], rel=1e-5)


def test_tables_with_equal_width_bins_give_what_netcal_gives():
    """Netcal cuts the variance (UCE) or the spread (ENCE) into equal widths, and averages ENCE over bins alike."""
    data, _ = peer_rows()
    std, variance, error = data.std, data.std**2, (data.y_true - data.mean) ** 2
    by_variance = Rows(variance, variance, error)
    table = cal.BinTable.of(by_variance, cal.EqualWidth(10, variance.min(), variance.max()))
    table = replace(table, task=cal.table.Spread())
    assert cal.uce(table) == pytest.approx(PEERS["netcal_uce"], rel=1e-12)
    some = cal.BinTable.of(data, cal.EqualWidth(10, std.min(), std.max())).filled()
    gaps = np.abs(1 - np.sqrt(some.observed_mean / some.predicted_mean))
    assert gaps.mean() == pytest.approx(PEERS["netcal_ence"], rel=1e-12)
    assert cal.ence(data) < 0.9 * PEERS["netcal_ence"]


def test_quantile_crps_nears_the_closed_form_as_levels_grow():
    data, _ = peer_rows()
    levels = np.arange(1, 200) / 200
    values = data.mean[:, None] + data.std[:, None] * stats.norm.ppf(levels)
    assert cal.crps(cal.Quantiles(data.y_true, levels, values)) == pytest.approx(cal.crps(data), rel=2e-3)


def test_the_fair_version_does_not_depend_on_the_number_of_draws():
    rng = np.random.default_rng(0)
    y = rng.normal(size=20_000)
    few, many = (cal.crps(cal.Samples(y, rng.normal(size=(20_000, m)))) for m in (2, 40))
    assert few == pytest.approx(many, abs=0.015)


def test_pinball_is_the_definition_level_by_level():
    data, _ = peer_rows()
    result = cal.pinball(data, levels=[0.1, 0.8])
    for level in (0.1, 0.8):
        q = stats.norm.ppf(level, data.mean, data.std)
        loss = np.where(data.y_true < q, (level - 1) * (data.y_true - q), level * (data.y_true - q))
        assert result.details["by_level"][level] == pytest.approx(loss.mean())
    twice = cal.pinball(data, levels=[0.1, 0.8, 0.8])  # a level that is given twice counts twice
    assert twice == pytest.approx(np.mean([result.details["by_level"][level] for level in (0.1, 0.8, 0.8)]))


METRICS = [cal.nll, cal.crps, cal.pinball, cal.interval_score]


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("kind", ["gaussian", "student", "draws", "quantiles"])
def test_a_right_forecast_meets_its_reference_score(metric, kind):
    rng = np.random.default_rng(3)
    mean, std = rng.normal(size=4000), rng.lognormal(0, 0.3, 4000)
    unit = rng.standard_t(7, 4000) if kind == "student" else rng.normal(size=4000)
    y, levels = mean + std * unit, np.arange(1, 20) / 20
    data = {
        "gaussian": lambda: cal.Gaussian(y, mean, std),
        "student": lambda: cal.Distribution(y, stats.t(7, mean, std)),
        "draws": lambda: cal.Samples(y, mean[:, None] + std[:, None] * rng.normal(size=(4000, 20))),
        "quantiles": lambda: cal.Quantiles(y, levels, mean[:, None] + std[:, None] * stats.norm.ppf(levels)),
    }[kind]()
    if metric is cal.nll and kind in ("draws", "quantiles"):
        with pytest.raises(TypeError, match="crps does without"):
            metric(data)
        return
    result = metric(data)
    null = result.details["null"]
    assert null["sd"] > 0
    assert abs(result - null["mean"]) < 4 * null["sd"]


def test_too_small_a_spread_scores_worse_than_its_reference():
    y = 2 * np.random.default_rng(0).normal(size=2000)
    for metric in METRICS:
        result = metric(y, 0 * y, 0 * y + 1)
        assert result > result.details["null"]["high"]


def test_sharpness_is_compared_with_the_error():
    y = 2 * np.random.default_rng(0).normal(size=5000)
    result = cal.estimators.sharpness(y, 0 * y, 0 * y + 1)
    assert result == 1
    assert result.details["null"]["mean"] == pytest.approx(2, rel=0.03)


def test_outputs_are_measured_one_by_one():
    rng = np.random.default_rng(0)
    y = rng.normal(size=(300, 2)) * [1, 3]
    data = cal.Gaussian(y, 0 * y, 0 * y + 1)
    for metric in (
        *METRICS,
        cal.estimators.sharpness,
        cal.interval_error,
        cal.quantile_error,
        cal.pit_error,
        cal.coverage,
    ):
        single = [metric(y[:, j], 0 * y[:, j], 0 * y[:, j] + 1).value for j in range(2)]
        assert metric(data).details["outputs"] == pytest.approx(single)


def test_every_result_can_be_written_as_json():
    data, draws = peer_rows()
    for task in (data, cal.Samples(data.y_true, draws)):
        for metric in (cal.ence, cal.interval_error, cal.pit_error, cal.coverage, cal.crps, cal.pinball):
            assert json.loads(json.dumps(metric(task).to_dict()))["details"]["null"]["mean"] >= 0


def test_the_crps_of_poisson_forecasts_is_the_closed_form():
    mean, y = np.array([0.1, 2.0, 7.5, 40.0, 40.0]), np.array([1.0, 2.0, 3.0, 41.0, 90.0])
    law = stats.poisson(mean)
    bessel = mean * (special.i0e(2 * mean) + special.i1e(2 * mean))
    expected = (y - mean) * (2 * law.cdf(y) - 1) + 2 * mean * law.pmf(y) - bessel
    found = cal.crps(cal.Distribution(y, law))
    assert found == pytest.approx(expected.mean(), rel=1e-9)
    assert found.method == "sum"
    assert cal.interval(cal.crps, cal.Distribution(y, law)).interval.low < found
    assert cal.nll(cal.Distribution(y, law)) == pytest.approx(-law.logpmf(y).mean())


@pytest.mark.parametrize(
    "law",
    [stats.binom(12, 0.3), stats.nbinom(3, 0.4), stats.poisson(4.0, loc=0.5), stats.randint(-3, 4)],
    ids=["binom", "nbinom", "shifted", "randint"],
)
@pytest.mark.parametrize("y", [-5.0, 0.5, 2.25, 3.0, 60.0])
def test_the_crps_of_counts_is_half_a_distance_short_of_the_mean_distance(law, y):
    """E|X - y| - E|X - X'| / 2, over all counts."""
    at = law.support()[0] + np.arange(400.0)
    chance = law.pmf(at)
    expected = chance @ np.abs(at - y) - chance @ np.abs(at[:, None] - at) @ chance / 2
    assert cal.crps(cal.Distribution(np.full(200, y), law)) == pytest.approx(expected, abs=1e-9)


def test_the_crps_of_large_counts_is_as_good_as_that_of_a_continuous_distribution(monkeypatch):
    law = stats.poisson(np.array([1e6, 2.0]))
    found = crps_of_counts(cal.Distribution([0.0, 0.0], law))(np.array([1_000_500.0, 3.0]))
    large, small = gaussian_crps(np.array([0.5]))[0] * 1e3, crps_of_counts(cal.Distribution([3.0], stats.poisson(2.0)))
    assert found == pytest.approx([large, small(np.array([3.0]))[0]], rel=1e-3)
    monkeypatch.setattr(score_references, "AT_ONCE", 1)  # one count at a time, as of many rows
    again = crps_of_counts(cal.Distribution([0.0, 0.0], law))(np.array([1_000_500.0, 3.0]))
    np.testing.assert_allclose(again, found, rtol=1e-12)


def test_the_gaussian_reference_is_closed_form_and_agrees_with_simulation():
    rng = np.random.default_rng(0)
    std, w = rng.lognormal(0, 0.5, 200), rng.random(200)
    data = cal.Gaussian(rng.normal(size=200), np.zeros(200), std, weight=w)
    null = score_references.gaussian_reference(data, gaussian_crps, 1 / np.sqrt(np.pi))
    assert null["mean"] == pytest.approx(w @ std / w.sum() / np.sqrt(np.pi), rel=1e-12)
    same = score_references.simulated_reference(data, lambda y: gaussian_crps(y / std) * std)
    assert same["mean"] == pytest.approx(null["mean"], rel=0.02)
    assert same["sd"] == pytest.approx(null["sd"], rel=0.05)


def test_simulated_outcomes_follow_the_predicted_distribution():
    mean, std = np.full(20_000, 3.0), np.full(20_000, 2.0)
    levels = np.linspace(0.01, 0.99, 99)
    tasks = [
        cal.Gaussian(mean, mean, std),
        cal.Distribution(mean, stats.norm(mean, std)),
        cal.Quantiles(mean, levels, mean[:, None] + std[:, None] * stats.norm.ppf(levels)),
    ]
    for task in tasks:
        seen = []
        score_references.simulated_reference(task, lambda y, seen=seen: (seen.append(y), y)[1])
        assert len(seen) == 2
        assert stats.kstest(seen[0], "norm", (3.0, 2.0)).statistic < 0.01
    with pytest.raises(TypeError, match="Cannot simulate outcomes of Samples"):
        score_references.simulated_reference(cal.Samples([1.0], [[0.0, 1.0]]), lambda y: y)


def test_small_samples_are_simulated_until_there_are_ten_thousand_outcomes():
    seen = []
    data = cal.Gaussian(np.zeros(30), np.zeros(30), np.ones(30))
    score_references.simulated_reference(data, lambda y: (seen.append(len(y)), y)[1])
    assert len(seen) == 334
    assert sum(seen) >= score_references.SIMULATED


def test_outcomes_are_exchanged_with_draws_of_their_own_row():
    draws = np.arange(12.0).reshape(3, 4)
    data = cal.Samples([100.0, 200.0, 300.0], draws, weight=[1.0, 2.0, 3.0])
    tasks = list(exchanged_ensembles(data))
    assert len(tasks) * 3 >= score_references.SIMULATED
    assert len(list(exchanged_ensembles(cal.Samples(np.zeros(20_000), np.zeros((20_000, 2)))))) == 10
    values = np.sort(np.column_stack([data.y_true, draws]), axis=1)
    for task in tasks:
        assert np.array_equal(np.sort(np.column_stack([task.y_true, task.draws]), axis=1), values)
        assert np.array_equal(task.weight, data.weight)
    stayed = np.mean([task.y_true == data.y_true for task in tasks])
    assert stayed == pytest.approx(1 / 5, abs=4 * np.sqrt(0.16 / 10_000))


@pytest.mark.parametrize("members", [2, 7])
def test_students_likelihood_of_an_ensemble_is_that_of_its_distribution(members):
    rng = np.random.default_rng(0)
    data = cal.Samples(rng.normal(size=30), rng.normal(size=(30, members)))
    scale = data.draws.std(axis=1, ddof=1) * np.sqrt(1 + 1 / members)
    law = stats.t(members - 1, data.mean, scale)
    assert student_log_losses(data) == pytest.approx(-law.logpdf(data.y_true))
    alike = student_log_losses(cal.Samples([0.0, 1.0], np.zeros((2, members))))
    assert np.isfinite(alike).all()


def test_two_draws_have_a_reference():
    rng = np.random.default_rng(0)
    data = cal.Samples(rng.normal(size=4000), rng.normal(size=(4000, 2)))
    null = score_references.exchanged_reference(data, fair_crps)
    assert abs(fair_crps(data).mean() - null["mean"]) < 4 * null["sd"]


def test_the_fair_crps_is_its_double_sum():
    rng = np.random.default_rng(1)
    y, draws = rng.normal(size=20), rng.normal(size=(20, 6))
    first = np.abs(draws - y[:, None]).mean(axis=1)
    second = np.abs(draws[:, :, None] - draws[:, None, :]).sum(axis=(1, 2)) / (6 * 5)
    np.testing.assert_allclose(fair_crps(cal.Samples(y, draws)), first - second / 2, rtol=1e-12)


@pytest.mark.parametrize("y", [-3.0, 0.0, 0.7, 5.0])
def test_the_crps_by_quadrature_is_that_of_the_closed_form(y):
    found = crps_by_quadrature(cal.Distribution([y], stats.norm([0.0], [1.0])))
    assert found[0] == pytest.approx(gaussian_crps(np.array([y]))[0], rel=2e-4)
    uniform = crps_by_quadrature(cal.Distribution([0.3], stats.uniform([0.0], [1.0])))
    assert uniform[0] == pytest.approx(0.3**2 - 0.3 + 1 / 3, rel=1e-6)


def test_scores_of_quantiles_have_a_reference_of_their_own():
    rng = np.random.default_rng(2)
    levels = np.array([0.1, 0.5, 0.9])
    std = rng.lognormal(0, 0.3, 3000)
    y = std * rng.normal(size=3000)
    values = std[:, None] * stats.norm.ppf(levels)

    def width(y, q):
        return q[1] - q[0] + 0 * y

    null = score_references.quantile_reference(cal.Quantiles(y, levels, values), np.array([0.1, 0.9]), width)
    assert null["mean"] == pytest.approx((values[:, 2] - values[:, 0]).mean())
    draws = cal.Samples(y, std[:, None] * rng.normal(size=(3000, 40)))
    assert score_references.quantile_reference(draws, np.array([0.1, 0.9]), width)["law"] == EXCHANGED


LEVELS = np.arange(1, 10) / 10
RNG = np.random.default_rng(0)
Y, WEIGHT = RNG.normal(size=40), RNG.uniform(0.5, 2, 40)
KINDS = {
    "gaussian": cal.Gaussian(Y, np.zeros(40), np.ones(40), weight=WEIGHT),
    "distribution": cal.Distribution(Y, stats.logistic(np.zeros(40), 1.0), weight=WEIGHT),
    "quantiles": cal.Quantiles(Y, LEVELS, np.tile(ndtri(LEVELS), (40, 1)), weight=WEIGHT),
    "samples": cal.Samples(Y, RNG.normal(size=(40, 20)), weight=WEIGHT),
    "outputs": cal.Gaussian(np.stack([Y, Y], 1), np.zeros((40, 2)), np.ones((40, 2)), weight=WEIGHT),
}
SCORES = (
    cal.crps,
    cal.nll,
    partial(cal.nll, floor=0.1),
    partial(cal.pinball, levels=[0.2, 0.8]),
    partial(cal.interval_score, nominal=0.8),
    partial(cal.coverage, nominal=0.6),
)


@pytest.mark.no_cover
@pytest.mark.parametrize("kind", KINDS)
def test_a_score_is_the_weighted_mean_of_its_losses(kind):
    data = KINDS[kind]
    for score in SCORES:
        if "nll" in str(score) and kind in ("quantiles", "samples"):
            continue
        found = score(data)
        losses = found.target.losses(data)
        assert losses.shape == (data.y_true.size,)
        assert found == pytest.approx(np.average(losses, weights=data.flat_weight))
