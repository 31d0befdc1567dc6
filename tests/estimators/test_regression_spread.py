"""ENCE and its family: the formula, the law of calibrated forecasters, ties, weights, tables, real predictions."""

from dataclasses import replace
from functools import partial
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import calibrant as cal
from calibrant.estimators.regression_spread import ence_null


def world(n=2000, seed=0, factor=1.0, tail=None):
    """Spreads are lognormal; errors are `factor` times as wide as predicted, Gaussian or Student."""
    rng = np.random.default_rng(seed)
    std = rng.lognormal(0, 0.5, n)
    unit = rng.normal(size=n) if tail is None else rng.standard_t(tail, n) * np.sqrt((tail - 2) / tail)
    return cal.Gaussian(factor * std * unit, np.zeros(n), std)


def paper_ence(data, bins):
    """Equations 6-8 as they stand, ties parted by the order of rows."""
    order = np.argsort(data.std, kind="stable")
    error, std = (data.y_true - data.mean)[order], data.std[order]
    edges = np.arange(bins + 1) * len(order) // bins
    terms = []
    for low, high in pairwise(edges):
        rmv, rmse = np.sqrt(np.mean(std[low:high] ** 2)), np.sqrt(np.mean(error[low:high] ** 2))
        terms.append(abs(rmv - rmse) / rmv)
    return np.average(terms, weights=np.diff(edges))


@pytest.mark.parametrize(("n", "bins"), [(2000, 10), (1003, 10), (1003, 7), (50, 50)])
def test_ence_is_the_papers_formula_also_when_bins_do_not_divide_the_rows(n, bins):
    data = world(n)
    assert cal.ence(data, bins=cal.EqualMass(bins)) == pytest.approx(paper_ence(data, bins), rel=1e-12)


def test_more_bins_than_rows_leave_one_row_per_bin():
    result = cal.ence(world(7), bins=cal.EqualMass(100))
    assert len(result.bins) == 7
    assert "7 after ties" in result.method


def test_a_constant_spread_is_one_bin_and_says_so():
    y = np.random.default_rng(0).normal(size=500)
    result = cal.ence(y, np.zeros(500), np.full(500, 2.0))
    assert len(result.bins) == 1
    assert "1 after ties" in result.method
    assert result == pytest.approx(abs(1 - np.sqrt(np.mean(y**2)) / 2))
    assert cal.std_dispersion(y, np.zeros(500), np.full(500, 2.0)) == 0


@pytest.mark.no_cover
@given(st.integers(0, 2**32 - 1))
@settings(max_examples=30, deadline=None)
def test_the_order_of_rows_does_not_matter_even_among_ties(seed):
    rng = np.random.default_rng(seed)
    std = rng.integers(1, 6, 60).astype(float)
    data = cal.Gaussian(std * rng.normal(size=60), np.zeros(60), std)
    order = rng.permutation(60)
    mixed = cal.Gaussian(data.y_true[order], data.mean[order], data.std[order])
    for metric in (cal.ence, cal.uce, cal.debiased_ence, cal.sweep_ence, cal.mean_squared_z, cal.std_dispersion):
        assert metric(mixed) == pytest.approx(metric(data), rel=1e-9)


@given(st.integers(0, 2**32 - 1), st.floats(0.01, 100))
@settings(max_examples=20, deadline=None)
def test_units_cancel(seed, unit):
    data = world(200, seed)
    other = cal.Gaussian(data.y_true * unit, data.mean, data.std * unit)
    for metric in (cal.ence, cal.debiased_ence, cal.mean_squared_z, cal.std_dispersion):
        assert metric(other) == pytest.approx(metric(data), rel=1e-6)
    assert cal.uce(other) == pytest.approx(cal.uce(data) * unit**2, rel=1e-6)


def test_a_row_of_weight_two_counts_as_the_row_twice():
    data = world(300)
    weight = np.random.default_rng(1).integers(1, 4, 300)
    weighted = cal.Gaussian(data.y_true, data.mean, data.std, weight=weight)
    rows = np.repeat(np.arange(300), weight)
    repeated = cal.Gaussian(data.y_true[rows], data.mean[rows], data.std[rows])
    bins = cal.EqualWidth(10, data.std.min(), data.std.max())  # bins of equal mass are cut by rows, not by weights
    for metric in (
        partial(cal.ence, bins=bins),
        partial(cal.uce, bins=bins),
        cal.mean_squared_z,
        cal.estimators.sharpness,
    ):
        assert metric(weighted) == pytest.approx(metric(repeated), rel=1e-12)


