"""AutoForecast averages what maps change in a forecast, starts from no change, says why, and is never certain."""

import numpy as np
import pytest
from scipy import stats

import calibrant as cal
from calibrant import recalibrate as rc
from calibrant.data.validation import InvalidPredictions
from calibrant.numerics.random_draws import fold_of_rows
from calibrant.recalibrate.regression_auto import QuantileChanges, SpreadChanges, changes_of


def gaussian(n, factor=1.0, seed=0, errors=None, **options):
    rng = np.random.default_rng(seed)
    mean, std = rng.normal(size=n), rng.lognormal(0, 0.4, n)
    z = rng.normal(size=n) if errors is None else errors(rng, n)
    return cal.Gaussian(mean + factor * std * z, mean, std, **options)


def expected_loss(before, after, factor):
    """Of the true distribution: the Dawid-Sebastiani score at the factor s, when the errors have the given one."""
    s = after.std / before.std
    return np.mean(np.log(s) + factor**2 / (2 * s**2))


def test_weights_and_losses_are_the_formula_written_out():
    data = gaussian(40, 1.3)
    auto = rc.AutoForecast([rc.StdScaling()], folds=4, seed=2).fit(data)
    fold, z = fold_of_rows(40, [1] * 4, seed=2), (data.y_true - data.mean) / data.std
    s = np.array([np.sqrt((5 + np.sum(z[fold != k] ** 2)) / (5 + np.sum(fold != k))) for k in fold])
    losses = {"no change": np.log(data.std) + z**2 / 2, "StdScaling()": np.log(s * data.std) + z**2 / 2 / s**2}
    best = z / s if losses["StdScaling()"].sum() < losses["no change"].sum() else z
    dispersion = max((np.mean(best**4) / np.mean(best**2) ** 2 - 1) / 2, 1)
    priors = {"no change": 0.3, "StdScaling()": 0.7}
    score = {name: priors[name] * np.exp(-own.sum() / dispersion) for name, own in losses.items()}
    for row in auto.results_:
        assert row["loss"] == pytest.approx(losses[row["name"]].mean())
        assert row["weight"] == pytest.approx(score[row["name"]] / sum(score.values()))
    weight = score["StdScaling()"] / sum(score.values())
    factor = auto.transform(data).std / data.std
    np.testing.assert_allclose(factor, ((5 + np.sum(z**2)) / 45) ** (weight / 2))


@pytest.mark.parametrize("factor", [0.5, 2.0])
def test_many_rows_find_the_factor_and_promise_the_gain_it_brings(factor):
    data = gaussian(2000, factor)
    auto = rc.AutoForecast().fit(data)
    fixed = auto.transform(data)
    assert np.mean(np.abs(fixed.std / data.std / factor - 1)) < 3 / np.sqrt(2 * 2000)  # three standard errors
    gain = expected_loss(data, data, factor) - expected_loss(data, fixed, factor)
    assert gain in auto.expected_gain().interval
    assert auto.expected_gain().interval.low > 0


def test_a_curve_of_the_spread_needs_five_hundred_rows():
    for n, names in ((400, ["no change", "StdScaling()"]), (600, ["no change", "StdScaling()", "SpreadSpline()"])):
        auto = rc.AutoForecast().fit(gaussian(n))
        assert [row["name"] for row in auto.results_] == names
        assert [row["name"] for row in auto.left_out_] == ["SpreadSpline()"][: n < 500]


def test_many_rows_find_a_curve_of_the_spread():
    rng = np.random.default_rng(0)
    std = rng.uniform(0.5, 2, 4000)
    data = cal.Gaussian(std**2 * rng.normal(size=4000), 0 * std, std)
    fixed = rc.AutoForecast().fit(data).transform(data)
    assert np.abs(fixed.std / std**2 - 1).mean() < 0.8 * np.sqrt(8 / (2 * 4000))  # that of eight free parameters


@pytest.mark.no_cover
@pytest.mark.filterwarnings("ignore:The row with std")
@pytest.mark.parametrize("errors", [None, lambda rng, n: rng.standard_t(4, n) / np.sqrt(2)], ids=["normal", "t4"])
@pytest.mark.parametrize("n", [5, 20, 100, 200])
def test_calibrated_forecasts_are_harmed_less_than_by_the_factor_alone(n, errors):
    harm = {"auto": [], "factor": []}
    for seed in range(40):
        data = gaussian(n, seed=seed, errors=errors)
        for name, map in (("auto", rc.AutoForecast()), ("factor", rc.StdScaling())):
            harm[name].append(expected_loss(data, map.fit(data).transform(data), 1) - expected_loss(data, data, 1))
    assert np.mean(harm["auto"]) < 2 / 3 * np.mean(harm["factor"])
    assert max(harm["auto"]) <= max(harm["factor"])


