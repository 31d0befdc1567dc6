"""Intervals follow the target, say what they are, and never change the estimate."""

import math
import re
import subprocess
import sys
from functools import partial

import numpy as np
import pytest

import calibrant as cal
from calibrant import inference
from calibrant.inference.intervals import BY_METHOD, Method, default_method
from calibrant.numerics import sorting
from calibrant.results import Target
from tests.inference.worlds import BENT


@pytest.mark.parametrize(
    "estimator", [cal.ece, cal.sweep_ece, partial(cal.debiased_ece, norm=1), partial(cal.ece, bins=cal.EqualWidth(10))]
)
def test_estimators_of_one_error_share_its_interval(estimator):
    data = BENT.sample(800)
    found = cal.interval(estimator, data)
    assert found == estimator(data)
    assert found.interval == cal.inference.Inversion().interval(data, norm=1)


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
    squared = cal.interval(partial(cal.variational_error, norm="squared"), data)
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
        *(cal.ece, cal.mce, cal.sweep_ece, cal.debiased_ece, cal.averaged_error, cal.variational_error, cal.kde_ece),
        *(cal.estimators.label_binned_ece, cal.smooth_ece, cal.ks_error, cal.kernel_error, cal.overconfidence),
        *(cal.refinement, cal.brier, cal.log_loss, cal.auc, partial(cal.ece, bins=cal.EqualWidth(7), norm=2)),
    ],
    "table": [cal.ece, cal.mce, cal.sweep_ece, cal.averaged_error, cal.brier, cal.auc, cal.ks_error],
    "multiclass": [cal.variational_error, partial(cal.classwise, cal.ece), cal.brier, cal.log_loss],
    "gaussian": [
        *(cal.ence, cal.uce, cal.debiased_ence, cal.sweep_ence, cal.crps, cal.nll, cal.pinball, cal.coverage),
        *(
            cal.interval_error,
            cal.quantile_error,
            cal.pit_error,
            cal.mean_squared_z,
            cal.std_dispersion,
            cal.estimators.sharpness,
        ),
    ],
    "positive-unlabeled": [
        *(cal.ece, cal.debiased_ece, cal.sweep_ece, partial(cal.ece, bins=cal.EqualWidth(6))),
        partial(cal.ece, bins=cal.pu.PaperBins()),
    ],
}


ESTIMATORS["unlabeled table"] = ESTIMATORS["positive-unlabeled"]


@pytest.mark.no_cover
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


def test_bad_input_is_refused():
    data = BENT.sample(100)
    grouped = cal.Binary(data.y_true, data.y_prob, group=np.arange(100))
    with pytest.raises(TypeError, match="Inversion"):
        cal.interval(cal.ece, data, method="jackknife")
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


def test_several_classes_have_the_interval_of_what_is_measured():
    data = cal.Multiclass(RNG.integers(0, 3, 300), RNG.dirichlet(np.ones(3), 300))
    reduced = cal.interval(partial(cal.variational_error, top_label="reduced"), data)
    alone = cal.interval(cal.variational_error, data.top_label())
    assert (reduced.interval.low, reduced.interval.high) == (alone.interval.low, alone.interval.high)
    full = cal.interval(partial(cal.variational_error, top_label="full"), data).interval
    assert (full.low, full.high, full.side) == (alone.interval.low, np.inf, "lower")
    assert "given the whole vector" in full.assumption
    assert cal.interval(cal.brier, data).interval.target == Target("mean score")


def renamed(estimator):
    """The same estimator, whose estimates are called something else."""

    def other(data):
        found = estimator(data)
        return cal.Estimate(found.value, name="something", method="else", n=found.n, target=found.target)

    return other


@pytest.mark.no_cover
@pytest.mark.parametrize("top_label", [False, "reduced", "full"])
def test_the_interval_does_not_depend_on_what_an_estimate_is_called(top_label):
    data = cal.Multiclass(RNG.integers(0, 3, 300), RNG.dirichlet(np.ones(3), 300))
    estimator = partial(cal.variational_error, top_label=top_label)
    assert cal.interval(renamed(estimator), data).interval == cal.interval(estimator, data).interval
    other = cal.Multiclass(data.y_true, data.y_prob[:, [1, 0, 2]])
    if top_label == "full":
        with pytest.raises(cal.InvalidPredictions, match="known to hold its level"):
            cal.compare(renamed(estimator), data, other)
    else:
        found = [cal.compare(one, data, other) for one in (renamed(estimator), estimator)]
        assert found[0].interval == found[1].interval


INTERVAL_METHODS_RNG = np.random.default_rng(0)