def test_errors_that_equal_their_spread_have_no_calibration_error():
    std = np.random.default_rng(0).lognormal(size=100)
    data = cal.Gaussian(std, np.zeros(100), std)
    assert cal.ence(data) == pytest.approx(0, abs=1e-12)
    assert cal.uce(data) == pytest.approx(0, abs=1e-12)
    assert cal.mean_squared_z(data) == 1


@pytest.mark.no_cover
@pytest.mark.parametrize("tail", [None, 9])
@pytest.mark.parametrize("bins", [10, 100])
def test_the_null_reference_is_what_calibrated_forecasters_show(tail, bins):
    results = [cal.ence(world(2000, seed, tail=tail), bins=cal.EqualMass(bins)) for seed in range(120)]
    mean = np.mean([result.details["null"]["mean"] for result in results])
    assert np.mean(results) == pytest.approx(mean, rel=0.06)
    law = np.sqrt((3 - 1) * bins / (2 * np.pi * 2000))
    assert results[0].details["null"]["gaussian"] == pytest.approx(law, rel=0.06)
    above = np.mean([result > result.details["null"]["high"] for result in results])
    assert above < 0.1


def test_the_null_law_holds_in_bins_of_a_few_rows():
    """100 bins of 10 rows, a common default: a perfect model has an ENCE of .178."""
    results = [cal.ence(world(1000, seed), bins=cal.EqualMass(100)) for seed in range(40)]
    assert np.mean(results) == pytest.approx(np.sqrt(100 / (np.pi * 1000)), abs=0.004)
    assert np.mean([r.details["null"]["gaussian"] for r in results]) == pytest.approx(np.mean(results), rel=0.03)


@pytest.mark.no_cover
@pytest.mark.parametrize(("factor", "tail"), [(1.0, None), (1 / 0.9, None), (1.0, 9)])
def test_the_debiased_statistic_has_no_bias(factor, tail):
    values = np.array([cal.debiased_ence(world(500, seed, factor, tail)).details["power"] for seed in range(400)])
    truth = (factor - 1) ** 2
    assert abs(values.mean() - truth) < 3.5 * values.std() / np.sqrt(len(values))
    if factor == 1:
        assert (values < 0).mean() > 0.3


def test_the_debiased_error_is_its_formula_on_the_scale_of_ence():
    data = world(60)
    found = cal.debiased_ence(data, bins=cal.EqualMass(3))
    table, kurtosis = found.bins, found.details["null"]["kurtosis"]
    total = 0.0
    for low, high in pairwise(table.edges):
        inside = (data.std > low) | (low == table.edges[0])
        inside &= data.std <= high
        variance = data.std[inside] ** 2
        ratio = np.mean((data.y_true - data.mean)[inside] ** 2) / variance.mean()
        shape = inside.sum() * variance.mean() ** 2 / ((kurtosis - 1) * np.mean(variance**2))
        mean_root = stats.gamma(shape, scale=1 / shape).expect(np.sqrt)
        total += inside.mean() * (ratio - 2 * np.sqrt(ratio) / mean_root + 1)
    assert found.details["power"] == pytest.approx(total)
    assert found == pytest.approx(np.sign(total) * np.sqrt(abs(total)))
    wide = world(20_000, factor=1.5)
    assert cal.debiased_ence(wide) == pytest.approx(cal.ence(wide), rel=0.02)


def test_the_sweep_chooses_few_bins_for_noise_and_many_for_signal():
    noise = cal.Gaussian(np.random.default_rng(0).normal(size=2000), np.zeros(2000), world(2000).std)
    assert cal.sweep_ence(noise).details["bins"] < cal.sweep_ence(world(2000)).details["bins"]
    chosen = cal.sweep_ence(world(2000))
    assert chosen == pytest.approx(cal.ence(world(2000), bins=cal.EqualMass(chosen.details["bins"])))


def test_ten_percent_too_small_a_spread_shows_as_such():
    values = [cal.sweep_ence(world(2000, seed, 1 / 0.9)) for seed in range(40)]
    assert np.mean(values) == pytest.approx(1 / 0.9 - 1, abs=0.015)