@pytest.mark.parametrize("n", [1, 2, 7, 60])
def test_n_rows_without_an_error_do_not_make_certain(n):
    """Errors of a billionth of the predicted spread, whose mean square would set the spread to a billionth."""
    std = np.geomspace(0.5, 2, n)
    data = cal.Gaussian(1e-9 * std, 0 * std, std)
    factor = rc.AutoForecast().fit(data).transform(data).std / std
    assert (factor >= 1 / np.sqrt(n + 1) - 1e-12).all()
    assert (factor <= 1).all()


def test_errors_of_exactly_zero_leave_the_forecast_as_it_is_and_say_why():
    data = cal.Gaussian([1.0, 2.0, 3.0], [1.0, 2.0, 3.0], [1.0, 1.0, 1.0])
    auto = rc.AutoForecast().fit(data)
    np.testing.assert_array_equal(auto.transform(data).std, data.std)
    reasons = {row["name"]: row["reason"] for row in auto.left_out_}
    assert reasons["StdScaling()"] == "All errors are zero: no spread would be small enough."
    assert reasons["SpreadSpline()"] == "a curve of the spread is tried from 500 rows on, here are 3"


def test_every_kind_of_forecast_keeps_its_kind():
    rng = np.random.default_rng(0)
    data = gaussian(400, 2.0)
    draws = cal.Samples(data.y_true, data.mean[:, None] + data.std[:, None] * rng.normal(size=(400, 30)))
    whole = cal.Distribution(data.y_true, stats.norm(data.mean, data.std))
    for forecast in (data, draws, whole):
        fixed = rc.AutoForecast().fit(forecast).transform(forecast)
        assert type(fixed) is type(forecast)
        assert np.mean(np.asarray(fixed.std) / np.asarray(forecast.std)) == pytest.approx(2.0, rel=0.1)


def test_quantiles_are_shifted_as_far_as_the_pinball_loss_says():
    levels, rng = [0.1, 0.5, 0.9], np.random.default_rng(0)
    for n, shift in ((2000, 1.0), (2000, 0.0), (30, 0.0)):
        y = rng.normal(shift, 1, n)
        data = cal.Quantiles(y, levels, np.tile(stats.norm.ppf(levels), (n, 1)))
        auto = rc.AutoForecast().fit(data)
        fixed = auto.transform(data)
        assert isinstance(fixed, cal.Quantiles)
        error = np.sqrt(0.1 * 0.9 / n) / stats.norm.pdf(stats.norm.ppf(0.1))  # that of the sample's outer quantiles
        atol = 3 * error if n > 30 else 1.3 * error  # few rows hardly move a forecast that is right
        np.testing.assert_allclose(fixed.values[0], stats.norm.ppf(levels) + shift, atol=atol)
    few = cal.Quantiles(y[:5], levels, np.tile(stats.norm.ppf(levels), (5, 1)))
    auto = rc.AutoForecast().fit(few)
    np.testing.assert_array_equal(auto.transform(few).values, few.values)
    assert auto.left_out_[0]["reason"] == "Level 0.9 needs at least 9 rows, got 4."


def test_quantiles_do_not_close_up_on_rows_without_a_spread():
    y = np.zeros(40)
    data = cal.Quantiles(y, [0.1, 0.5, 0.9], np.tile([-1.0, 0.0, 1.0], (40, 1)))
    fixed = rc.AutoForecast().fit(data).transform(data)
    assert (np.diff(fixed.values, axis=1) >= 1 / np.sqrt(41) - 1e-12).all()
    assert (np.diff(fixed.values, axis=1) < 0.5).all()


def test_several_outputs_are_averaged_each_for_itself():
    rng = np.random.default_rng(0)
    z = rng.normal(size=(500, 2)) * [1.0, 3.0]
    auto = rc.AutoForecast().fit(cal.Gaussian(z, 0 * z, 0 * z + 1))
    np.testing.assert_allclose(auto.transform([[0.0, 0.0, 1.0, 1.0]])[0, 2:], [1.0, 3.0], rtol=3 / np.sqrt(2 * 500))
    assert {row["output"] for row in auto.results_} == {0, 1}


