"""The recommended calibration error: which estimator it is for each task, what it is called, where it serves.

The averaged error: little bias, calibrated or not, and what must always hold.
"""

import math
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import calibrant as cal
from calibrant.estimators.recommended import recommended
from calibrant.numerics.equal_mass import SortedSamples
from calibrant.pu import PaperBins
from calibrant.results.target import Target, batched
from calibrant.simulate import PAPER_WORLDS, IdentityCurve, World
from tests.inference.worlds import BENT

RNG = np.random.default_rng(0)
DATA = BENT.sample(400)
CLASSES = cal.Multiclass(RNG.integers(0, 3, 300), RNG.dirichlet(np.ones(3), 300))
SPREADS = cal.Gaussian(RNG.normal(size=200), np.zeros(200), np.exp(RNG.normal(size=200) / 3))
QUANTILES = cal.Quantiles(RNG.normal(size=90), [0.1, 0.5, 0.9], np.tile([-1.2, 0, 1.2], (90, 1)))
POSITIVES = cal.PositiveUnlabeled(np.linspace(0.3, 1, 200), np.linspace(0, 1, 500), prior=0.5)
TABLE = cal.BinTable.of(DATA, cal.table.Distinct())
CASES = {
    "binary": (DATA, {}, cal.averaged_error, "Calibration error (L1)", "averaged smooth curves"),
    "table": (TABLE, {}, cal.averaged_error, "Calibration error (L1)", "averaged smooth curves"),
    "L2": (DATA, {"norm": 2}, cal.averaged_error, "Calibration error (L2)", "averaged smooth curves"),
    "L3": (DATA, {"norm": 3}, cal.variational_error, "Calibration error (L3)", "variational, 5 folds, averaged"),
    "KL": (DATA, {"norm": "kl"}, cal.variational_error, "Calibration error (KL)", "variational, 5 folds"),
    "top label": (CLASSES.top_label(), {}, cal.averaged_error, "Calibration error (L1)", "averaged smooth curves"),
    "classes": (CLASSES, {}, cal.variational_error, "Calibration error (L1)", "variational, 5 folds x 3, conditional"),
    "spreads": (SPREADS, {}, cal.ence, "Calibration error (ENCE)", "spread, EqualMass(n_bins=10)"),
    "table of spreads": (
        cal.BinTable.of(SPREADS, cal.table.Distinct()), {}, cal.ence, "Calibration error (ENCE)", "spread, EqualMass",
    ),
    "quantiles": (QUANTILES, {}, cal.interval_error, "Calibration error (coverage, L1)", "coverage, "),
    "positives": (POSITIVES, {}, partial(cal.ece, bins=PaperBins()), "Calibration error (L1)", "binned, PaperBins"),
    "positives L2": (POSITIVES, {"norm": 2}, cal.variational_error, "Calibration error (L2)", "variational, 5 folds"),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_it_is_the_recommended_estimator_and_says_which(case):
    data, options, estimator, name, method = CASES[case]
    found, same = cal.calibration_error(data, **options), estimator(data, **options)
    assert (found, found.target, found.n, found.name) == (same, same.target, same.n, name)
    assert found.method.startswith(method)
    assert found.details.keys() == same.details.keys()


@pytest.mark.parametrize("case", ["binary", "classes", "spreads", "quantiles", "positives"])
def test_it_has_the_interval_of_its_target(case):
    data, _, estimator, *_ = CASES[case]
    assert cal.interval(cal.calibration_error, data).interval == cal.interval(estimator, data).interval


def test_a_method_and_its_options_may_be_chosen():
    one = cal.calibration_error(DATA, method="binned", bins=cal.EqualWidth(10), norm=2)
    assert (one, one.name) == (cal.ece(DATA, bins=cal.EqualWidth(10), norm=2), "Calibration error (L2)")
    assert one.bins is not None
    assert cal.calibration_error(DATA, method="binned", n_bins=7) == cal.ece(DATA, bins=7)
    folds = cal.calibration_error(DATA, method="variational", folds=3)
    assert (folds, folds.method) == (cal.variational_error(DATA, folds=3), "variational, 3 folds, averaged smoothers")
    top = cal.calibration_error(CLASSES, top_label="reduced")
    assert (top, top.name) == (cal.variational_error(CLASSES, top_label="reduced"), "Confidence calibration error (L1)")
    coverage = cal.calibration_error(SPREADS, method="coverage", norm=2)
    assert (coverage, coverage.target.quantity) == (cal.interval_error(SPREADS, norm=2), "coverage error")
    assert cal.calibration_error(y_true=DATA.y_true, y_prob=DATA.y_prob) == cal.calibration_error(DATA)


def test_what_no_method_has_is_refused():
    with pytest.raises(ValueError, match="'averaged', 'variational', 'binned', 'spread', 'coverage', got 'kernel'"):
        cal.calibration_error(DATA, method="kernel")
    with pytest.raises(TypeError, match="no argument 'folds'"):
        cal.calibration_error(DATA, folds=3)
    with pytest.raises(ValueError, match=r"norm 1.*debiased_ence"):
        cal.calibration_error(SPREADS, norm=2)
    with pytest.raises(cal.InvalidPredictions, match="no single score"):
        cal.calibration_error(CLASSES, method="averaged")
    with pytest.raises(ValueError, match="fine table"):
        cal.calibration_error(cal.BinTable.of(DATA, cal.EqualWidth(10)))


def test_no_two_estimators_share_a_name():
    named = [cal.calibration_error, cal.averaged_error, cal.variational_error, cal.ece, cal.debiased_ece, cal.sweep_ece]
    assert len({one(DATA).name for one in named}) == len(named)


def test_models_groups_and_classes_are_compared_by_it():
    other = cal.Binary(DATA.y_true, DATA.y_prob**1.2)
    assert cal.compare(cal.calibration_error, DATA, other).interval == cal.compare(cal.ece, DATA, other).interval
    sharper = cal.Multiclass(CLASSES.y_true, CLASSES.y_prob**2 / (CLASSES.y_prob**2).sum(axis=1, keepdims=True))
    ours, theirs = (cal.compare(one, CLASSES, sharper) for one in (cal.calibration_error, cal.variational_error))
    assert (ours.interval, ours.value_a) == (theirs.interval, theirs.value_a)
    groups = cal.by_group(cal.calibration_error, DATA, by=np.arange(400) % 2)
    assert {estimate.name for estimate in groups.estimates.values()} == {"Calibration error (L1)"}
    found = cal.classwise(cal.calibration_error, CLASSES)
    assert (found.name, found.target) == ("Classwise Calibration error (L1)", Target("classwise mean", 1))
    assert found == pytest.approx(np.mean([cal.averaged_error(one) for one in CLASSES.one_vs_rest().values()]))


def test_many_samples_at_once_give_what_each_gives():
    from calibrant.numerics.equal_mass import SortedSamples

    samples = SortedSamples.of(DATA.y_prob[None], DATA.y_true[None].astype(np.int8))
    for options in ({}, {"norm": 2}, {"norm": 3}, {"method": "binned"}):
        many = batched(partial(cal.calibration_error, **options))
        assert many(samples)[0] == pytest.approx(cal.calibration_error(DATA, **options), abs=1e-12)


def test_plain_arrays_are_one_probability():
    assert recommended([0, 1]) == recommended(None) == "averaged"


rows = st.lists(st.tuples(st.floats(0, 1), st.booleans()), min_size=1, max_size=40)


@settings(max_examples=30)
@given(rows, st.randoms(use_true_random=False))
def test_any_rows_in_any_order_give_a_number_between_zero_and_one(rows, random):
    values = []
    for order in (rows, random.sample(rows, len(rows))):
        p, y = (np.array(column, dtype=float) for column in zip(*order, strict=True))
        values.append(cal.averaged_error(y, p, norm=2))
    assert 0 <= values[0] <= 1
    assert values[0] == pytest.approx(values[1], abs=1e-6)


def test_doubling_every_weight_changes_nothing():
    rng = np.random.default_rng(0)
    p = rng.random(300)
    y = rng.random(300) < p**1.5
    once, twice = (cal.averaged_error(cal.Binary(y, p, weight=np.full(300, w))) for w in (1.0, 2.0))
    assert once == pytest.approx(cal.averaged_error(y, p), abs=1e-9)
    assert twice == pytest.approx(once, abs=1e-9)


def test_rows_and_tables_agree():
    data = PAPER_WORLDS["resnet110_c100"].sample(3000, seed=1)
    exact, grid = (
        cal.averaged_error(cal.BinTable.of(data, cells)) for cells in (cal.table.Distinct(), cal.table.HybridGrid())
    )
    assert cal.averaged_error(data) == pytest.approx(exact, abs=1e-12)
    assert grid == pytest.approx(exact, abs=2e-3)


def test_many_rows_are_counted_on_the_grid_first():
    rng = np.random.default_rng(1)
    p = rng.random(100_000)
    y = rng.random(100_000) < p**2
    assert cal.averaged_error(y, p, norm=2) == pytest.approx(math.sqrt(1 / 30), abs=0.004)
    assert cal.averaged_error(y, p, norm=1) == pytest.approx(1 / 6, abs=0.004)


@pytest.mark.no_cover
@pytest.mark.parametrize("name", ["resnet110_c10", "densenet40_c100", "densenet161_imgnet"])
def test_the_bias_is_small_in_published_worlds(name):
    world, repeats = PAPER_WORLDS[name], 40
    values = [cal.averaged_error(world.sample(800, seed=seed), norm=2) for seed in range(repeats)]
    assert abs(np.mean(values) - world.true_error(2)) < 0.004 + 3 * np.std(values) / math.sqrt(repeats)


@pytest.mark.no_cover
def test_a_calibrated_model_is_told_from_a_miscalibrated_one():
    world = World(PAPER_WORLDS["resnet110_c100"].scores, IdentityCurve())
    averaged, swept = zip(
        *(
            (cal.averaged_error(d, norm=2), cal.sweep_ece(d, norm=2))
            for d in (world.sample(800, seed=s) for s in range(40))
        ),
        strict=True,
    )
    assert np.mean(averaged) < 0.5 * np.mean(swept)


def test_unfit_norms_and_tables_are_refused():
    with pytest.raises(ValueError, match="finite norm"):
        cal.averaged_error([0, 1], [0.2, 0.7], norm=math.inf)
    with pytest.raises(ValueError, match="no outcomes per row"):
        cal.averaged_error(cal.PositiveUnlabeled([0.9], [0.2, 0.7], prior=0.5))


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("digits", [2, 15])
def test_many_samples_at_once_are_each_by_itself(shared, digits):
    rng = np.random.default_rng(0)
    scores = np.round(np.tile(rng.random(300), (5, 1)) if shared else rng.random((5, 300)), digits)
    outcomes = (rng.random((5, 300)) < scores**1.5).astype(np.int8)
    together = batched(partial(cal.averaged_error, norm=2))(SortedSamples.of(scores, outcomes))
    alone = [cal.averaged_error(outcome, score, norm=2) for outcome, score in zip(outcomes, scores, strict=True)]
    np.testing.assert_allclose(together, alone, rtol=1e-9, atol=1e-12)


def test_the_square_is_the_plug_in_square_without_its_noise():
    rng = np.random.default_rng(1)
    p = rng.random(300)
    found = cal.averaged_error(rng.random(300) < p**1.2, p, norm=2)
    plug_in, noise = found.details["plug_in"], found.details["noise"]
    assert 0.3 < noise / plug_in < 0.95
    assert found == pytest.approx(np.sqrt(plug_in * (1 - (noise / plug_in) ** 5)), rel=1e-9)
