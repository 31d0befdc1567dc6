"""Multiclass and forecast recalibration: the simplest map that does as well comes first."""

import numpy as np
import pytest

import calibrant as cal
from calibrant.recalibrate import VectorScaling
from calibrant.reporting.contents import CannotBuild
from calibrant.reporting.sections.recalibration import class_code, class_columns, commands, forecast_code
from calibrant.reporting.sections.task_recalibration import class_recalibration, forecast_recalibration
from tests.reporting.sections.classes_worlds import classes
from tests.reporting.sections.running import run_commands

WHOLE_VECTOR = {"Temperature", "VectorScaling", "MatrixScaling", "Dirichlet"}


def test_an_over_sharp_softmax_is_told_temperature():
    section = class_recalibration(classes(sharp=1.6))
    assert {row.name for row in section.maps} == WHOLE_VECTOR
    assert (section.maps[0].name, section.maps[0].effect) == ("Temperature", "best")
    assert section.maps[0].remaining.low == 0.0
    assert section.loss_before == pytest.approx(float(cal.log_loss(classes(sharp=1.6))))


def test_a_class_that_is_too_low_needs_more_than_a_temperature():
    section = class_recalibration(classes(5000, lowered=1.0))
    assert section.maps[0].name == "VectorScaling"
    names = [row.name for row in section.maps]
    assert section.maps[names.index("Temperature")].gain.high < section.maps[0].gain.low


@pytest.mark.no_cover
def test_the_gain_is_that_of_maps_fitted_on_other_rows():
    data = classes(5000, lowered=1.0)
    fold, q = np.random.default_rng(1).permutation(5000) % 5, np.empty((5000, 4))
    for k in range(5):
        q[fold == k] = (
            VectorScaling().fit(data.y_prob[fold != k], data.y_true[fold != k]).predict_proba(data.y_prob[fold == k])
        )
    expected = 1 - float(cal.log_loss(cal.Multiclass(data.y_true, q))) / float(cal.log_loss(data))
    gain = class_recalibration(data).maps[0].gain
    assert gain.value == pytest.approx(expected, abs=0.003)
    assert gain.low < expected < gain.high


@pytest.mark.no_cover
def test_calibrated_vectors_are_not_repaired():
    found = [class_recalibration(classes(800, seed=seed)).maps[0].effect for seed in range(6)]
    assert found.count("best") <= 1


@pytest.mark.parametrize(
    "columns", [{"group": np.arange(3000) // 3}, {"weight": np.random.default_rng(0).random(3000)}]
)
def test_class_recalibration_clusters_and_weights(columns):
    section = class_recalibration(classes(sharp=1.8, **columns))
    assert section.maps[0].effect == "best"
    assert section.maps[0].remaining.high < 0.15


def test_few_rows_have_no_matrix():
    names = {row.name for row in class_recalibration(classes(300, 10, sharp=2.0)).maps}
    assert names == {"Temperature", "VectorScaling"}


def test_brier_score_where_log_loss_is_infinite():
    data = classes(sharp=1.6)
    p = data.y_prob.copy()
    p[0] = np.eye(4)[(data.y_true[0] + 1) % 4]
    section = class_recalibration(cal.Multiclass(data.y_true, p))
    assert section.loss == "Brier score"
    assert section.loss_before == pytest.approx(float(cal.brier(cal.Multiclass(data.y_true, p))))


def test_class_recalibration_what_cannot_be_judged():
    with pytest.raises(CannotBuild, match="Too few rows"):
        class_recalibration(classes(50))
    with pytest.raises(CannotBuild, match="one group"):
        class_recalibration(classes(300, group=[1] * 300))


def test_class_recalibration_commands_and_code_recalibrate_alike(tmp_path):
    data, labels = classes(400, 3, sharp=1.5), ["cat", "big dog", "bird"]
    rows = [",".join([labels[y], *map(repr, p)]) for y, p in zip(data.y_true, data.y_prob.tolist(), strict=True)]
    (tmp_path / "labelled.csv").write_text("\n".join(["y,cat,big dog,bird", *rows]) + "\n")
    new = data.y_prob[:20]
    (tmp_path / "new.csv").write_text("\n".join(["cat,big dog,bird", *(",".join(map(repr, p)) for p in new.tolist())]))
    run_commands(commands("VectorScaling", class_columns(labels)), tmp_path)
    lines = (tmp_path / "recalibrated.csv").read_text().splitlines()
    found = np.array([line.split(",")[3:] for line in lines[1:]], dtype=float)
    space = {"y": data.y_true, "p": data.y_prob, "p_new": new}
    exec(class_code("VectorScaling"), space)
    np.testing.assert_allclose(found, space["recalibrated"], rtol=1e-9)


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
