"""The recalibration section: which map helps, by how much, what remains, and code that does what was measured."""

import numpy as np
import pandas as pd
import pytest

import calibrant as cal
from calibrant.recalibrate import Isotonic, Platt, VectorScaling
from calibrant.recalibrate.held_out_gains import held_out_rows
from calibrant.reporting.contents import CannotBuild
from calibrant.reporting.evidence import Part
from calibrant.reporting.sections.recalibration import (
    Candidate,
    class_recalibration,
    forecast_recalibration,
    held_out_of,
    parts_held_out,
    ranked,
    recalibrated,
)
from calibrant.results.estimate import Value
from tests.reporting.sections.classes_worlds import classes
from tests.reporting.sections.worlds import binary, part

NAMES = {"Temperature", "Platt", "Beta", "Quadratic", "Spline", "Isotonic"}


@pytest.fixture(scope="module")
def section():
    return recalibrated(part(5000, slope=0.6, shift=-0.8, seed=1))[0]


def test_every_map_is_judged_and_the_simplest_that_does_as_well_is_best(section):
    assert {row.name for row in section.maps} == NAMES
    assert [row.effect for row in section.maps].count("best") == 1
    assert section.maps[0].name == "Platt"  # the truth is a line on log odds
    assert section.maps[0].effect == "best"
    assert section.loss == "log loss"
    assert section.loss_before == pytest.approx(float(cal.log_loss(binary(5000, slope=0.6, shift=-0.8, seed=1))))


def test_the_gain_is_that_of_maps_fitted_on_other_rows(section):
    data = binary(5000, slope=0.6, shift=-0.8, seed=1)
    fold = np.random.default_rng(3).permutation(5000) % 5
    q = np.empty(5000)
    for k in range(5):
        q[fold == k] = (
            Platt().fit(data.y_prob[fold != k], data.y_true[fold != k]).predict_proba(data.y_prob[fold == k])[:, 1]
        )
    before, after = float(cal.log_loss(data)), float(cal.log_loss(data.y_true, q))
    best = section.maps[0].gain
    assert best.value == pytest.approx(1 - after / before, abs=0.002)  # other folds
    assert best.low < 1 - after / before < best.high


def test_the_remaining_error_has_its_interval(section):
    first, before = (
        section.maps[0].remaining,
        float(cal.averaged_error(binary(5000, slope=0.6, shift=-0.8, seed=1), norm=1)),
    )
    assert first.low == 0.0
    assert first.high < 0.05 < before
    for row in section.maps:
        assert row.remaining.low <= row.remaining.value <= row.remaining.high
        assert row.remaining.high >= first.high
    temperature = next(row for row in section.maps if row.name == "Temperature").remaining
    assert temperature.low > first.high / 2  # a factor cannot repair a shift


def test_the_curve_after_is_near_the_diagonal(section):
    after = section.after
    middle = (np.array(after.low) + np.array(after.high)) / 2
    assert np.abs(middle - np.array(after.rate)).mean() < 0.1
    assert len(after.confidence.score) > 10


@pytest.mark.no_cover
def test_calibrated_predictions_are_not_repaired():
    found = [recalibrated(part(1500, seed=seed))[0] for seed in range(8)]
    assert sum(section.maps[0].effect == "best" for section in found) <= 1
    assert all(row.gain.low < 0.005 for section in found for row in section.maps)


def test_brier_score_where_log_loss_is_infinite():
    data = binary(2000, slope=0.5)
    p = data.y_prob.copy()
    p[np.flatnonzero(data.y_true == 1)[:3]] = 0.0
    section = recalibrated(Part(cal.Binary(data.y_true, p)))[0]
    assert section.loss == "Brier score"
    assert section.loss_before == pytest.approx(float(cal.brier(data.y_true, p)))
    assert np.isfinite(section.maps[0].gain.value)


