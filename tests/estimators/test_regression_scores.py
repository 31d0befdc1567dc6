"""Proper scores: closed forms against foreign code, and the score a forecast expects of itself."""

import json
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

import calibrant as cal
from calibrant.numerics.rows import Rows
from tests.estimators.regression_peers import PEERS, peer_rows


def test_scores_agree_with_uncertainty_toolbox():
    data, _ = peer_rows()
    levels = np.linspace(0.01, 0.99, 99)
    assert cal.nll(data) == pytest.approx(PEERS["nll"], rel=1e-12)
    assert cal.crps(data) == pytest.approx(PEERS["crps"], rel=1e-12)
    assert cal.sharpness(data) == pytest.approx(PEERS["sharpness"], rel=1e-12)
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
    result = cal.sharpness(y, 0 * y, 0 * y + 1)
    assert result == 1
    assert result.details["null"]["mean"] == pytest.approx(2, rel=0.03)


def test_outputs_are_measured_one_by_one():
    rng = np.random.default_rng(0)
    y = rng.normal(size=(300, 2)) * [1, 3]
    data = cal.Gaussian(y, 0 * y, 0 * y + 1)
    for metric in (*METRICS, cal.sharpness, cal.interval_error, cal.quantile_error, cal.pit_error, cal.coverage):
        single = [metric(y[:, j], 0 * y[:, j], 0 * y[:, j] + 1).value for j in range(2)]
        assert metric(data).details["outputs"] == pytest.approx(single)


def test_every_result_can_be_written_as_json():
    data, draws = peer_rows()
    for task in (data, cal.Samples(data.y_true, draws)):
        for metric in (cal.ence, cal.interval_error, cal.pit_error, cal.coverage, cal.crps, cal.pinball):
            assert json.loads(json.dumps(metric(task).to_dict()))["details"]["null"]["mean"] >= 0


def test_counts_have_no_crps_and_say_what_to_do():
    with pytest.raises(TypeError, match="use Samples"):
        cal.crps(cal.Distribution([1.0, 2.0], stats.poisson(2.0)))
    assert cal.nll(cal.Distribution([1.0, 2.0], stats.poisson(2.0))) == pytest.approx(
        -stats.poisson.logpmf([1, 2], 2.0).mean()
    )