@pytest.mark.filterwarnings("ignore:The row with std")
def test_weights_have_no_unit_and_a_row_of_none_is_no_row():
    data, weight = gaussian(80, 1.5), np.random.default_rng(1).uniform(0.5, 1.5, 80)
    weight[:5] = 0

    def factor(rows, weight):
        task = cal.Gaussian(data.y_true[rows], data.mean[rows], data.std[rows], weight=weight)
        return rc.AutoForecast().fit(task).transform([[0.0, 1.0]])[0, 1]

    np.testing.assert_allclose(factor(slice(None), weight), factor(slice(None), 1e3 * weight))
    np.testing.assert_allclose(factor(slice(None), weight), factor(slice(5, None), weight[5:]))


@pytest.mark.parametrize("quantiles", [False, True])
def test_it_comes_back_from_disk(tmp_path, quantiles):
    data = gaussian(200, 1.5)
    if quantiles:
        levels = [0.1, 0.5, 0.9]
        data = cal.Quantiles(data.y_true, levels, data.mean[:, None] + data.std[:, None] * stats.norm.ppf(levels))
    fitted = rc.AutoForecast().fit(data)
    fitted.save(tmp_path / "map.json")
    loaded = rc.load(tmp_path / "map.json")
    name = "values" if quantiles else "std"
    np.testing.assert_array_equal(getattr(loaded.transform(data), name), getattr(fitted.transform(data), name))
    assert loaded.expected_gain().interval == fitted.expected_gain().interval


def test_no_gain_is_promised_for_few_calibrated_rows_and_bad_options_are_refused():
    missed = sum(rc.AutoForecast().fit(gaussian(30, seed=seed)).expected_gain().interval.low > 0 for seed in range(30))
    assert missed <= 2
    with pytest.raises(ValueError, match="folds must be at least 2"):
        rc.AutoForecast(folds=1).fit(gaussian(30))
    with pytest.raises(InvalidPredictions, match="was fitted to forecasts with a spread"):
        rc.AutoForecast().fit(gaussian(30)).transform(cal.Quantiles([0.0], [0.5], [[0.0]]))


SPREADS = cal.Gaussian([1.0, 4.0, -1.0], [0.0, 3.0, 0.0], [1.0, 2.0, 0.5], weight=[1.0, 2.0, 1.0])
QUANTILES = cal.Quantiles([0.5, 3.0], [0.1, 0.5, 0.9], [[-1.0, 0.0, 1.0], [0.0, 2.0, 6.0]])


def test_the_loss_of_a_factor_is_that_of_the_stretched_gaussian():
    changes, factor = changes_of(SPREADS), np.array([[1.5], [0.5], [2.0]])
    stretched = cal.Gaussian(SPREADS.y_true, SPREADS.mean, SPREADS.std * factor[:, 0])
    expected = [cal.nll(stretched.take(np.array([k]))).value - np.log(2 * np.pi) / 2 for k in range(3)]
    np.testing.assert_allclose(changes.losses(np.log(factor)), expected)
    np.testing.assert_allclose(changes.losses(changes.none), changes.losses(np.zeros((3, 1))))


def test_the_loss_of_shifts_is_the_pinball_loss():
    shift = np.array([[0.1, 0.2, 0.3], [-0.5, 0.0, 0.5]])
    moved = cal.Quantiles(QUANTILES.y_true, QUANTILES.levels, QUANTILES.values + shift)
    assert changes_of(QUANTILES).losses(shift).mean() == pytest.approx(cal.pinball(moved).value)


def test_what_a_map_changes_is_read_off_its_result():
    scaled = rc.StdScaling().fit(SPREADS)
    np.testing.assert_allclose(SpreadChanges(SPREADS).of(scaled, 1e12)[:, 0], np.log(scaled.scale_[0]))
    drawn = 0.5 * np.log((5 + 3 * scaled.scale_[0] ** 2) / 8)
    np.testing.assert_allclose(SpreadChanges(SPREADS).of(scaled, 3)[:, 0], drawn)
    data = cal.Quantiles(np.arange(20.0), [0.5], np.zeros((20, 1)))
    np.testing.assert_allclose(QuantileChanges(data).of(rc.Conformal().fit(data), 20), 10.0, atol=0.5)


def test_bounds_keep_from_certainty_only():
    changes = SpreadChanges(SPREADS)
    bounded = changes.bounded(np.array([[-9.0], [-0.1], [9.0]]), 8)
    np.testing.assert_allclose(np.exp(bounded[:, 0]), [1 / 3, np.exp(-0.1), np.exp(9)])
    closed = QuantileChanges(QUANTILES).bounded(-QUANTILES.values + QUANTILES.values[:, [1]], 3)
    np.testing.assert_allclose(QUANTILES.values + closed, [[-0.5, 0.0, 0.5], [1.0, 2.0, 4.0]])