def test_defaults_follow_the_target():
    data = BENT.sample(300)
    assert "LargestGapBound" in cal.interval(cal.mce, data).interval.method
    for estimator in (cal.ks_error, cal.smooth_ece, cal.kernel_error):
        assert "NormBand" in cal.interval(estimator, data).interval.method
    assert "EventLosses" in cal.interval(cal.brier, data, level=0.9).interval.method
    assert "PlacementScore" in cal.interval(cal.auc, data).interval.method
    assert "MidP" in cal.interval(cal.accuracy, data).interval.method
    squared = cal.interval(partial(cal.variational_error, norm="squared"), data).interval
    root = cal.inference.Inversion().interval(data, norm=2)
    assert (squared.low, squared.high) == (root.low**2, root.high**2)
    grouped = cal.Binary(data.y_true, data.y_prob, group=np.arange(300) // 3)
    assert "Inversion" in cal.interval(cal.ece, grouped).interval.method
    assert "EventLosses" in cal.interval(cal.brier, grouped).interval.method
    assert "Clustered" in repr(default_method(cal.refinement, cal.refinement(grouped).target, grouped))
    positives = cal.PositiveUnlabeled(np.linspace(0.3, 1, 200), np.linspace(0, 1, 500), prior=0.5)
    assert "PUInversion" in cal.interval(cal.ece, positives).interval.method


def test_every_method_serves_something_that_is_known():
    named = [getattr(room, name) for room in (inference, cal.pu) for name in room.__all__]
    methods = [one for one in named if isinstance(one, type) and hasattr(one, "serves")]
    assert len(methods) == 20
    assert {one.serves for one in methods} == set(BY_METHOD)
    assert all(isinstance(one(), Method) for one in methods)


def test_a_class_is_not_taken_for_a_method():
    with pytest.raises(TypeError, match="or Inversion"):
        cal.interval(cal.ece, cal.Binary([0, 1] * 20, [0.3, 0.6] * 20), method=inference.Inversion)


def test_a_first_binary_interval_loads_no_code_of_other_tasks():
    code = "import sys, calibrant as cal; cal.interval(cal.ece, cal.Binary([0, 1] * 99, [0.3, 0.6] * 99))"
    code += "; print(*(name for name in sys.modules if name.startswith('calibrant.')))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    others = re.compile(r"\.pu\b|unlabeled|forecast|regression|spread|pit|multiclass|classwise|conditional|multinomial")
    in_data = {"calibrant.data.forecasts", "calibrant.data.positive_unlabeled"}  # one door in for every task
    assert {name for name in loaded if others.search(name)} == in_data
    assert len(loaded) <= 60


def test_an_interval_of_several_classes_that_is_not_known_to_cover_is_refused():
    data = cal.Multiclass(INTERVAL_METHODS_RNG.integers(0, 3, 60), INTERVAL_METHODS_RNG.dirichlet(np.ones(3), 60))
    for estimator in (cal.kernel_error, cal.refinement, cal.overconfidence, partial(cal.classwise, cal.brier)):
        with pytest.raises(cal.InvalidPredictions, match="known to cover"):
            cal.interval(estimator, data)
    for estimator in (lambda d: cal.ece(d.top_label()), lambda d: cal.variational_error(d.one_vs_rest()[0])):
        with pytest.raises(cal.InvalidPredictions, match="one score"):
            cal.interval(estimator, data)
    inside = cal.interval(lambda d: cal.variational_error(d.top_label()), data)
    assert inside.interval == cal.interval(cal.variational_error, data.top_label()).interval
    assert cal.interval(cal.refinement, data, method=cal.Bootstrap(3)).interval.target == Target("refinement")


@pytest.mark.parametrize(
    ("name", "wanted"),
    [("inversion", inference.Inversion()), ("bootstrap", cal.Bootstrap()), ("isotonic", inference.IsotonicBand())],
)
def test_common_methods_have_names(name, wanted):
    data = BENT.sample(200)
    assert cal.interval(cal.ece, data, method=name).interval == cal.interval(cal.ece, data, method=wanted).interval


def test_a_name_means_the_method_of_the_task():
    grouped = cal.Binary(BENT.sample(90).y_true, BENT.sample(90).y_prob, group=np.arange(90) // 3)
    assert "Clustered" in cal.interval(cal.brier, grouped, method="bootstrap").interval.method
    positives = cal.PositiveUnlabeled(np.linspace(0.3, 1, 200), np.linspace(0, 1, 500), prior=0.5)
    assert "PUInversion" in cal.interval(cal.ece, positives, method="inversion").interval.method
    assert "DebiasedDelta" in cal.interval(cal.ece, positives, method="delta").interval.method
    spread = cal.Gaussian(RNG.normal(size=90), np.zeros(90), np.ones(90))
    assert "SpreadInversion" in cal.interval(cal.ence, spread, method="inversion").interval.method
    classes = cal.Multiclass(RNG.integers(0, 3, 90), RNG.dirichlet(np.ones(3), 90))
    found = cal.interval(partial(cal.classwise, cal.ece), classes, method="inversion")
    assert "ClasswiseInversion" in found.interval.method


def test_options_and_columns_are_passed_on():
    data = BENT.sample(200)
    wanted = cal.interval(partial(cal.ece, norm=2, bins=cal.EqualWidth(7)), data)
    assert cal.interval(cal.ece, data, norm=2, bins=cal.EqualWidth(7)).interval == wanted.interval
    found = cal.interval(cal.ece, y_true=data.y_true, y_prob=data.y_prob, norm=2, bins=cal.EqualWidth(7))
    assert (found, found.interval) == (wanted, wanted.interval)
    weight = np.arange(1, 201)
    weighted = cal.Binary(data.y_true, data.y_prob, weight=weight)
    assert (
        cal.interval(cal.ece, data.y_true, data.y_prob, weight=weight).interval
        == cal.interval(cal.ece, weighted).interval
    )
    with pytest.raises(TypeError, match="no argument 'nrom'"):
        cal.interval(cal.ece, data, nrom=2)
    with pytest.raises(TypeError, match="belong to the predictions"):
        cal.interval(cal.ece, data, weight=weight)