@pytest.mark.no_cover
@pytest.mark.parametrize("kind", ["weighted", "clustered", "table", "few scores"])
def test_every_kind_of_data(kind):
    rng = np.random.default_rng(0)
    columns = {
        "weighted": {"weight": rng.random(2000)},
        "clustered": {"group": np.arange(2000) // 5},
        "few scores": {"digits": 1},
    }.get(kind, {})
    data = binary(2000, slope=0.6, shift=-0.8, **columns)
    whole = cal.BinTable.of(data, cal.table.HybridGrid()) if kind == "table" else data
    section, after = recalibrated(Part(whole))
    assert section.maps[0].effect == "best"
    assert after.cells.n == 2000
    assert section.maps[0].remaining.high < 0.1


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (cal.Binary([0, 1] * 20, [0.4, 0.6] * 20), "Too few rows"),
        (cal.Binary([0] * 990 + [1] * 10, np.linspace(0.01, 0.5, 1000)), "Too few rows"),
        (cal.Binary([0, 1] * 200, [0.4, 0.6] * 200, group=[1] * 400), "one group"),
    ],
)
def test_what_cannot_be_judged(data, reason):
    with pytest.raises(CannotBuild, match=reason):
        recalibrated(Part(data))


def test_rows_after_the_map_are_those_before_it():
    data = binary(1000, slope=0.5, group=np.arange(1000)[::-1] // 4)
    after = recalibrated(Part(data))[1].data
    np.testing.assert_array_equal(after.y_true, data.y_true)
    np.testing.assert_array_equal(after.group, data.group)
    assert float(cal.log_loss(after)) < float(cal.log_loss(data))


def candidate(name, parameters, gain, reach):
    return Candidate(name, parameters, Value(gain, gain - reach, gain + reach), None)


def order(*candidates, error=0.01):
    return [(one.name, effect) for one, effect in ranked(candidates, lambda a, b: error)]


def test_the_largest_gain_that_is_clear_is_best():
    found = order(candidate("a", 1, 0.02, 0.01), candidate("b", 3, 0.06, 0.02), candidate("c", 2, -0.1, 0.05))
    assert found == [("b", "best"), ("a", "helps"), ("c", "makes it worse")]


@pytest.mark.parametrize(("error", "best"), [(0.01, "b"), (0.05, "a")])
def test_within_one_standard_error_the_fewest_parameters_win(error, best):
    assert order(candidate("a", 1, 0.02, 0.01), candidate("b", 3, 0.06, 0.02), error=error)[0] == (best, "best")


def test_nothing_is_best_where_no_interval_excludes_zero():
    found = order(candidate("a", 1, 0.01, 0.02), candidate("b", 3, 0.02, 0.04), candidate("c", 9, -0.03, 0.01))
    assert found == [("b", "may not help"), ("a", "may not help"), ("c", "makes it worse")]


def test_a_map_that_may_not_help_is_never_best():
    assert order(candidate("a", 1, 0.055, 0.06), candidate("b", 3, 0.06, 0.02), error=0.1)[0] == ("b", "best")


@pytest.mark.parametrize("kind", ["rows", "weighted", "clustered", "table"])
def test_every_row_is_held_out_once(kind):
    weight = np.random.default_rng(2).integers(0, 3, 3000).astype(float) if kind == "weighted" else None
    group = np.arange(3000) // 10 if kind == "clustered" else None
    data = binary(3000, weight=weight, group=group)
    data = cal.BinTable.of(data, cal.table.HybridGrid()) if kind == "table" else data
    part = Part(data)
    held_out = held_out_of(part)
    assert held_out.entries.total == pytest.approx(part.cells.total)
    assert held_out.entries.ones.sum() == pytest.approx(part.cells.observed.sum())
    assert len(held_out.bounds) == 5
    assert [where.start for where in held_out.bounds[1:]] == [where.stop for where in held_out.bounds[:-1]]
    after = held_out.after(held_out.score)
    table = after if isinstance(after, cal.BinTable) else cal.BinTable.of(after, cal.table.Distinct()).filled()
    np.testing.assert_allclose(table.sums.sum(axis=1), part.cells.sums.sum(axis=1), rtol=1e-6)


@pytest.mark.parametrize("recalibrator", [Platt(), Isotonic()])
def test_predictions_are_those_of_maps_fitted_without_the_fold(recalibrator):
    part = Part(binary(1000, slope=0.7))
    held_out = held_out_of(part)
    q = held_out.judged(recalibrator, "log loss", parameters=2.0)[1]
    for where, others in zip(held_out.bounds, part.folds.training, strict=True):
        expected = recalibrator.fit_table(others).predict_proba(held_out.score[where])[:, 1]
        np.testing.assert_array_equal(q[where], expected)


def test_counting_on_a_grid_hardly_changes_a_map():
    part = Part(binary(30_000, slope=0.7))
    held_out = held_out_of(part)
    assert 1 << 10 < max(len(table) for table in held_out.training) < 1 << 11
    q = held_out.judged(Platt(), "log loss", parameters=2.0)[1]
    for where, others in zip(held_out.bounds, part.folds.training, strict=True):
        exact = Platt().fit_table(others).predict_proba(held_out.score[where])[:, 1]
        np.testing.assert_allclose(q[where], exact, atol=2e-4)


def test_clusters_are_held_out_whole():
    group = np.arange(1000) // 20
    held_out = held_out_of(Part(binary(1000, group=group)))
    folds = [set(held_out.rows.group[where]) for where in held_out.bounds]
    assert sum(len(fold) for fold in folds) == len(set.union(*folds)) == 50
    assert isinstance(held_out.after(held_out.score), cal.Binary)


def test_the_error_of_a_difference_is_paired():
    held_out = held_out_of(Part(binary(2000, slope=0.7)))
    q = held_out.judged(Platt(), "log loss", parameters=2.0)[1]
    assert held_out.error_of_difference(q, q, "log loss") == 0
    assert held_out.error_of_difference(q, held_out.score, "log loss") > 0


@pytest.mark.parametrize("columns", [{}, {"group": np.arange(900) // 7}, {"weight": np.arange(900) % 3}])
def test_rows_keep_their_order(columns):
    data = binary(900, slope=0.6, shift=-0.5, **columns)
    part = Part(data)
    held_out = held_out_of(part)
    _, q, fitted, moved = held_out.judged(Platt(), "log loss", parameters=2.0)
    rows = held_out_rows(data, fitted, part.seed)
    np.testing.assert_array_equal(rows.y_true, data.y_true)
    counted = slice(None) if data.weight is None else data.weight > 0
    own = np.sort(q) if data.weight is None else np.unique(q)
    np.testing.assert_allclose(np.sort(rows.y_prob[counted]), own, atol=1e-12)
    assert np.corrcoef(rows.y_prob, data.y_prob)[0, 1] > 0.95
    assert moved == pytest.approx(np.average(np.abs(rows.y_prob - data.y_prob), weights=data.weight))


WHOLE_VECTOR = {"Temperature", "VectorScaling", "MatrixScaling", "Dirichlet", "ConditionalLogit"}


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


def test_errors_that_no_matrix_repairs_are_told_a_conditional_logit():
    rng = np.random.default_rng(4)
    p = rng.dirichlet(np.ones(4), 3000)
    true = p * np.exp(1.5 * np.sin(7 * p))
    true /= true.sum(axis=1, keepdims=True)
    y = (true.cumsum(axis=1) < rng.random((3000, 1))).sum(axis=1).clip(max=3)
    section = class_recalibration(cal.Multiclass(y, p))
    assert (section.maps[0].name, section.maps[0].effect) == ("ConditionalLogit", "best")
    assert section.maps[0].gain.low > max(row.gain.value for row in section.maps[1:])
    assert "ConditionalLogit().fit(data)" in section.code


@pytest.mark.no_cover
def test_class_gains_are_those_of_maps_fitted_on_other_rows():
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


def test_class_brier_score_where_log_loss_is_infinite():
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


@pytest.mark.no_cover
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


@pytest.mark.parametrize("members", [2, 3, 20])
def test_draws_are_judged_by_a_score_that_stretches_do_not_deceive(members):
    """CRPS of stretched draws fell without end for two of them, and rose where three were rightly stretched."""
    rng = np.random.default_rng(7)
    for factor, helps in ((1.0, False), (1.5, True)):
        data = cal.Samples(factor * rng.normal(size=2000), rng.normal(size=(2000, members)))
        best = forecast_recalibration(data).maps[0]
        assert (best.effect == "best") == helps
        assert abs(best.gain.value) < 0.01 if not helps else best.gain.low > 0


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


def test_forecasts_that_cannot_be_judged():
    with pytest.raises(CannotBuild, match="Too few forecasts"):
        forecast_recalibration(gaussian(40))
    with pytest.raises(CannotBuild, match="one group"):
        forecast_recalibration(gaussian(200, group=[1] * 200))
    with pytest.raises(CannotBuild, match="table"):
        forecast_recalibration(cal.BinTable.of(gaussian(200), cal.table.LogGrid()))


def test_maps_have_about_as_many_parameters_as_they_show(section):
    shown = {row.name: row.parameters for row in section.maps}
    assert [shown[name] for name in ("Temperature", "Platt", "Beta", "Quadratic", "Spline")] == [1, 2, 3, 3, 5]
    y = np.random.default_rng(0).normal(size=300)
    forecasts = forecast_recalibration(cal.Gaussian(y, np.zeros(300), np.linspace(1, 2, 300)))
    assert {row.name: row.parameters for row in forecasts.maps} == {
        "StdScaling": 1,
        "SpreadSpline": 5,
        "VarianceIsotonic": 10,
    }


def test_one_fold_is_held_out_where_maps_are_slow():
    assert parts_held_out(1_000_000, 10) == 5
    assert parts_held_out(700_000, 13) == 1


@pytest.mark.parametrize(("n", "maps"), [(24, 1), (25, 2), (39, 2), (40, 4)])
def test_a_map_needs_five_rows_for_each_parameter(n, maps):
    from calibrant.reporting.sections.recalibration import _class_maps

    assert len(_class_maps(3, n)) == maps


def run(section, **space):
    exec(section.code, space)
    return np.asarray(space["recalibrated"])


def test_the_code_fits_the_map_to_the_rows_as_the_user_has_them():
    data, new = binary(400, slope=0.6), np.linspace(0.01, 0.99, 30)
    expected = getattr(cal.recalibrate, recalibrated(Part(data))[0].fitted)().fit(data).transform(new)
    np.testing.assert_array_equal(run(recalibrated(Part(data))[0], data=data, p_new=new), expected)
    given = cal.report(data.y_true, data.y_prob).recalibration
    np.testing.assert_array_equal(run(given, p=data.y_prob, y=data.y_true, p_new=new), expected)
    frame = pd.DataFrame({"kept it": data.y_true, "score": data.y_prob})
    own = cal.report(frame["kept it"], frame["score"]).recalibration
    assert 'df["score"], df["kept it"]' in own.code
    np.testing.assert_array_equal(run(own, df=frame, p_new=new), expected)


def test_the_code_of_classes_and_forecasts_runs():
    data = classes(400, 3, sharp=1.5)
    assert run(class_recalibration(data), data=data, p_new=data.y_prob[:20]).shape == (20, 3)
    spread = gaussian(300)
    made = run(forecast_recalibration(spread), data=spread, mean_new=spread.mean[:5], std_new=spread.std[:5])
    assert made.shape == (5, 2)
    draws = cal.Samples(spread.y_true, np.random.default_rng(0).normal(size=(300, 9)))
    section = forecast_recalibration(draws)
    space = {"data": draws, "new": draws}
    exec(section.code, space)
    assert space["recalibrated"].draws.shape == (300, 9)