def test_the_error_if_the_forecasts_were_true_is_that_of_simulated_gains():
    n, s = 4000, 1.4
    rng = np.random.default_rng(0)
    for scale in (1.0, s):
        z = scale * rng.normal(size=n)
        changes = SpreadChanges(cal.Gaussian(z, 0 * z, 0 * z + 1))
        gain = changes.losses(changes.none) - changes.losses(np.full((n, 1), np.log(s)))
        assert gain.std() / np.sqrt(n) <= 1.05 * changes.error_if_true(np.full((n, 1), np.log(s)))
    assert gain.std() / np.sqrt(n) >= 0.95 * changes.error_if_true(np.full((n, 1), np.log(s)))


def test_heavy_tails_lower_the_evidence():
    rng = np.random.default_rng(0)
    wide = np.full((500, 1), np.log(1.2))
    found = []
    for z in (rng.normal(size=500), rng.standard_t(3, 500)):
        changes = SpreadChanges(cal.Gaussian(z, 0 * z, 0 * z + 1))
        none, stretched = changes.log_likelihoods([changes.none, wide])
        plain = (changes.losses(changes.none) - changes.losses(wide)).sum()
        found.append((stretched - none) / plain)
    assert found[0] == pytest.approx(1, abs=0.25)
    assert found[1] < 0.6


def ensemble(n, size, spread=1.0, seed=0, **options):
    rng = np.random.default_rng(seed)
    width = rng.lognormal(0, 0.5, n)
    return cal.Samples(width * rng.normal(size=n), (spread * width)[:, None] * rng.normal(size=(n, size)), **options)


def test_the_loss_of_an_ensemble_is_students_log_score_and_best_without_a_change():
    data = ensemble(4000, 5)
    changes = changes_of(data)
    for factor, shift in ((1.0, 0.0), (1.3, 0.2)):
        spread = factor * data.draws.std(axis=1, ddof=1) * np.sqrt(1 + 1 / 5)
        t = stats.t(4, data.mean + shift * data.draws.std(axis=1, ddof=1), spread)
        change = np.tile([np.log(factor), shift], (4000, 1))
        apart = changes.losses(change) + t.logpdf(data.y_true)
        assert np.ptp(apart) < 1e-9
    means = [changes.losses(np.tile([change, 0.0], (4000, 1))).mean() for change in (-0.1, 0.0, 0.1)]
    assert means[1] == min(means)


def test_ensembles_are_repaired_or_left_alone(tmp_path):
    auto = rc.AutoForecast().fit(ensemble(2000, 5, 0.7))
    assert [row["name"] for row in auto.results_] == ["no change", "ExchangeableStretch()"]
    assert auto.loss_ == "Student log score"
    assert auto.expected_gain().interval.low > 0
    auto.save(tmp_path / "map.json")
    fixed = rc.load(tmp_path / "map.json").transform(ensemble(5000, 5, 0.7, seed=1))
    assert cal.scale_factor(fixed) == pytest.approx(1, abs=0.04)
    same = rc.AutoForecast().fit(ensemble(2000, 5, seed=3)).transform(ensemble(50, 5))
    assert same.draws == pytest.approx(ensemble(50, 5).draws, rel=0.02, abs=0.02)


def test_draws_all_alike_cannot_be_recalibrated():
    with pytest.raises(InvalidPredictions, match="all alike"):
        rc.AutoForecast().fit(cal.Samples([1.0, 2.0, 3.0], [[0.0, 0.0], [1.0, 3.0], [0.0, 1.0]]))


def test_weights_of_an_ensemble_are_the_formula_written_out():
    changes = changes_of(ensemble(60, 6, 0.6))
    none, some = changes.none, np.tile([0.4, 0.0], (60, 1))
    losses = np.array([changes.losses(one).sum() for one in (none, some)])
    best = (none, some)[int(losses.argmin())]
    data = changes.task
    t2 = ((data.y_true - data.mean) / data.std * np.exp(-best[:, 0])) ** 2
    squares = 6 * t2 / (5 + t2)
    dispersion = max(squares.var() / (2 * 5 / 8), 1.0)
    assert changes.log_likelihoods([none, some]) == pytest.approx(-losses / dispersion)
    assert changes.error_if_true(some) == pytest.approx(np.sqrt(60 * 0.16 * 2 * 5 / 8) / 60)
    assert changes.bounded(np.tile([-9.0, 0.3], (60, 1)), 99)[0].tolist() == [pytest.approx(-0.5 * np.log(100)), 0.3]
