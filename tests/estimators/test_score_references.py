"""Reference scores: what to expect if the predicted distributions are right."""

import numpy as np
import pytest
from scipy import stats

import calibrant as cal
from calibrant.estimators import score_references
from calibrant.estimators.score_references import crps_by_quadrature, fair_crps, gaussian_crps, leave_one_out_ensembles


def test_the_gaussian_reference_is_closed_form_and_agrees_with_simulation():
    rng = np.random.default_rng(0)
    std, w = rng.lognormal(0, 0.5, 200), rng.random(200)
    data = cal.Gaussian(rng.normal(size=200), np.zeros(200), std, weight=w)
    null = score_references.gaussian(data, gaussian_crps, 1 / np.sqrt(np.pi))
    assert null["mean"] == pytest.approx(w @ std / w.sum() / np.sqrt(np.pi), rel=1e-12)
    same = score_references.simulated(data, lambda y: gaussian_crps(y / std) * std)
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
        score_references.simulated(task, lambda y, seen=seen: (seen.append(y), y)[1])
        assert len(seen) == 2
        assert stats.kstest(seen[0], "norm", (3.0, 2.0)).statistic < 0.01
    with pytest.raises(TypeError, match="Cannot simulate outcomes of Samples"):
        score_references.simulated(cal.Samples([1.0], [[0.0, 1.0]]), lambda y: y)


def test_small_samples_are_simulated_until_there_are_ten_thousand_outcomes():
    seen = []
    data = cal.Gaussian(np.zeros(30), np.zeros(30), np.ones(30))
    score_references.simulated(data, lambda y: (seen.append(len(y)), y)[1])
    assert len(seen) == 334
    assert sum(seen) >= score_references.SIMULATED


def test_leaving_one_out_takes_a_draw_of_each_row_as_the_outcome():
    draws = np.arange(12.0).reshape(3, 4)
    data = cal.Samples([100.0, 200.0, 300.0], draws, weight=[1.0, 2.0, 3.0])
    tasks = leave_one_out_ensembles(data)
    assert len(tasks) == 4
    for k, task in enumerate(tasks):
        assert np.array_equal(task.y_true, draws[:, k])
        assert np.array_equal(task.draws, np.delete(draws, k, axis=1))
        assert np.array_equal(task.weight, data.weight)
    assert len(leave_one_out_ensembles(cal.Samples(np.zeros(2), np.zeros((2, 50))))) == 10


def test_two_draws_leave_no_ensemble():
    data = cal.Samples([0.0], [[0.0, 1.0]])
    assert leave_one_out_ensembles(data) == []
    null = score_references.leave_one_out(data, fair_crps)
    assert np.isnan(null["mean"])
    assert "at least three draws" in null["law"]


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

    null = score_references.of_quantiles(cal.Quantiles(y, levels, values), np.array([0.1, 0.9]), width)
    assert null["mean"] == pytest.approx((values[:, 2] - values[:, 0]).mean())
    draws = cal.Samples(y, std[:, None] * rng.normal(size=(3000, 40)))
    assert score_references.of_quantiles(draws, np.array([0.1, 0.9]), width)["law"] == "leave-one-out ensembles"
