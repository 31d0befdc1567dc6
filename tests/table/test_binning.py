"""A whole number is a binning everywhere: `bins=15` means EqualMass(15)."""

import inspect

import numpy as np
import pytest

import calibrant as cal
from calibrant.table.binning import as_binning
from tests.test_public import PACKAGES, public

RNG = np.random.default_rng(0)
P = RNG.random(300)
Y = RNG.random(300) < P**1.3
DATA = cal.Binary(Y, P)
PU = cal.PositiveUnlabeled(P[Y][:100], P, prior=0.45)
SPREAD = cal.Gaussian(RNG.normal(size=300), np.zeros(300), P + 0.5)
CLASSES = cal.Multiclass(RNG.integers(0, 3, 300), RNG.dirichlet([1, 1, 1], 300))


def learnt(model, *data):
    return model.fit(*data).values_


#: How each public name with `bins=` is called: a function of the bins.
CALLS = {
    "ece": lambda bins: cal.ece(DATA, bins=bins),
    "mce": lambda bins: cal.mce(DATA, bins=bins),
    "label_binned_ece": lambda bins: cal.estimators.label_binned_ece(DATA, bins=bins),
    "debiased_ece": lambda bins: cal.debiased_ece(DATA, bins=bins),
    "ence": lambda bins: cal.ence(SPREAD, bins=bins),
    "uce": lambda bins: cal.uce(SPREAD, bins=bins),
    "debiased_ence": lambda bins: cal.estimators.debiased_ence(SPREAD, bins=bins),
    "spread_curve": lambda bins: cal.estimators.spread_curve(SPREAD, bins=bins).observed,
    "reliability_curve": lambda bins: cal.reliability_curve(DATA, bins=bins).observed,
    "class_tables": lambda bins: cal.inference.class_tables(CLASSES, bins=bins)["top label"].observed,
    "reliability": lambda bins: cal.pu.reliability(PU, bins=bins).rate,
    "prior_band": lambda bins: cal.pu.prior_band(PU, 0.4, 0.5, bins=bins).minimum,
    "sharp_bias_bound": lambda bins: cal.pu.sharp_bias_bound(PU, bins=bins),
    "bias_bound": lambda bins: cal.pu.bias_bound(prior=0.5, n_positive=100, n_unlabeled=1000, bins=bins),
    "PUScore": lambda bins: cal.pu.PUScore(bins=bins).test(PU).p_value,
    "HosmerLemeshow": lambda bins: cal.inference.HosmerLemeshow(bins=bins).test(DATA).p_value,
    "SpreadChiSquare": lambda bins: cal.inference.SpreadChiSquare(bins=bins).test(SPREAD).p_value,
    "ChiSquareMixture": lambda bins: cal.inference.ChiSquareMixture(bins=bins).interval(DATA, norm=2).high,
    "Histogram": lambda bins: learnt(cal.recalibrate.Histogram(bins=bins), P, Y),
    "ScalingBinning": lambda bins: learnt(cal.recalibrate.ScalingBinning(bins=bins), P, Y),
    "PUHistogram": lambda bins: learnt(cal.pu.PUHistogram(bins=bins), PU),
    "VarianceHistogram": lambda bins: cal.recalibrate.VarianceHistogram(bins=bins).fit(SPREAD).transform(SPREAD).std,
}
#: Bins of the probability integral transform are always of equal width.
EQUAL_WIDTH = {
    "pit_error": lambda bins: cal.estimators.pit_error(SPREAD, bins=bins).details["histogram"],
    "pit_histogram": lambda bins: cal.estimators.pit_histogram(SPREAD, bins=bins).observed,
}
#: `bins` is something else there: the table of a result, a family, a list of numbers, a number of pooled bins.
OTHERS = {"Estimate", "sweep_ece", "ence_curve", "SpreadSpline"}


def with_bins():
    found = set()
    for package in PACKAGES:
        for name, value in public(package).items():
            if callable(value) and name not in OTHERS:
                try:
                    named = "bins" in inspect.signature(value).parameters
                except ValueError:
                    continue
                found |= {name} if named else set()
    return found


