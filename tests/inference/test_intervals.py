"""Intervals: they say what they are, cover in worlds of known error, and come out the same on rows and tables."""

import math
from functools import partial

import numpy as np
import pytest

import calibrant as cal
from calibrant.inference.sample import Sample
from calibrant.numerics import sorting
from calibrant.simulate import PAPER_WORLDS, PowerCurve, UniformScores, World

BENT = World(UniformScores(), PowerCurve(1.5))


@pytest.mark.parametrize("world", [BENT, BENT.calibrated(), PAPER_WORLDS["resnet110_c10"]], ids=lambda w: w.name[:25])
def test_inversion_covers_the_true_error(world):
    held = []
    for k in range(50):
        found = cal.inference.Inversion(99, k).intervals(world.sample(300, k), norms=(1, 2))
        held.append([world.true_error(norm) in interval for norm, interval in zip((1, 2), found, strict=True)])
    assert np.all(np.mean(held, axis=0) >= 0.86)  # 0.95 less three standard errors


def test_inversion_is_not_uselessly_wide():
    found = cal.inference.Inversion(199).interval(BENT.sample(5000, 1), norm=2)
    estimates = [cal.debiased_ece(BENT.sample(5000, k), norm=2) for k in range(40)]
    assert found.high - found.low < 1.4 * 3.92 * np.std(estimates)


def test_zero_is_in_the_interval_of_a_calibrated_model_and_not_in_that_of_a_bad_one():
    lows = [cal.inference.Inversion(99, k).interval(BENT.calibrated().sample(500, k)).low for k in range(30)]
    assert np.mean(np.equal(lows, 0)) > 0.85
    assert cal.inference.Inversion(199).interval(World(UniformScores(), PowerCurve(3)).sample(500)).low > 0.1


def test_the_same_seed_gives_the_same_interval_and_another_seed_nearly_the_same():
    data = BENT.sample(500)
    one, same, other = (cal.inference.Inversion(999, seed).interval(data) for seed in (1, 1, 2))
    assert one == same
    assert other.low == pytest.approx(one.low, abs=0.008)
    assert other.high == pytest.approx(one.high, abs=0.008)


def test_a_table_gives_the_interval_of_its_rows():
    data = BENT.sample(3000)
    table = cal.BinTable.of(data, cal.table.Distinct())
    assert cal.inference.Inversion(99).interval(table) == cal.inference.Inversion(99).interval(data)
    rows, grid = (
        cal.inference.Inversion(999).interval(d) for d in (data, cal.BinTable.of(data, cal.table.HybridGrid()))
    )
    assert grid.low == pytest.approx(rows.low, abs=0.005)
    assert grid.high == pytest.approx(rows.high, abs=0.005)


def test_many_rows_are_not_sorted_and_give_the_interval_of_their_exact_table():
    data = BENT.sample(60_000)
    rows, table = (
        cal.inference.Inversion(999).interval(d) for d in (data, cal.BinTable.of(data, cal.table.Distinct()))
    )
    assert (rows.low, rows.high) == pytest.approx((table.low, table.high), abs=0.001)


def test_row_order_does_not_matter():
    data = BENT.sample(400)
    again = cal.Binary(data.y_true[::-1], data.y_prob[::-1])
    assert cal.inference.Inversion(99).interval(again) == cal.inference.Inversion(99).interval(data)


def test_weights_that_are_all_equal_change_nothing():
    data = BENT.sample(400)
    weighted = cal.Binary(data.y_true, data.y_prob, weight=np.full(400, 2.5))
    one, other = (cal.inference.Inversion(199).interval(d) for d in (data, weighted))
    assert (other.low, other.high) == pytest.approx((one.low, one.high), abs=1e-9)


def test_one_sided_bounds_spend_all_risk_on_their_side():
    data = BENT.sample(1000)
    both = cal.inference.Inversion(199).interval(data, level=0.9)
    lower = cal.inference.Inversion(199, side="lower").interval(data, level=0.95)
    upper = cal.inference.Inversion(199, side="upper").interval(data, level=0.95)
    assert (lower.low, lower.high, lower.side) == (pytest.approx(both.low), math.inf, "lower")
    assert (upper.low, upper.high, upper.side) == (0.0, pytest.approx(both.high), "upper")


def test_few_rows_and_certain_scores_leave_room_above():
    found = cal.inference.Inversion().interval(cal.Binary([1] * 50, [0.99] * 50))
    assert found.low == 0
    assert 0.03 < found.high < 0.15  # no failure in 50 rows does not rule out a rate of 0.07
    assert cal.inference.Inversion().interval(cal.Binary([1], [0.5])).high == 0.5
    assert cal.inference.Inversion().interval(cal.Binary([1, 0], [1.0, 0.0])).low == 0


