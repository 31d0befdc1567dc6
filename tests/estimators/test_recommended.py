"""The recommended calibration error: which estimator it is for each task, what it is called, where it serves."""

from functools import partial

import numpy as np
import pytest

import calibrant as cal
from calibrant.estimators.recommended import recommended
from calibrant.pu import PaperBins
from calibrant.results.target import Target, batched
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
    "classes": (CLASSES, {}, cal.variational_error, "Calibration error (L1)", "variational, 5 folds, conditional"),
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
