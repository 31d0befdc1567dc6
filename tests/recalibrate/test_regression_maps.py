"""Maps of predicted distributions: closed forms, foreign references, known worlds, real predictions, files."""

import warnings

import numpy as np
import pytest
from scipy import stats
from sklearn.base import clone
from sklearn.isotonic import IsotonicRegression

import calibrant as cal
from calibrant import recalibrate
from calibrant.recalibrate.regression_maps import _skewed, stands_out
from tests.recalibrate.worlds import spread_world

MAPS = [
    recalibrate.StdScaling(),
    recalibrate.StdScaling(criterion="crps"),
    recalibrate.StdScaling(criterion="mad"),
    recalibrate.VarianceIsotonic(),
    recalibrate.VarianceHistogram(bins=cal.EqualMass(10)),
    recalibrate.VarianceHistogram(bins=cal.EqualMass(10), scaling=True),
    recalibrate.SpreadSpline(),
    recalibrate.CdfIsotonic(),
    recalibrate.Conformal(levels=[0.1, 0.5, 0.9]),
    recalibrate.Conformal(levels=[0.1, 0.5, 0.9], normalised=False, symmetric=True),
]


def columns(data):
    return np.column_stack([data.mean, data.std])


@pytest.mark.parametrize("map", MAPS, ids=repr)
def test_arrays_and_forecasts_are_the_same_and_survive_a_file(map, tmp_path):
    data = spread_world(800)
    fitted = clone(map).fit(data)
    by_array = clone(map).fit(columns(data), data.y_true)
    assert by_array.transform(columns(data)) == pytest.approx(fitted.transform(columns(data)))
    fitted.save(tmp_path / "map.json")
    loaded = recalibrate.load(tmp_path / "map.json")
    assert repr(loaded) == repr(map)
    assert np.array_equal(loaded.predict(columns(data)), fitted.predict(columns(data)))
    moved = fitted.transform(data)
    expected = moved.values if isinstance(moved, cal.Quantiles) else np.column_stack([moved.mean, moved.std])
    assert fitted.transform(columns(data)) == pytest.approx(expected)


@pytest.mark.parametrize("map", MAPS[:7], ids=repr)
def test_a_wrong_factor_is_repaired_on_fresh_rows(map):
    fixed = clone(map).fit(spread_world(seed=0)).transform(spread_world(seed=1))
    assert cal.ence(spread_world(seed=1)) > 0.9
    assert cal.ence(fixed) < 0.12
    assert cal.mean_squared_z(fixed) == pytest.approx(1, abs=0.12)


@pytest.mark.parametrize("map", [MAPS[3], MAPS[4], MAPS[6]], ids=repr)
def test_a_wrong_power_is_repaired_by_maps_that_bend(map):
    train, test = spread_world(20_000, 0, 1.0, 2.0), spread_world(20_000, 1, 1.0, 2.0)
    one_factor = cal.ence(recalibrate.StdScaling().fit(train).transform(test))
    assert one_factor > 0.25
    assert cal.ence(clone(map).fit(train).transform(test)) < one_factor / 4


def test_the_factor_is_the_root_of_the_mean_squared_z():
    data = spread_world()
    scale = recalibrate.StdScaling().fit(data).scale_
    assert scale == pytest.approx([np.sqrt(cal.mean_squared_z(data))])
    near = [cal.nll(data.y_true, data.mean, data.std * scale[0] * f) for f in (0.99, 1.0, 1.01)]
    assert near[1] == min(near)


def test_the_crps_factor_minimises_the_crps():
    data = spread_world()
    scale = recalibrate.StdScaling(criterion="crps").fit(data).scale_[0]
    near = [cal.crps(data.y_true, data.mean, data.std * scale * f) for f in (0.99, 1.0, 1.01)]
    assert near[1] == min(near)


@pytest.mark.parametrize(
    ("family", "closed"),
    [
        (lambda m, s: stats.laplace(m, s), lambda r: np.mean(np.abs(r))),
        (lambda m, s: stats.norm(m, s), lambda r: np.sqrt(np.mean(r**2))),
        (lambda m, s: stats.gennorm(4, m, s), lambda r: (4 * np.mean(np.abs(r) ** 4)) ** 0.25),
    ],
)
def test_other_families_meet_their_closed_forms(family, closed):
    data = spread_world(1500)
    dist = family(data.mean, data.std)
    scale = recalibrate.StdScaling().fit(cal.Distribution(data.y_true, dist)).scale_[0]
    assert scale == pytest.approx(closed((data.y_true - data.mean) / data.std), rel=1e-5)