def test_cells_keep_all_sums():
    data = PAPER_WORLDS["resnet110_c10"].sample(40_000)
    large, small = (Sample.of(d, needed_by="").pooled() for d in (data, cal.BinTable.of(data, cal.table.Distinct())))
    assert large.n == small.n == large.effective_n == 40_000
    assert float(large.share @ large.predicted) == pytest.approx(float(small.share @ small.predicted))


@pytest.mark.parametrize(
    "estimator", [cal.ece, cal.sweep_ece, partial(cal.debiased_ece, norm=1), partial(cal.ece, bins=cal.EqualWidth(10))]
)
def test_estimators_of_one_error_share_its_interval(estimator):
    data = BENT.sample(800)
    found = cal.interval(estimator, data)
    assert found == estimator(data)
    assert found.interval == cal.inference.Inversion().interval(data, norm=1)


def test_defaults_follow_the_target():
    data = BENT.sample(300)
    assert "IsotonicBand" in cal.interval(cal.mce, data).interval.method
    assert "Bootstrap" in cal.interval(cal.brier, data, level=0.9).interval.method
    squared = cal.interval(partial(cal.calibration_error, norm="squared"), data).interval
    root = cal.inference.Inversion().interval(data, norm=2)
    assert (squared.low, squared.high) == (root.low**2, root.high**2)
    grouped = cal.Binary(data.y_true, data.y_prob, group=np.arange(300) // 3)
    assert "Inversion" in cal.interval(cal.ece, grouped).interval.method
    assert "Clustered" in cal.interval(cal.brier, grouped).interval.method
    positives = cal.PositiveUnlabeled(np.linspace(0.3, 1, 200), np.linspace(0, 1, 500), prior=0.5)
    assert "DebiasedDelta" in cal.interval(cal.ece, positives).interval.method


SPELLINGS = [
    lambda data: cal.ece(data),
    lambda data: cal.ece(data.y_true, data.y_prob),
    partial(cal.ece),
    cal.results.Clipped(cal.ece),
]


@pytest.mark.parametrize("estimator", SPELLINGS, ids=["lambda", "arrays", "partial", "clipped"])
def test_the_method_does_not_depend_on_how_the_estimator_is_written(estimator):
    data = BENT.sample(400)
    assert cal.interval(estimator, data).interval == cal.interval(cal.ece, data).interval
    y_true, y_prob = data.y_true, data.y_prob
    assert cal.interval(cal.ece, y_true, y_prob).interval == cal.interval(cal.ece, data).interval


def test_an_estimator_without_a_target_needs_a_bootstrap_by_name():
    data = BENT.sample(200)

    def mean_score(d):
        return float(np.mean(d.y_prob))

    for bare in (mean_score, lambda d: cal.Estimate(mean_score(d), name="mean", method="", n=len(d))):
        with pytest.raises(TypeError, match=r"method=Bootstrap\(\).*estimates"):
            cal.interval(bare, data)
        with pytest.raises(TypeError, match="Bootstrap"):
            cal.compare(bare, data, data)
        with pytest.raises(TypeError, match="Bootstrap"):
            cal.by_group(bare, data, by=np.arange(200) % 2)
        with pytest.raises(TypeError, match="Bootstrap"):
            cal.interval(bare, data, method=cal.inference.Inversion())
        found = cal.interval(bare, data, method=cal.Bootstrap(49))
        assert found == mean_score(data)
        assert found.interval.target is None
    assert "mean_score" in cal.interval(mean_score, data, method=cal.Bootstrap(49)).name
    declared = cal.results.estimates("mean score")(mean_score)
    assert "Bootstrap" in cal.interval(declared, data).interval.method
    assert cal.interval(declared, data).target == cal.results.Target("mean score")


def test_the_interval_says_its_target():
    data = BENT.sample(300)
    target = cal.results.Target
    assert cal.interval(cal.ece, data).interval.target == target("true error", 1)
    assert cal.interval(cal.mce, data).interval.target == target("true error", math.inf)
    two = partial(cal.debiased_ece, norm=2)
    assert cal.interval(two, data, method=cal.inference.ChiSquareMixture()).interval.target == target("binned error", 2)
    assert cal.interval(two, data, method=cal.Bootstrap(9)).interval.target == target("expected estimate", 2)
    assert cal.interval(cal.brier, data, method=cal.Bootstrap(9)).interval.target == target("mean score")
    squared = cal.interval(partial(cal.calibration_error, norm="squared"), data)
    assert squared.interval.target == squared.target == target("true error", "squared")
    assert cal.compare(cal.ece, data, data).interval.target == target("true error", 1)


RNG = np.random.default_rng(0)
TASKS = {
    "binary": BENT.sample(150),
    "float32": cal.Binary(BENT.sample(150).y_true, BENT.sample(150).y_prob.astype(np.float32)),
    "weighted": cal.Binary(BENT.sample(150).y_true, BENT.sample(150).y_prob, weight=RNG.random(150)),
    "grouped": cal.Binary(BENT.sample(150).y_true, BENT.sample(150).y_prob, group=np.arange(150) // 5),
    "table": cal.BinTable.of(BENT.sample(150), cal.table.Distinct()),
    "multiclass": cal.Multiclass(RNG.integers(0, 3, 60), RNG.dirichlet(np.ones(3), 60)),
    "gaussian": cal.Gaussian(RNG.normal(size=100), np.zeros(100), RNG.uniform(0.5, 1.5, 100)),
    "positive-unlabeled": cal.PositiveUnlabeled(RNG.beta(2, 1, 200), RNG.random(1000), prior=0.4),
    "unlabeled table": cal.BinTable.of(
        cal.PositiveUnlabeled(RNG.beta(2, 1, 200), RNG.random(1000), prior=0.4), cal.table.Distinct()
    ),
}
ESTIMATORS = {
    "binary": [
        *(cal.ece, cal.mce, cal.sweep_ece, cal.debiased_ece, cal.averaged_error, cal.calibration_error, cal.kde_ece),
        *(cal.estimators.label_binned_ece, cal.smooth_ece, cal.ks_error, cal.kernel_error, cal.overconfidence),
        *(cal.refinement, cal.brier, cal.log_loss, cal.auc, partial(cal.ece, bins=cal.EqualWidth(7), norm=2)),
    ],
    "table": [cal.ece, cal.mce, cal.sweep_ece, cal.averaged_error, cal.brier, cal.auc, cal.ks_error],
    "multiclass": [cal.calibration_error, partial(cal.classwise, cal.ece), cal.brier, cal.log_loss],
    "gaussian": [
        *(cal.ence, cal.uce, cal.debiased_ence, cal.sweep_ence, cal.crps, cal.nll, cal.pinball, cal.coverage),
        *(cal.interval_error, cal.quantile_error, cal.pit_error, cal.mean_squared_z, cal.std_dispersion, cal.sharpness),
    ],
    "positive-unlabeled": [
        *(cal.ece, cal.debiased_ece, cal.sweep_ece, partial(cal.ece, bins=cal.EqualWidth(6))),
        partial(cal.ece, bins=cal.pu.PaperBins()),
    ],
}
ESTIMATORS["unlabeled table"] = ESTIMATORS["positive-unlabeled"]


@pytest.mark.parametrize("task", TASKS)
def test_the_interval_never_changes_the_estimate(task):
    data = TASKS[task]
    for estimator in ESTIMATORS.get(task, ESTIMATORS["binary"]):
        wanted = estimator(data)
        quick = wanted.target.quantity == "true error" and task != "multiclass" and estimator is not cal.mce
        found = cal.interval(estimator, data, method=None if quick else cal.Bootstrap(5))
        assert float(found) == float(wanted), estimator
        kept = [(e.name, e.method, e.n, e.target) for e in (found, wanted)]
        assert kept[0] == kept[1]


@pytest.mark.parametrize("size", [100, 5000, 50_000])
@pytest.mark.parametrize("task", ["plain", "weighted", "grouped"])
def test_rows_are_sorted_once_for_the_estimate_and_its_interval(monkeypatch, size, task):
    calls = []
    sort = sorting._sorted
    monkeypatch.setattr(sorting, "_sorted", lambda rows: calls.append(len(rows.key)) or sort(rows))
    data = BENT.sample(size)
    weight = np.full(size, 0.5) if task == "weighted" else None
    group = np.arange(size) // 5 if task == "grouped" else None
    data = cal.Binary(data.y_true, data.y_prob, weight=weight, group=group)
    for estimator in (cal.ece, cal.debiased_ece):
        calls.clear()
        cal.interval(estimator, data, method=cal.inference.Inversion(19))
        assert calls == [size]


def test_bootstrap_of_a_mean_is_the_textbook_interval():
    data = BENT.sample(2000)
    found = cal.interval(cal.brier, data, method=cal.Bootstrap(999)).interval
    squares = (data.y_true - data.y_prob) ** 2
    reach = 1.96 * squares.std() / math.sqrt(2000)
    assert found.low == pytest.approx(squares.mean() - reach, abs=reach / 6)
    assert found.high == pytest.approx(squares.mean() + reach, abs=reach / 6)
    other = cal.Bootstrap(999, kind="bias-corrected").interval(cal.brier, data)
    assert (other.low, other.high) == pytest.approx((found.low, found.high), abs=reach / 4)


def test_bootstrap_takes_weights_and_estimators_of_rows():
    data = BENT.sample(1500)
    plain = cal.Bootstrap(299).interval(cal.brier, data)
    weighted = cal.Bootstrap(299).interval(cal.brier, cal.Binary(data.y_true, data.y_prob, weight=np.ones(1500)))
    assert weighted.low == pytest.approx(plain.low, abs=0.004)
    by_rows = cal.Bootstrap(99).interval(lambda d: float(np.mean(d.y_true)), data)
    assert by_rows.low < data.y_true.mean() < by_rows.high
    gaussian = cal.Gaussian(np.sin(np.arange(200.0)), np.zeros(200), np.linspace(0.5, 1, 200))
    assert "Bootstrap" in cal.interval(cal.ence, gaussian, method=cal.Bootstrap(49)).interval.method


def test_clusters_are_drawn_whole():
    data = BENT.sample(300)
    tenfold = cal.Binary(np.repeat(data.y_true, 10), np.repeat(data.y_prob, 10), group=np.repeat(np.arange(300), 10))
    found = (
        cal.Bootstrap(299).interval(cal.brier, data),
        cal.inference.Clustered(299).interval(cal.brier, tenfold),
        cal.Bootstrap(299).interval(cal.brier, cal.Binary(tenfold.y_true, tenfold.y_prob)),
    )
    one, clustered, naive = (interval.high - interval.low for interval in found)
    assert clustered == pytest.approx(one, rel=0.2)
    assert naive < 0.5 * one


def test_chi_square_mixture_covers_the_error_of_its_bins():
    atoms = np.array([0.1, 0.3, 0.5, 0.7, 0.9])
    rng = np.random.default_rng(0)
    for chance in (atoms, atoms**1.5):
        truth, held = math.sqrt(np.mean((atoms - chance) ** 2)), []
        for _ in range(150):
            p = np.repeat(atoms, 80)
            found = cal.inference.ChiSquareMixture().interval(cal.Binary(rng.random(400) < np.repeat(chance, 80), p))
            held.append(truth in found)
        assert np.mean(held) >= 0.89


def test_split_lower_bound_is_below_the_error():
    found = cal.interval(
        cal.calibration_error,
        World(UniformScores(), PowerCurve(3)).sample(3000),
        method=cal.inference.SplitLowerBound(),
    )
    assert found.interval.side == "lower"
    assert 0.1 < found.interval.low < 0.25


def test_percentile_intervals_are_refused():
    with pytest.raises(ValueError, match="percentile"):
        cal.Bootstrap(kind="percentile")


def test_bad_input_is_refused():
    data = BENT.sample(100)
    grouped = cal.Binary(data.y_true, data.y_prob, group=np.arange(100))
    with pytest.raises(TypeError, match="Inversion"):
        cal.interval(cal.ece, data, method="bootstrap")
    with pytest.raises(TypeError, match="Bootstrap"):
        cal.interval(cal.brier, data, method=cal.inference.Inversion())
    with pytest.raises(cal.InvalidPredictions, match="independent"):
        cal.interval(partial(cal.debiased_ece, norm=2), grouped, method=cal.inference.ChiSquareMixture())
    with pytest.raises(cal.InvalidPredictions, match="group"):
        cal.interval(cal.ece, data, method=cal.inference.Clustered())
    with pytest.raises(ValueError, match="level"):
        cal.interval(cal.ece, data, level=95)
    with pytest.raises(ValueError, match="whole number"):
        cal.inference.Inversion(draws=0)
    with pytest.raises(ValueError, match="side"):
        cal.inference.Inversion(side="both")
    with pytest.raises(ValueError, match="L2"):
        cal.inference.ChiSquareMixture().interval(data, norm=1)
    with pytest.raises(ValueError, match="infinite"):
        cal.inference.Inversion().interval(data, norm=math.inf)


def test_rows_copied_within_clusters_tell_nothing_new():
    """Ten copies of each row in one cluster give the interval of the rows; without the group a far smaller one."""
    data = BENT.sample(500, seed=3)
    y, p = np.repeat(data.y_true, 10), np.repeat(data.y_prob, 10)
    once = cal.inference.Inversion(999).interval(data, norm=1)
    copied = cal.inference.Inversion(999).interval(cal.Binary(y, p, group=np.repeat(np.arange(500), 10)), norm=1)
    careless = cal.inference.Inversion(999).interval(cal.Binary(y, p), norm=1)
    assert copied.low == pytest.approx(once.low, abs=0.012)
    assert copied.high == pytest.approx(once.high, abs=0.012)
    assert careless.high - careless.low < 0.6 * (copied.high - copied.low)


def test_clusters_of_one_row_change_nothing():
    data = BENT.sample(400, seed=5)
    alone = cal.Binary(data.y_true, data.y_prob, group=np.arange(400))
    assert cal.inference.Inversion(99).interval(alone, norm=2) == cal.inference.Inversion(99).interval(data, norm=2)
