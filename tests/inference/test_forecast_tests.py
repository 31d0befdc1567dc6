"""The default test of predicted distributions."""

import json

import numpy as np
import pytest
from scipy import stats

import calibrant as cal
from calibrant.inference import ForecastTest
from calibrant.inference.forecast_tests import SHARES, _joined, _strata, component_in_words

LEVELS = {
    1: [0.5],
    3: [0.05, 0.5, 0.95],
    5: [0.05, 0.25, 0.5, 0.75, 0.95],
    31: [0.1, 0.2, 0.3],
    69: [0.05, 0.1, 0.5],
}


def quantiles(rng, n, levels, factor=1.0, bias=0.0, **columns):
    spread = rng.gamma(3.0, size=n) + 0.2
    values = spread[:, None] * stats.norm.ppf(levels)
    return cal.Quantiles(spread * (factor * rng.normal(size=n) + bias), levels, values, **columns)


def gaussian(rng, n, factor=1.0, bias=0.0, **columns):
    spread = rng.gamma(3.0, size=n) + 0.2
    return cal.Gaussian(spread * (factor * rng.normal(size=n) + bias), np.zeros(n), spread, **columns)


def draws(rng, n, m=12, factor=1.0, bias=0.0):
    spread = rng.gamma(3.0, size=n) + 0.2
    return cal.Samples(spread * (factor * rng.normal(size=n) + bias), spread[:, None] * rng.normal(size=(n, m)))


def counts(rng, n, factor=1.0, bias=0.0):
    rate = rng.gamma(3.0, size=n) + 0.2
    y = rng.poisson(rate * (1 + bias)) if factor == 1 else rng.negative_binomial(rate / (factor - 1), 1 / factor)
    return cal.Distribution(y, stats.poisson(rate))


def tied_draws(rng, n, factor=1.0, bias=0.0):
    rate = rng.gamma(3.0, size=n) + 0.2
    y = rng.poisson(rate * (1 + bias)) if factor == 1 else rng.negative_binomial(rate / (factor - 1), 1 / factor)
    return cal.Samples(y.astype(float), rng.poisson(rate[:, None], size=(n, 20)).astype(float))


KINDS = {
    "gaussian": gaussian,
    "3 levels": lambda rng, n, **how: quantiles(rng, n, LEVELS[3], **how),
    "5 levels": lambda rng, n, **how: quantiles(rng, n, LEVELS[5], **how),
    "draws": draws,
    "counts": counts,
    "tied draws": tied_draws,
}


@pytest.mark.no_cover
@pytest.mark.parametrize("kind", KINDS)
def test_calibrated_forecasts_are_rejected_at_the_level(kind):
    samples = 30 if kind in ("counts", "tied draws") else 200
    rng = np.random.default_rng(1)
    p = np.array([cal.calibration_test(KINDS[kind](rng, 60)).p_value for _ in range(samples)])
    assert np.mean(p <= 0.05) <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / samples)
    assert np.mean(p <= 0.5) >= 0.5 - 4 * np.sqrt(0.25 / samples)


@pytest.mark.no_cover
@pytest.mark.parametrize(("how", "words"), [({"factor": 1.5}, "too narrow"), ({"bias": 0.4}, "too low")])
@pytest.mark.parametrize("kind", KINDS)
def test_faults_are_found_and_named(kind, how, words):
    rng = np.random.default_rng(2)
    found = [cal.calibration_test(KINDS[kind](rng, 400, **how)) for _ in range(3)]
    assert max(one.p_value for one in found) < 0.05
    assert sum(component_in_words(one.decided) == words for one in found) >= 2


def test_three_levels_that_hold_81_percent_are_not_called_calibrated():
    rng = np.random.default_rng(0)
    spread, levels = np.exp(0.5 * rng.normal(size=300)), np.array([0.05, 0.5, 0.95])
    data = cal.Quantiles(1.3 * spread * rng.normal(size=300), levels, spread[:, None] * stats.norm.ppf(levels))
    found = cal.calibration_test(data)
    assert found.p_value < 1e-4
    assert (found.decided.name, found.decided.direction) == ("spread", -1)