def test_a_fine_table_gives_what_the_rows_give():
    data = world(3000)
    exact = cal.BinTable.of(data, cal.table.Distinct())
    assert cal.ence(exact) == pytest.approx(cal.ence(data), rel=1e-12)
    assert cal.mean_squared_z(exact) == pytest.approx(cal.mean_squared_z(data), rel=1e-12)
    assert cal.sweep_ence(exact) == pytest.approx(cal.sweep_ence(data), rel=1e-12)
    assert cal.std_dispersion(exact) == pytest.approx(cal.std_dispersion(data), rel=1e-12)
    grid = cal.BinTable.of(data, cal.table.LogGrid())
    assert cal.ence(grid) == pytest.approx(cal.ence(data), abs=2e-3)
    assert cal.std_dispersion(grid) == pytest.approx(cal.std_dispersion(data), rel=1e-3)
    halves = [
        cal.BinTable.of(cal.Gaussian(data.y_true[s], data.mean[s], data.std[s]), cal.table.LogGrid())
        for s in (slice(0, 1000), slice(1000, None))
    ]
    assert cal.ence(halves[0] + halves[1]) == pytest.approx(cal.ence(grid), rel=1e-12)


def test_outputs_are_pooled_and_measured_one_by_one():
    first, second = world(400, 1), world(400, 2, 2.0)
    both = cal.Gaussian(*(np.column_stack([getattr(first, c), getattr(second, c)]) for c in ("y_true", "mean", "std")))
    for metric in (cal.ence, cal.uce, cal.debiased_ence, cal.sweep_ence, cal.mean_squared_z, cal.std_dispersion):
        assert metric(both).details["outputs"] == pytest.approx([metric(first), metric(second)])
    flat = cal.Gaussian(both.y_true.ravel(), both.mean.ravel(), both.std.ravel())
    assert cal.ence(both) == pytest.approx(cal.ence(flat))


def test_draws_from_the_truth_meet_the_reference_of_ensembles():
    rng = np.random.default_rng(0)
    std = rng.lognormal(0, 0.5, 3000)
    data = cal.Samples(std * rng.normal(size=3000), std[:, None] * rng.normal(size=(3000, 12)))
    for metric in (cal.ence, cal.debiased_ence, cal.mean_squared_z, cal.sweep_ence):
        result = metric(data)
        null = result.details["null"]
        assert abs(result - null["mean"]) < 4 * null["sd"]


def test_quantiles_have_no_spread():
    data = cal.Quantiles([1.0, 2.0], [0.1, 0.9], [[0, 2], [1, 3]])
    with pytest.raises(TypeError, match="quantile_error and coverage"):
        cal.ence(data)


def test_wrong_arguments_say_what_is_needed():
    with pytest.raises(TypeError, match="y_true, mean and std"):
        cal.ence([1.0, 2.0])
    with pytest.raises(TypeError, match="not both"):
        cal.ence(world(10), [1.0])
    with pytest.raises(TypeError, match="needs predicted distributions"):
        cal.crps(cal.Binary([0, 1], [0.2, 0.7]))


REAL = {  # file: ENCE with 10 bins, C_v, mean z^2, coverage of 1.96 sigma (specification, part E)
    "qm9_E_uncal_val": (0.5011, 0.420, 0.312, 0.9915),
    "qm9_E_uncal_test": (0.5786, 0.442, 0.324, 0.9915),
    "qm9_E_isocal_test": (0.0740, 1.729, 0.972, 0.9472),
    "pal2022_diffusion_rf_uncal": (0.2908, 0.450, 0.500, 0.987),
    "pal2022_diffusion_rf_cal": (0.1135, 0.409, 0.960, 0.961),
    "pal2022_diffusion_lr_uncal": (0.5616, 0.585, 2.479, 0.790),
    "pal2022_diffusion_lr_cal": (0.0943, 0.389, 1.119, 0.935),
    "pal2022_diffusion_gpr_uncal": (0.2374, 0.366, 0.781, 0.960),
    "pal2022_diffusion_gpr_cal": (0.1206, 0.114, 0.846, 0.951),
    "ras2023_logp_10k_a_lsgcn": (0.0862, 0.111, 0.926, 0.948),
    "ras2023_logp_10k_a_lsnn": (0.1023, 0.081, 0.926, 0.949),
    "ras2023_logp_150k_lsgcn": (0.1005, 0.132, 0.971, 0.952),
}


