"""Recalibration of forecasts: one factor where it is enough, a map of the spread where it is not."""

import numpy as np
import pytest

import calibrant as cal
from calibrant.reporting.sections.forecast_recalibration import forecast_recalibration
from calibrant.reporting.sections.how_to_apply import commands, forecast_code
from calibrant.reporting.sections.omission import CannotBuild
from tests.reporting.sections.running import run_commands


def gaussian(n=2000, *, factor=1.5, bent=False, seed=0, **columns):
    rng = np.random.default_rng([seed, n])
    std, mean = np.exp(0.5 * rng.normal(size=n)), rng.normal(size=n)
    own = np.where(std < 1, factor, 1.0) if bent else factor
    return cal.Gaussian(mean + own * std * rng.normal(size=n), mean, std, **columns)


def test_one_factor_is_enough_where_it_is_true():
    section = forecast_recalibration(gaussian())
    assert section.loss == "CRPS"
    assert section.loss_before == pytest.approx(float(cal.crps(gaussian())))
    assert (section.maps[0].name, section.maps[0].effect) == ("StdScaling", "best")
    assert section.maps[0].remaining.low == 0.0
    assert section.maps[0].remaining.high < 0.2


def test_one_factor_is_not_enough_where_only_small_spreads_are_wrong():
    section = forecast_recalibration(gaussian(4000, factor=1.8, bent=True))
    assert section.maps[0].name in ("SpreadSpline", "VarianceIsotonic")
    rows = {row.name: row for row in section.maps}
    assert rows["StdScaling"].remaining.low > 0.05


def test_the_gain_by_hand():
    data = gaussian()
    fold = np.random.default_rng(1).permutation(2000) % 5
    std = data.std.copy()
    for k in range(5):
        std[fold == k] *= float(cal.scale_factor(data.take(fold != k)))
    expected = 1 - float(cal.crps(cal.Gaussian(data.y_true, data.mean, std))) / float(cal.crps(data))
    gain = forecast_recalibration(data).maps[0].gain
    assert gain.value == pytest.approx(expected, abs=2e-3)


def test_intervals_cover_the_gain_of_the_factor():
    """Of normal errors with the factor f, a predicted factor s has an expected CRPS in closed form."""
    factor, covered = 1.0, []
    for seed in range(40):
        data = gaussian(200, factor=factor, seed=seed)
        row = next(row for row in forecast_recalibration(data).maps if row.name == "StdScaling")
        s = float(cal.scale_factor(data))

        def crps(s):
            return np.sqrt(2 / np.pi) * np.sqrt(s**2 + factor**2) - s / np.sqrt(np.pi)

        truth = 1 - crps(s) / crps(1.0)
        covered.append(row.gain.low <= truth <= row.gain.high)
    assert np.mean(covered) >= 0.9


@pytest.mark.no_cover
def test_calibrated_forecasts_are_not_repaired():
    found = [forecast_recalibration(gaussian(500, factor=1.0, seed=seed)).maps[0].effect for seed in range(8)]
    assert found.count("best") <= 1


@pytest.mark.parametrize(
    "columns", [{"group": np.arange(2000) // 4}, {"weight": np.random.default_rng(0).random(2000)}]
)
def test_clusters_and_weights(columns):
    assert forecast_recalibration(gaussian(**columns)).maps[0].effect == "best"


def test_other_forecasts():
    data = gaussian(600)
    rng = np.random.default_rng(0)
    draws = data.mean[:, None] + data.std[:, None] * rng.normal(size=(600, 15))
    assert forecast_recalibration(cal.Samples(data.y_true, draws)).maps[0].effect == "best"
    levels = np.array([0.05, 0.5, 0.95])
    values = data.mean[:, None] + data.std[:, None] * np.array([-1.645, 0.0, 1.645])
    found = forecast_recalibration(cal.Quantiles(data.y_true, levels, values))
    assert found.loss == "pinball loss"
    assert [row.name for row in found.maps] == ["Conformal"]
    assert found.command == ""


def test_what_cannot_be_judged():
    with pytest.raises(CannotBuild, match="Too few forecasts"):
        forecast_recalibration(gaussian(40))
    with pytest.raises(CannotBuild, match="one group"):
        forecast_recalibration(gaussian(200, group=[1] * 200))
    with pytest.raises(CannotBuild, match="table"):
        forecast_recalibration(cal.BinTable.of(gaussian(200), cal.table.LogGrid()))


@pytest.mark.parametrize("name", ["StdScaling", "SpreadSpline", "VarianceIsotonic"])
def test_commands_and_code_recalibrate_alike(name, tmp_path):
    data, new = gaussian(300), gaussian(20, seed=1)
    rows = [
        f"{y!r},{m!r},{s!r}" for y, m, s in zip(*(x.tolist() for x in (data.y_true, data.mean, data.std)), strict=True)
    ]
    (tmp_path / "labelled.csv").write_text("\n".join(["y,mean,std", *rows]) + "\n")
    rows = [f"{m!r},{s!r}" for m, s in zip(new.mean.tolist(), new.std.tolist(), strict=True)]
    (tmp_path / "new.csv").write_text("\n".join(["mean,std", *rows]) + "\n")
    run_commands(commands(name, "--mean mean --std std"), tmp_path)
    found = np.genfromtxt(tmp_path / "recalibrated.csv", delimiter=",", names=True)
    space = {"y": data.y_true, "mean": data.mean, "std": data.std, "mean_new": new.mean, "std_new": new.std}
    exec(forecast_code(name), space)
    np.testing.assert_allclose(found["std_recalibrated"], space["recalibrated"][:, 1], rtol=1e-9)