@pytest.mark.parametrize(
    ("errors", "words"),
    [
        (lambda rng, s: 0.7 * rng.normal(size=len(s)), "too wide"),
        (lambda rng, s: rng.normal(size=len(s)) - 0.2, "too high"),
        (lambda rng, s: (rng.gamma(4.0, size=len(s)) - 4) / 2, "too little skewed to the right"),
        (lambda rng, s: (4 - rng.gamma(4.0, size=len(s))) / 2, "too much skewed to the right"),
        (lambda rng, s: 0.6**0.5 * rng.standard_t(5, len(s)), "tails too light"),
        (lambda rng, s: rng.uniform(-(3**0.5), 3**0.5, len(s)), "tails too heavy"),
        (
            lambda rng, s: np.where(s > np.median(s), 1.25, 0.7) * rng.normal(size=len(s)),
            "wide forecasts too narrow relative to narrow ones",
        ),
        (
            lambda rng, s: np.where(s > np.median(s), -0.3, 0.3) + rng.normal(size=len(s)),
            "wide forecasts too high relative to narrow ones",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_directions(errors, words):
    rng = np.random.default_rng(3)
    spread = rng.gamma(3.0, size=1500) + 0.2
    found = cal.calibration_test(cal.Gaussian(spread * errors(rng, spread), np.zeros(1500), spread))
    assert found.p_value < 0.05
    assert component_in_words(found.decided) == words


def test_a_wave_in_the_distribution_function_is_a_wrong_shape():
    u = np.linspace(0, 1, 20_001)
    wave = 0.02 * np.sin(10 * np.pi * (u - 0.1) / 0.8) * ((u > 0.1) & (u < 0.9))
    u = np.interp(np.random.default_rng(4).random(3000), u + wave, u)
    found = cal.calibration_test(cal.Gaussian(stats.norm.ppf(u), np.zeros(3000), np.ones(3000)))
    assert found.p_value < 0.05
    assert (found.decided.name, found.decided.direction, component_in_words(found.decided)) == (
        "shape",
        0,
        "wrong shape",
    )


def test_shares_of_the_level():
    rng = np.random.default_rng(5)
    found = cal.calibration_test(gaussian(rng, 300))
    assert {part.name: part.share for part in found.components} == pytest.approx(SHARES)
    assert [SHARES[name] for name in ("bias", "spread", "spread by width")] == [0.35, 0.31, 0.12]
    constant = cal.calibration_test(cal.Gaussian(rng.normal(size=300), np.zeros(300), np.ones(300)))
    assert {part.name for part in constant.components} == {"bias", "spread", "skewness", "tails", "shape"}
    assert sum(part.share for part in constant.components) == pytest.approx(1)
    assert constant.components[0].share == pytest.approx(0.35 / 0.83)


def test_two_faults_are_stronger_evidence_than_one():
    n = 400
    middles = stats.norm.ppf((np.arange(n) + 0.5) / n)
    bias, factor = 2.3 / np.sqrt(n), 1 + 2.3 / np.sqrt(2 * n)
    one, other, both = (
        cal.calibration_test(cal.Gaussian(scale * middles + shift, np.zeros(n), np.ones(n)))
        for scale, shift in ((1, bias), (factor, 0), (factor, bias))
    )
    smallest = [min(part.p_value / part.share for part in test.components) for test in (one, other, both)]
    assert smallest[2] == pytest.approx(min(smallest[:2]), rel=0.2)
    assert both.p_value < 0.6 * min(one.p_value, other.p_value)


def test_few_levels_have_fewer_components():
    names = {
        k: [part.name for part in cal.calibration_test(quantiles(np.random.default_rng(6), 200, levels)).components]
        for k, levels in LEVELS.items()
    }
    assert names[1] == ["bias", "shape"]
    assert names[3] == ["bias", "spread", "skewness", "shape", "spread by width", "bias by width"]
    assert names[5][:4] == ["bias", "spread", "skewness", "tails"]
    part = ("skewness" in names[k] for k in (31, 69))  # 3.1 and 6.9 % of its variance are new
    assert list(part) == [False, True]


def test_the_p_value_is_the_rank_and_beyond_it_bonferroni():
    rng = np.random.default_rng(7)
    mild = cal.calibration_test(gaussian(rng, 200))
    assert (mild.p_value * 4000) == pytest.approx(round(mild.p_value * 4000))
    assert mild.draws == 3999
    strong = cal.calibration_test(gaussian(rng, 200, factor=3.0))
    assert strong.p_value == pytest.approx(strong.decided.p_value / strong.decided.share)
    assert strong.p_value < 1e-12
    assert strong.decided in strong.components
    assert json.loads(json.dumps(strong.to_dict()))["decided"]["name"] == "spread"


@pytest.mark.parametrize("z", [1.6, 1.7, 1.73, 1.74, 1.8, 2.5, 3.0])
def test_one_row_is_as_unlikely_as_its_distance(z):
    p = cal.calibration_test(cal.Gaussian([z], [0.0], [1.0])).p_value
    assert 0.4 < p / (2 * stats.norm.sf(z)) < 4


@pytest.mark.no_cover
def test_few_rows_are_seldom_beyond_all_samples():
    """Far tails of the skewness of a few rows are not normal, so they are no evidence beyond the simulated samples."""
    rng = np.random.default_rng(3)
    few = [ForecastTest(draws=199).test(gaussian(rng, n)).p_value for n in (2, 5, 20, 60) for _ in range(400)]
    assert np.mean(np.less(few, 1 / 200)) < 0.002
    for n, far in ((34, 4), (80, 6), (150, 8)):
        z = np.r_[[2.9] * (far // 2), [3.0] * (far // 2), np.linspace(-1.5, 1.0, n - far)]
        found = cal.calibration_test(cal.Gaussian(z, np.zeros(n), np.ones(n)))
        assert min(one.p_value for one in found.components) < 1e-9
        assert found.p_value == 1 / 4000 if n < 100 else found.p_value < 1e-9


def test_the_bias_is_that_of_the_mean_standardised_error():
    rng = np.random.default_rng(8)
    data = gaussian(rng, 500, bias=0.05)
    part = cal.calibration_test(data).components[0]
    z = (data.y_true / data.std).sum() / np.sqrt(500)
    assert part.p_value == pytest.approx(2 * stats.norm.sf(abs(z)), rel=0.25, abs=0.01)


def test_weights_keep_the_tails_of_weighted_sums():
    """Classes of equal weights hold their fourth moment, as few classes of equal numbers of rows do not."""
    rng = np.random.default_rng(12)
    weight = rng.exponential(size=60) / np.sqrt(2)
    strata = _strata(np.zeros(60), np.zeros(60), weight)
    size, root = np.array(strata.size), np.array(strata.weight)
    assert size @ root**2 == pytest.approx((weight**2).sum())
    assert 0.9 * (weight**4).sum() < size @ root**4 <= (weight**4).sum()
    few = np.sort(weight).reshape(4, 15)
    assert 15 * ((few**2).mean(axis=1) ** 2).sum() < 0.8 * (weight**4).sum()
    two = _strata(np.zeros(60), np.zeros(60), np.tile([1.0, 2.0], 30))
    assert (two.size, two.weight) == ((30, 30), (1.0, 2.0))


def test_order_of_rows_and_units_do_not_matter():
    rng = np.random.default_rng(9)
    data = gaussian(rng, 150, factor=1.1)
    order = rng.permutation(150)
    p = [
        cal.calibration_test(cal.Gaussian(k * data.y_true[o], data.mean[o], k * data.std[o])).p_value
        for k, o in ((1, slice(None)), (1, order), (1e-9, order))
    ]
    assert p[0] == p[1] == p[2]


def test_weights_have_no_unit_and_zeros_are_left_out():
    rng = np.random.default_rng(10)
    data, weight = gaussian(rng, 300), rng.uniform(0.2, 3, 300)
    one, other = (
        cal.calibration_test(cal.Gaussian(data.y_true, data.mean, data.std, weight=w)) for w in (weight, 7 * weight)
    )
    assert one.p_value == pytest.approx(other.p_value)
    alike = cal.calibration_test(cal.Gaussian(data.y_true, data.mean, data.std, weight=np.full(300, 2.5)))
    assert alike.p_value == cal.calibration_test(data).p_value
    half = np.arange(300) < 150
    some = cal.calibration_test(cal.Gaussian(data.y_true, data.mean, data.std, weight=half.astype(float)))
    assert some.p_value == cal.calibration_test(data.take(half)).p_value


def test_weighted_forecasts_are_rejected_at_the_level():
    rng = np.random.default_rng(11)
    p = [
        cal.calibration_test(gaussian(rng, 80, weight=rng.exponential(size=80)), method=ForecastTest(199)).p_value
        for _ in range(60)
    ]
    assert np.mean(np.array(p) <= 0.05) <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 60)


def clustered(rng, clusters, rows, rho, factor=1.0, kind="gaussian"):
    g = np.repeat(np.arange(clusters), rows)
    spread = np.exp(0.5 * rng.normal(size=clusters))[g]
    error = np.sqrt(rho) * rng.normal(size=clusters)[g] + np.sqrt(1 - rho) * rng.normal(size=len(g))
    y = factor * spread * error
    if kind == "gaussian":
        return cal.Gaussian(y, np.zeros(len(g)), spread, group=g)
    return cal.Quantiles(y, LEVELS[3], spread[:, None] * stats.norm.ppf(LEVELS[3]), group=g)


@pytest.mark.parametrize("kind", ["gaussian", "quantiles"])
def test_dependent_rows_are_not_taken_as_independent(kind):
    rng = np.random.default_rng(12)
    found = [cal.calibration_test(clustered(rng, 14, 15, 0.5, kind=kind), method=ForecastTest(799)) for _ in range(12)]
    assert np.mean([one.p_value <= 0.05 for one in found]) <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 12)
    wrong = cal.calibration_test(clustered(rng, 60, 10, 0.5, factor=1.6, kind=kind))
    assert wrong.p_value < 0.05
    assert component_in_words(wrong.decided) == "too narrow"
    assert wrong.details["effective"] == pytest.approx(60)


def test_the_outputs_of_a_row_are_a_cluster():
    rng = np.random.default_rng(13)
    error = np.sqrt(0.9) * rng.normal(size=(100, 1)) + np.sqrt(0.1) * rng.normal(size=(100, 5))
    data = cal.Gaussian(error, np.zeros((100, 5)), np.ones((100, 5)))
    found = cal.calibration_test(data)
    assert found.n == 100
    assert found.details["effective"] == pytest.approx(100)
    assert found.p_value > 0.05
    law = cal.Distribution(error, stats.norm(np.zeros((100, 5)), 1))
    assert cal.calibration_test(law).p_value == pytest.approx(found.p_value)


def test_too_few_clusters_are_not_tested():
    rng = np.random.default_rng(14)
    few, enough = (cal.calibration_test(clustered(rng, size, 10, 0.3)) for size in (11, 12))
    assert np.isnan(few.p_value)
    assert few.decided is None
    assert "too few to test" in few.details["reason"]
    assert enough.p_value > 0
    uneven = np.concatenate([np.zeros(200), np.arange(1, 60)])
    assert np.isnan(cal.calibration_test(gaussian(rng, 259, group=uneven)).p_value)


def test_a_group_per_row_is_no_cluster():
    rng = np.random.default_rng(15)
    data = gaussian(rng, 100)
    alone = cal.Gaussian(data.y_true, data.mean, data.std, group=np.arange(100))
    assert cal.calibration_test(alone).p_value == cal.calibration_test(data).p_value


def test_many_clusters_need_no_simulated_dependence(monkeypatch):
    from calibrant.inference import forecast_tests

    seen = []
    before = forecast_tests._Dependent.simulated
    monkeypatch.setattr(forecast_tests._Dependent, "simulated", lambda self, *a: seen.append(a) or before(self, *a))
    rng = np.random.default_rng(16)
    cal.calibration_test(clustered(rng, 150, 2, 0.5), method=ForecastTest(799))
    assert seen
    seen.clear()
    cal.calibration_test(clustered(rng, 250, 2, 0.5), method=ForecastTest(799))
    assert not seen


def test_a_warning_names_neighbours_that_depend_on_each_other():
    rng = np.random.default_rng(17)
    error = np.repeat(rng.normal(size=40), 5) * 0.8 + 0.6 * rng.normal(size=200)
    found = cal.calibration_test(cal.Gaussian(error, np.zeros(200), np.ones(200)))
    assert found.details["order_p"] < 0.01
    assert "group=" in found.details["warning"]
    p = [cal.calibration_test(draws(rng, 60)).details for _ in range(40)]
    assert np.mean([one["order_p"] < 0.05 for one in p]) <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 40)
    for seed, low, high in ((224, 0.005, 0.01), (145, 0.01, 0.02)):
        z = np.random.default_rng(seed).normal(size=60)
        details = cal.calibration_test(cal.Gaussian(z, np.zeros(60), np.ones(60))).details
        assert low < details["order_p"] < high
        assert ("warning" in details) == (high == 0.01)
    assert "order_p" not in cal.calibration_test(clustered(rng, 20, 5, 0.9)).details


def test_ties_with_quantiles_are_told_and_do_not_reject():
    rng = np.random.default_rng(18)
    rate = rng.gamma(3.0, size=200) + 0.2
    values = np.stack([stats.poisson.ppf(q, rate) for q in LEVELS[5]], axis=1)
    found = cal.calibration_test(cal.Quantiles(rng.poisson(rate).astype(float), LEVELS[5], values))
    assert found.p_value > 0.05
    assert 0.2 < found.details["tied"] < 1
    assert "% of rows" in found.details["ties"]


def test_impossible_outcomes_and_tiny_spreads_are_numbers():
    rng = np.random.default_rng(19)
    y = rng.normal(size=100)
    sampled = rng.normal(size=(100, 8))
    sampled[0] = y[0] + 1e-30 * rng.normal(size=8)
    assert 0 < cal.calibration_test(cal.Samples(rng.normal(size=100), sampled)).p_value <= 1
    std = np.ones(100)
    std[0] = 1e-60
    found = cal.calibration_test(cal.Gaussian(y, np.zeros(100), std))
    assert found.p_value < 0.01
    assert (
        0 < cal.calibration_test(cal.Distribution(np.where(y > 2, -1, 0), stats.poisson(np.ones(100)))).p_value < 0.01
    )
    alike = cal.Samples(np.ones(50), np.ones((50, 4)))
    assert cal.calibration_test(alike).p_value == 1
    pairs = np.arange(50) // 2
    assert cal.calibration_test(cal.Samples(np.ones(50), np.ones((50, 4)), group=pairs)).p_value == 1
    still = cal.calibration_test(cal.Gaussian(np.zeros(50), np.zeros(50), np.ones(50), group=pairs))
    assert component_in_words(still.decided) == "too wide"


def test_other_data_and_options_are_refused():
    with pytest.raises(TypeError, match="distributions"):
        cal.calibration_test([0, 1], [0.2, 0.8], method=ForecastTest())
    with pytest.raises(ValueError, match="draws"):
        ForecastTest(draws=0)


def of_file(folder, name):
    with np.load(folder / "regression" / f"{name}.npz") as file:
        return {key: file[key] for key in file.files}


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("pal2022_diffusion_lr_cal", "too narrow"),
        ("pal2022_diffusion_rf_cal", "tails too light"),
        ("pal2022_diffusion_gpr_cal", "tails too light"),
        ("qm9_E_isocal_test", "tails too light"),
        ("ras2023_logp_150k_lsgcn", "tails too light"),
        ("ras2023_logp_10k_a_lsnn", "tails too light"),
        ("pal2022_diffusion_rf_uncal", "too wide"),
    ],
)
def test_real_means_and_spreads(shared_data, name, words):
    data = of_file(shared_data, name)
    found = cal.calibration_test(cal.Gaussian(data["y"], data["mu"], data["sigma"]))
    assert found.p_value < 0.01
    assert component_in_words(found.decided) == words


def test_real_quantiles_of_a_few_series_are_only_tested_as_independent_rows(shared_data):
    data = of_file(shared_data, "covid19_eu_quantile")
    columns = data["y"], data["levels"], data["quantiles"]
    alone = cal.calibration_test(cal.Quantiles(*columns, sort=True))
    assert alone.p_value < 1e-6
    assert "warning" in alone.details
    series = np.char.add(data["target"], data["location"])
    assert np.isnan(cal.calibration_test(cal.Quantiles(*columns, sort=True, group=series)).p_value)


def test_neighbouring_cells_are_joined_until_two_rows_are_expected():
    assert _joined(np.array([0.01, 0.03, 0.5, 0.05, 0.31, 0.1]), 40, None).tolist() == [0, 0, 0, 1, 2, 3]
    assert _joined(np.array([0.01, 0.03, 0.02, 0.04, 0.8, 0.1]), 40, None).tolist() == [0, 0, 0, 1, 1, 2]
    assert _joined(np.array([0.3, 0.3, 0.37, 0.03]), 40, None).tolist() == [0, 1, 2, 2]
    assert _joined(np.full(6, 1 / 6), 1000, 3).tolist() == [0, 0, 1, 1, 2, 2]