def test_student_and_cauchy_factors_solve_their_equations():
    rng = np.random.default_rng(0)
    r = 1.7 * rng.standard_t(3, 3000)
    s = recalibrate.StdScaling().fit(cal.Distribution(r, stats.t(3))).scale_[0]
    assert np.mean(4 * r**2 / (3 * s**2 + r**2)) == pytest.approx(1, abs=1e-4)
    s = recalibrate.StdScaling().fit(cal.Distribution(r, stats.cauchy(0, 1))).scale_[0]
    assert np.mean(r**2 / (s**2 + r**2)) == pytest.approx(0.5, abs=1e-4)


def test_one_tiny_sigma_is_warned_of_and_withstood():
    data = spread_world(500)
    std = data.std.copy()
    std[3] = 1e-9
    broken = cal.Gaussian(data.y_true, data.mean, std)
    with pytest.warns(UserWarning, match=r"The row with std = 1e-09 and \|z\| = .* alone carries 100%"):
        assert recalibrate.StdScaling().fit(broken).scale_[0] > 1e6
    for criterion in ("crps", "mad"):
        assert recalibrate.StdScaling(criterion=criterion).fit(broken).scale_[0] == pytest.approx(2, abs=0.2)


@pytest.mark.parametrize("share", [0.07, 0.15])
def test_a_row_that_carries_a_tenth_of_the_squares_is_warned_of(share):
    y = np.append(np.ones(99), np.sqrt(99 * share / (1 - share)))
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        recalibrate.StdScaling().fit(cal.Gaussian(y, np.zeros(100), np.ones(100)))
    assert [f"alone carries {share:.0%}" in str(each.message) for each in told] == [True] * (share > 0.1)


def test_the_isotonic_map_is_that_of_scikit_learn():
    train, test = spread_world(500, 0, 1.0, 2.0), spread_world(300, 1)
    reference = IsotonicRegression(out_of_bounds="clip").fit(train.std, (train.y_true - train.mean) ** 2)
    ours = recalibrate.VarianceIsotonic().fit(train).transform(test).std
    assert ours == pytest.approx(np.sqrt(np.maximum(reference.predict(test.std), reference.y_thresholds_[0])), rel=1e-6)


def test_weights_repeat_rows():
    data = spread_world(300)
    weight = np.random.default_rng(1).integers(1, 4, 300)
    rows = np.repeat(np.arange(300), weight)
    binned = recalibrate.VarianceHistogram(bins=cal.EqualWidth(5, low=0.0, high=20.0))
    for map in (MAPS[0], MAPS[1], MAPS[3], binned, clone(binned).set_params(scaling=True)):
        weighted = clone(map).fit(columns(data), data.y_true, weight)
        repeated = clone(map).fit(columns(data)[rows], data.y_true[rows])
        assert weighted.transform(columns(data)) == pytest.approx(repeated.transform(columns(data)), rel=1e-6)


def test_bad_input_is_refused():
    data = spread_world(50)
    with pytest.raises(cal.InvalidPredictions, match="requires y to be passed"):
        recalibrate.StdScaling().fit(columns(data))
    with pytest.raises(cal.InvalidPredictions, match="as many columns"):
        recalibrate.StdScaling().fit(np.ones((5, 3)), np.ones(5))
    with pytest.raises(TypeError, match="without y"):
        recalibrate.StdScaling().fit(data, data.y_true)
    with pytest.raises(ValueError, match="criterion must be"):
        recalibrate.StdScaling(criterion="nil").fit(data)
    with pytest.raises(ValueError, match="All errors are zero"):
        recalibrate.StdScaling().fit(cal.Gaussian([1.0, 2.0], [1.0, 2.0], [1.0, 1.0]))
    with pytest.raises(cal.InvalidPredictions, match="needs at least 99 rows, got 50"):
        recalibrate.Conformal(levels=[0.01, 0.99]).fit(data)
    with pytest.raises(TypeError, match="Conformal"):
        recalibrate.StdScaling().fit(cal.Quantiles([1.0], [0.5], [[1.0]]))