@pytest.mark.parametrize("name", REAL)
def test_real_predictions_have_the_published_numbers(shared_data, name):
    with np.load(shared_data / "regression" / f"{name}.npz") as file:
        data = cal.Gaussian(file["y"], file["mu"], file["sigma"])
    ence, dispersion, squared, covered = REAL[name]
    if name == "qm9_E_isocal_test":  # 135 distinct spreads: only with ties parted by row order is it the paper's
        rank = np.argsort(np.argsort(data.std, kind="stable"), kind="stable").astype(float)
        pairs = data.rows()
        parted = replace(cal.BinTable.of(replace(pairs, key=rank), cal.EqualMass(10)), task=cal.table.Spread())
        assert cal.ence(parted) == pytest.approx(ence, abs=1e-3)
        assert cal.ence(data) == pytest.approx(0.0675, abs=1e-3)
    else:
        assert cal.ence(data) == pytest.approx(ence, abs=1e-3)
    assert cal.std_dispersion(data) == pytest.approx(dispersion, abs=1e-3)
    assert cal.mean_squared_z(data) == pytest.approx(squared, abs=1e-3)
    assert cal.coverage(data, nominal=0.95) == pytest.approx(covered, abs=1e-3)


def test_the_learning_curve_is_measured_output_by_output(shared_data):
    with np.load(shared_data / "regression" / "ras2023_logp_rf_learning_curve.npz") as file:
        wide = np.broadcast_to(file["y"].reshape(-1, 1), file["mu"].shape)
        result = cal.ence(cal.Gaussian(wide, file["mu"], file["sigma"]))
    published = [0.2353, 0.1212, 0.0730, 0.0761, 0.0964, 0.0805, 0.0682, 0.0710, 0.0654]
    assert result.details["outputs"] == pytest.approx(published, abs=1e-3)


def test_dispersion_is_equation_nine():
    std = world(100).std
    assert cal.std_dispersion(std, std, std) == pytest.approx(np.std(std, ddof=1) / np.mean(std))


def test_the_mean_squared_z_is_its_formula_and_has_its_normal_reference():
    data = world(500, tail=6)
    z = (data.y_true - data.mean) / data.std
    found = cal.mean_squared_z(data)
    assert found == pytest.approx((z**2).mean(), rel=1e-12)
    assert found.details["largest_share"] == pytest.approx((z**2).max() / (z**2).sum())
    null = found.details["null"]
    kurtosis = stats.moment(z, 4, center=0) / stats.moment(z, 2, center=0) ** 2
    assert null["kurtosis"] == pytest.approx(kurtosis)
    assert (null["mean"], null["sd"]) == pytest.approx((1.0, np.sqrt((kurtosis - 1) / 500)))


@pytest.mark.parametrize("metric", [cal.mean_squared_z, cal.std_dispersion])
def test_weights_are_repeated_rows_and_a_table_is_its_rows(metric):
    data = world(200)
    times = np.random.default_rng(1).integers(1, 4, 200)
    columns = [np.repeat(column, times) for column in (data.y_true, data.mean, data.std)]
    weighted = cal.Gaussian(data.y_true, data.mean, data.std, weight=times)
    table = metric(cal.BinTable.of(weighted, cal.table.Distinct()))
    assert metric(weighted) == pytest.approx(float(table), rel=1e-12)
    repeated = metric(*columns)
    if metric is cal.mean_squared_z:
        assert metric(weighted) == pytest.approx(float(repeated), rel=1e-12)
    else:  # one degree of freedom is a row of average weight, not a copy
        assert metric(weighted) == pytest.approx(float(repeated), rel=0.01)


def test_the_dispersion_of_weighted_rows_written_out():
    data = world(50)
    w = np.random.default_rng(2).random(50)
    s = data.std
    mean = w @ s / w.sum()
    expected = np.sqrt(w @ (s - mean) ** 2 / (w.sum() - w @ w / w.sum())) / mean
    found = cal.std_dispersion(cal.Gaussian(data.y_true, data.mean, s, weight=w))
    assert found == pytest.approx(expected, rel=1e-12)
    assert cal.std_dispersion(cal.Gaussian(data.y_true, data.mean, s, weight=7 * w)) == pytest.approx(
        float(found), rel=1e-12
    )


def test_the_unit_of_the_target_cancels_and_a_constant_spread_has_no_dispersion():
    data = world(100)
    scaled = cal.Gaussian(10 * data.y_true, 10 * data.mean, 10 * data.std)
    for metric in (cal.mean_squared_z, cal.std_dispersion):
        assert metric(scaled) == pytest.approx(float(metric(data)), rel=1e-12)
    assert cal.std_dispersion(data.y_true, data.mean, np.full(100, 2.0)) == 0.0
    assert cal.std_dispersion([1.0], [0.0], [1.0]) == 0.0
    found = cal.std_dispersion(data)
    assert found.details["variance_dispersion"] == pytest.approx(
        np.std(data.std**2, ddof=1) / np.mean(data.std**2), rel=1e-12
    )