def test_every_public_name_that_takes_bins_is_tested_here():
    assert with_bins() == set(CALLS) | set(EQUAL_WIDTH)


@pytest.mark.parametrize("name", CALLS)
def test_a_whole_number_means_equal_mass(name):
    for number in (7, np.int64(7)):
        np.testing.assert_array_equal(CALLS[name](number), CALLS[name](cal.EqualMass(7)))
    for wrong in (True, False, 0, -3):
        with pytest.raises(ValueError, match="bins must be a whole number of at least 1"):
            CALLS[name](wrong)
    with pytest.raises(TypeError, match="bins must be a whole number or a binning"):
        CALLS[name]("15")


@pytest.mark.parametrize("name", EQUAL_WIDTH)
def test_a_whole_number_of_bins_of_the_pit(name):
    np.testing.assert_array_equal(EQUAL_WIDTH[name](7), EQUAL_WIDTH[name](cal.EqualWidth(7)))
    for wrong in (True, 0):
        with pytest.raises(ValueError, match="bins must be a whole number of at least 1"):
            EQUAL_WIDTH[name](wrong)


def test_tables_take_whole_numbers():
    fine = cal.BinTable.of(DATA, cal.table.Distinct())
    expected = cal.BinTable.of(DATA, cal.EqualMass(7)).observed
    np.testing.assert_array_equal(cal.BinTable.of(DATA, 7).observed, expected)
    np.testing.assert_array_equal(fine.coarsen(7).observed, expected)
    assert fine.error_bound(7) == fine.error_bound(cal.EqualMass(7))


def test_a_binning_is_itself():
    for bins in (cal.EqualMass(3), cal.EqualWidth(3), cal.Edges([0, 1]), cal.pu.PaperBins(), cal.pu.BoundBins()):
        assert as_binning(bins) is bins


def published_ece(score, hit, n_bins, norm=2):
    """The row of rank r is in bin floor(r * n_bins / n), as in the code published with the sweep."""
    order = np.argsort(score)
    index = np.minimum(n_bins - 1, np.arange(len(score)) * n_bins // len(score))
    gaps = [(score - hit)[order][index == b] for b in range(n_bins)]
    return (sum(len(gap) * abs(gap.mean()) ** norm for gap in gaps if len(gap)) / len(score)) ** (1 / norm)


@pytest.mark.parametrize(("n", "n_bins"), [(20, 3), (100, 15), (101, 15), (1000, 7), (16, 15)])
def test_ranks_rounded_up_are_those_of_the_published_sweep(n, n_bins):
    rng = np.random.default_rng(n)
    score = rng.random(n)
    hit = (rng.random(n) < score).astype(int)
    data = cal.Binary(hit, score)
    bins = cal.EqualMass(n_bins, rank="ceil")
    expected = published_ece(score, hit, n_bins)
    assert float(cal.ece(data, bins=bins, norm=2)) == pytest.approx(expected, rel=1e-12)
    fine = cal.BinTable.of(data, cal.table.Distinct())
    assert float(cal.ece(fine, bins=bins, norm=2)) == pytest.approx(expected, rel=1e-12)
    weighted = cal.Binary(hit, score, weight=np.full(n, 0.5))
    assert float(cal.ece(weighted, bins=bins, norm=2)) == pytest.approx(expected, rel=1e-12)


def test_the_two_roundings_differ_and_say_so():
    score = np.arange(1, 6) / 10
    data = cal.Binary([0, 1, 0, 1, 1], score)
    assert cal.BinTable.of(data, cal.EqualMass(2)).count.tolist() == [2, 3]
    assert cal.BinTable.of(data, cal.EqualMass(2, rank="ceil")).count.tolist() == [3, 2]
    assert repr(cal.EqualMass(2, rank="ceil")) == "EqualMass(n_bins=2, rank='ceil')"
    with pytest.raises(ValueError, match="'floor' or 'ceil'"):
        cal.EqualMass(2, rank="round")