def test_qm9_is_repaired_as_published(shared_data):
    """Fitted on the validation set, scored on the test set (specification, A6)."""
    sets = []
    for name in ("val", "test"):
        with np.load(shared_data / "regression" / f"qm9_E_uncal_{name}.npz") as file:
            sets.append(cal.Gaussian(file["y"], file["mu"], file["sigma"]))
    train, test = sets
    scaling = recalibrate.StdScaling().fit(train)
    assert scaling.scale_ == pytest.approx([0.5585], abs=1e-3)
    fixed = scaling.transform(test)
    assert (cal.ence(fixed), cal.nll(fixed), cal.crps(fixed)) == pytest.approx((0.4119, -2.9790, 0.007743), abs=1e-3)
    assert recalibrate.StdScaling(criterion="crps").fit(test).scale_ == pytest.approx([0.4913], abs=0.02)
    isotonic = recalibrate.VarianceIsotonic().fit(train).transform(test)
    assert (cal.nll(isotonic), cal.crps(isotonic)) == pytest.approx((-3.0759, 0.007524), abs=1e-4)
    with np.load(shared_data / "regression" / "qm9_E_isocal_test.npz") as file:
        assert isotonic.std == pytest.approx(file["sigma"], rel=0.01)


def test_kuleshovs_map_makes_random_spread_look_calibrated_and_ence_sees_through_it():
    rng = np.random.default_rng(0)
    x = rng.uniform(0.1, 1, 26_000)
    data = cal.Gaussian(x + x * rng.normal(size=26_000), x, rng.uniform(1, 10, 26_000))
    train = cal.Gaussian(data.y_true[:6000], data.mean[:6000], data.std[:6000])
    test = cal.Gaussian(data.y_true[6000:], data.mean[6000:], data.std[6000:])
    kuleshov = recalibrate.CdfIsotonic().fit(train).transform(test)
    scaled = recalibrate.StdScaling().fit(train).transform(test)
    assert cal.quantile_error(test) > 0.1
    assert cal.quantile_error(kuleshov) < 0.01
    assert cal.ence(test) == pytest.approx(0.8444, abs=0.01)
    assert cal.ence(scaled, bins=cal.EqualMass(100)) == pytest.approx(0.5195, abs=0.02)
    assert cal.ence(kuleshov, bins=cal.EqualMass(100)) == pytest.approx(0.5195, abs=0.02)


@pytest.mark.no_cover
@pytest.mark.parametrize("symmetric", [False, True])
def test_conformal_intervals_cover_in_finite_samples(symmetric):
    """Averaged over many small recalibration sets, coverage is at least as stated, though the forecast is wrong."""
    covered = []
    for seed in range(300):
        rng = np.random.default_rng(seed)
        train, test = (cal.Gaussian(rng.exponential(size=n) - 1, np.zeros(n), np.ones(n)) for n in (30, 50))
        fixed = recalibrate.Conformal(levels=[0.1, 0.9], symmetric=symmetric).fit(train).transform(test)
        covered.append(cal.coverage(fixed, nominal=0.8))
    assert 0.795 < np.mean(covered) < 0.9


def test_quantiles_are_shifted_level_by_level():
    rng = np.random.default_rng(0)
    data = cal.Quantiles(rng.normal(size=2000), [0.1, 0.9], np.tile([-3.0, 0.5], (2000, 1)))
    fixed = recalibrate.Conformal().fit(data).transform(data)
    assert fixed.values[0] == pytest.approx(stats.norm.ppf([0.1, 0.9]), abs=0.1)
    with pytest.raises(cal.InvalidPredictions, match="levels must be those of the fit"):
        recalibrate.Conformal().fit(data).transform(cal.Quantiles([0.0], [0.2, 0.9], [[-1.0, 1.0]]))


@pytest.mark.parametrize("weighted", [False, True])
def test_the_map_of_probabilities_goes_through_the_middle_of_every_step(weighted):
    u = np.array([0.1, 0.4, 0.4, 0.9])
    weight = np.array([1.0, 2.0, 1.0, 4.0]) if weighted else None
    data = cal.Gaussian(stats.norm.ppf(u), np.zeros(4), np.ones(4), weight=weight)
    learnt = recalibrate.CdfIsotonic().fit(data).outputs_[0]
    np.testing.assert_allclose(learnt["u"], [0, 0.1, 0.4, 0.9, 1])
    middle = [0.5 / 8, (2 / 8 + 3.5 / 8) / 2, 6 / 8] if weighted else [0.125, 0.5, 0.875]
    np.testing.assert_allclose(learnt["p"], [0, *middle, 1])


def test_distributions_of_counts_cannot_be_stretched():
    rng = np.random.default_rng(0)
    mean = rng.uniform(1, 20, 60)
    counts = cal.Distribution(rng.poisson(mean), stats.poisson(mean))
    with pytest.raises(TypeError, match="distribution of counts cannot be stretched"):
        recalibrate.StdScaling().fit(counts)