@pytest.mark.parametrize("law", ["normal", "exponential", "standard_t"])
def test_the_factor_of_a_calibrated_ensemble_is_1_for_any_law_and_number_of_draws(law):
    rng = np.random.default_rng(3)
    more = (3,) if law == "standard_t" else ()
    draw = {"normal": rng.normal, "exponential": rng.exponential, "standard_t": rng.standard_t}[law]
    for size in (2, 5, 20):
        data = cal.Samples(draw(*more, size=4000), draw(*more, size=(4000, size)))
        for metric in (cal.scale_factor, cal.mean_squared_z):
            null = metric(data).details["null"]
            assert null["mean"] == 1
            assert abs(metric(data) - 1) < 4 * null["sd"]
            assert null["sd"] < 0.1
        bins = cal.ence(data).details["null"]
        assert abs(cal.ence(data) - bins["mean"]) < 4 * bins["sd"]
        assert abs(data.z().mean()) < 4 / np.sqrt(4000)


def test_the_factor_of_an_ensemble_is_the_formula_written_out():
    rng = np.random.default_rng(4)
    data = cal.Samples(1.4 * rng.normal(size=3000), rng.normal(size=(3000, 6)), weight=rng.uniform(1, 2, 3000))
    c = float(cal.scale_factor(data))
    stretched = data.mean[:, None] + c * (data.draws - data.mean[:, None])
    both = np.column_stack([data.y_true, stretched])
    squares = (data.y_true - both.mean(axis=1)) ** 2 / both.var(axis=1)
    assert np.average(squares, weights=data.weight) == pytest.approx(1)
    assert c == pytest.approx(np.sqrt((1.4**2 + 1 / 6) / (1 + 1 / 6)), rel=0.05)
    assert cal.mean_squared_z(data) == pytest.approx(c**2)


def test_one_row_of_tiny_spread_decides_nothing():
    rng = np.random.default_rng(5)
    y, draws = rng.normal(size=300), rng.normal(size=(300, 10))
    draws[7] = draws[7, 0] + 1.5e-30 * rng.normal(size=10)
    data = cal.Samples(y, draws)
    assert np.abs(data.z()).max() <= np.sqrt(10) * (1 + 1e-12)
    assert abs(data.z().mean()) < 0.3
    assert cal.scale_factor(data) == pytest.approx(1, abs=0.15)
    draws[:40] = 0.0
    with pytest.raises(cal.InvalidPredictions, match="no stretch of the draws is enough"):
        cal.scale_factor(cal.Samples(y[:200], draws[:200]))
    assert cal.scale_factor(cal.Samples(draws.mean(axis=1)[50:], draws[50:])) == 0


def test_the_mean_over_bins_is_equation_8_where_bins_are_unequal():
    data = world(900)
    edges = np.array([0.0, *np.quantile(data.std, [0.1, 0.5]), np.inf])
    gaps = []
    for low, high in pairwise(edges):
        own = (data.std > low) & (data.std <= high)
        spread = np.sqrt((data.std[own] ** 2).mean())
        gaps.append(abs(spread - np.sqrt(((data.y_true - data.mean)[own] ** 2).mean())) / spread)
    found = cal.ence(data, bins=cal.Edges([0.0, *edges[1:-1], data.std.max()]))
    assert found.details["mean_over_bins"] == pytest.approx(np.mean(gaps), rel=1e-9)
    assert found == pytest.approx(np.dot(gaps, [0.1, 0.4, 0.5]), rel=1e-9)


def test_the_law_of_a_calibrated_ence_weighs_bins_by_their_rows():
    rng, sizes = np.random.default_rng(5), (100, 200, 300)
    squares = np.split(rng.normal(size=(4000, 600)) ** 2, np.cumsum(sizes)[:-1], axis=1)
    drawn = sum(n / 600 * np.abs(np.sqrt(some.mean(axis=1)) - 1) for n, some in zip(sizes, squares, strict=True))
    std = np.repeat([1.0, 2.0, 3.0], sizes)
    table = cal.BinTable.of(cal.Gaussian(std, np.zeros(600), std), cal.table.Distinct())
    mean, sd = ence_null(table, 3.0)
    assert mean == pytest.approx(drawn.mean(), rel=0.02)
    assert sd == pytest.approx(drawn.std(), rel=0.04)