def ensemble(n, size, spread=1.0, law="normal", seed=0, shift=0.0):
    """An outcome and draws of the same law, which have `spread` times its width about 0."""
    rng = np.random.default_rng(seed)
    draw = {"normal": rng.normal, "skewed": lambda size: rng.exponential(size=size) - 1}[law]
    width = rng.lognormal(0, 0.5, n)
    return cal.Samples(width * (draw(size=n) + shift), (spread * width)[:, None] * draw(size=(n, size)))


@pytest.mark.parametrize("size", [5, 20])
def test_a_stretched_ensemble_is_exchangeable_with_fresh_outcomes(size, tmp_path):
    fitted = recalibrate.ExchangeableStretch().fit(ensemble(4000, size, 0.7))
    fitted.save(tmp_path / "map.json")
    fixed = recalibrate.load(tmp_path / "map.json").transform(ensemble(4000, size, 0.7, seed=1))
    ranks = (fixed.draws < fixed.y_true[:, None]).sum(axis=1)
    assert stats.chisquare(np.bincount(ranks, minlength=size + 1)).pvalue > 0.001
    assert fitted.outputs_[0]["stretch"] == pytest.approx(np.sqrt((1 / 0.49 + 1 / size) / (1 + 1 / size)), rel=0.06)
    assert fitted.outputs_[0]["shift"] == 0


@pytest.mark.parametrize("law", ["normal", "skewed"])
def test_a_calibrated_ensemble_stays_nearly_as_it_is(law):
    found = [
        map.fit(ensemble(400, 5, law=law, seed=seed)).transform(ensemble(1, 5)).draws / ensemble(1, 5).draws
        for seed in range(12)
        for map in (recalibrate.ExchangeableStretch(shift=False), recalibrate.StdScaling())
    ]
    assert np.median(np.abs(np.array(found) - 1)) < 0.01
    assert np.abs(np.array(found).mean() - 1) < 0.05


def test_a_shift_of_draws_is_found_together_with_the_stretch():
    fitted = recalibrate.ExchangeableStretch().fit(ensemble(6000, 8, 0.8, shift=0.5))
    fixed = fitted.transform(ensemble(6000, 8, 0.8, shift=0.5, seed=1))
    assert abs(fixed.z().mean()) < 4 / np.sqrt(6000)
    assert cal.scale_factor(fixed) == pytest.approx(1, abs=0.03)
    assert recalibrate.StdScaling().fit(ensemble(6000, 8, 0.8, shift=0.5)).transform(
        ensemble(3, 8)
    ).mean == pytest.approx(ensemble(3, 8).mean)


def test_a_change_of_an_ensemble_must_stand_out():
    assert stands_out(1.99) == 0
    assert stands_out(np.sqrt(8)) == pytest.approx(0.75)
    assert stands_out(10) == pytest.approx(1 - 0.04**2)
    weak, strong = ensemble(300, 10, 0.97), ensemble(300, 10, 0.5)
    assert recalibrate.ExchangeableStretch().fit(weak).outputs_[0]["stretch"] == 1
    assert recalibrate.ExchangeableStretch().fit(strong).outputs_[0]["stretch"] > 1.7


def test_skewed_draws_are_stretched_by_their_ranks():
    def equation(data):
        auto, moments, ranks = (
            recalibrate.ExchangeableStretch(equation=name).fit(data).outputs_[0]["stretch"]
            for name in ("auto", "moments", "ranks")
        )
        assert moments != ranks
        return "ranks" if auto == ranks else "moments"

    assert equation(ensemble(1500, 10, 0.7, law="skewed")) == "ranks"
    assert equation(ensemble(1500, 10, 0.7)) == "moments"
    rng = np.random.default_rng(0)
    for shape, expected in ((25.0, True), (120.0, False)):
        draw = rng.gamma(shape, size=(3000, 40))  # of skewness 2 / sqrt(shape)
        assert _skewed(cal.Samples(draw[:, 0], draw)) == expected


def test_what_cannot_be_stretched():
    with pytest.raises(TypeError, match="for ensembles"):
        recalibrate.ExchangeableStretch().fit(cal.Gaussian([1.0], [0.0], [1.0]))
    with pytest.raises(ValueError, match="equation must be"):
        recalibrate.ExchangeableStretch(equation="mean").fit(ensemble(20, 5))
    with pytest.raises(cal.InvalidPredictions, match="must not be all alike"):
        recalibrate.ExchangeableStretch().fit(cal.Samples([1.0, 2.0], [[0.0, 0.0], [1.0, 3.0]]))
    with pytest.raises(ValueError, match="errors are zero"):
        recalibrate.StdScaling().fit(cal.Samples([1.0, 2.0], [[0.0, 2.0], [1.0, 3.0]]))
