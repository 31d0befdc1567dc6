"""The interval of the true error from positive-unlabeled data."""

from functools import partial

import numpy as np
import pytest
from scipy.special import expit, ndtri

import calibrant as cal
from calibrant.numerics.inversion import tail_risk
from calibrant.pu import Gaps, PUInversion
from calibrant.pu.inversion import CELLS, ZERO_SHARE, PooledScores, fine_cells, mean_gap_limit
from tests.pu.test_binned_inference import single_sample
from tests.pu.worlds import BETTER, CALIBRATED, LESS, TRUE_ERROR, drawn

OVERCONFIDENT = (0.0, 4.0)
#: Error from a sum over a grid of x; the gap is negative at low scores, and positive for a sixth of the rows.
FLAT, FLAT_ERROR = (float(np.log(0.5)), 1.0), 0.0998779


@pytest.mark.no_cover
@pytest.mark.parametrize("world", [CALIBRATED, BETTER, LESS])
def test_the_interval_covers_two_samples(world):
    rng = np.random.default_rng(0)
    hits = [TRUE_ERROR[world] in PUInversion(199).interval(drawn(rng, 100, 1000, world)) for _ in range(40)]
    assert np.mean(hits) >= 0.9


@pytest.mark.no_cover
@pytest.mark.parametrize("known", ["label_frequency", "prior"])
def test_the_interval_covers_a_single_sample(known):
    rng = np.random.default_rng(1)
    for world in (CALIBRATED, LESS):
        hits = [
            TRUE_ERROR[world] in PUInversion(199).interval(single_sample(rng, 3000, world, known)) for _ in range(25)
        ]
        assert np.mean(hits) >= 0.88


@pytest.mark.no_cover
def test_every_estimator_of_the_error_has_the_interval_of_its_norm():
    data = drawn(np.random.default_rng(2), 200, 2000, LESS)
    one = cal.interval(cal.ece, data).interval
    for estimator in (cal.sweep_ece, cal.debiased_ece, cal.variational_error):
        found = cal.interval(estimator, data)
        assert found == estimator(data)
        assert found.interval == one
    two = cal.interval(partial(cal.ece, norm=2), data).interval
    squared = cal.interval(partial(cal.variational_error, norm="squared"), data).interval
    assert one.high < two.high
    assert (squared.low, squared.high) == pytest.approx((two.low**2, two.high**2))
    assert str(squared.target) == "true error (squared)"
    table = cal.interval(cal.ece, cal.BinTable.of(data, cal.table.Distinct())).interval
    assert (table.low, table.high) == pytest.approx((one.low, one.high), abs=1e-12)
    grid = cal.interval(cal.ece, cal.BinTable.of(data, cal.table.HybridGrid())).interval
    assert (grid.low, grid.high) == pytest.approx((one.low, one.high), abs=0.005)


def test_an_uncertain_prior_widens_the_interval():
    data = drawn(np.random.default_rng(3), 1000, 10_000, LESS)
    sure, unsure, between = (
        cal.interval(cal.ece, data, method=method).interval
        for method in (PUInversion(), PUInversion(prior_error=0.03), PUInversion(prior_interval=(0.45, 0.55)))
    )
    for wide in (unsure, between):
        assert wide.low < sure.low
        assert wide.high > sure.high
    assert "standard error 0.03" in unsure.assumption
    assert "between 0.45 and 0.55" in between.assumption
    point = cal.interval(cal.ece, data, method=PUInversion(prior_interval=(0.5, 0.5))).interval
    assert (point.low, point.high) == (sure.low, sure.high)


def test_clusters_and_weights():
    rng = np.random.default_rng(4)
    data = drawn(rng, 200, 2000, LESS)
    plain = PUInversion().interval(data)
    equal = cal.PositiveUnlabeled(data.positive, data.unlabeled, prior=0.5, weight=np.full(2200, 3.0))
    same = PUInversion().interval(equal)
    assert (same.low, same.high) == pytest.approx((plain.low, plain.high), abs=1e-9)
    positive, unlabeled = np.repeat(data.positive, 4), np.repeat(data.unlabeled, 4)
    group = np.repeat(np.arange(2200), 4)
    copies = PUInversion().interval(cal.PositiveUnlabeled(positive, unlabeled, prior=0.5, group=group))
    alone = PUInversion().interval(cal.PositiveUnlabeled(positive, unlabeled, prior=0.5))
    assert copies.high - copies.low > 1.4 * (alone.high - alone.low)
    once = single_sample(rng, 1500, LESS, "label_frequency")
    marked = np.arange(1500) < len(once.positive)
    clustered = cal.PositiveUnlabeled.from_labels(
        np.repeat(marked, 3),
        np.repeat(once.unlabeled, 3),
        scenario="single-sample",
        label_frequency=0.3,
        group=np.repeat(np.arange(1500), 3),
    )
    wide, narrow = PUInversion().interval(clustered), PUInversion().interval(once)
    assert wide.high - wide.low == pytest.approx(narrow.high - narrow.low, rel=0.35)


def test_a_single_sample_counts_its_labelled_rows_once():
    rng = np.random.default_rng(5)
    for weight in (None, rng.uniform(0.5, 2, 900)):
        p = rng.random(900)
        data = cal.PositiveUnlabeled.from_labels(
            rng.random(900) < 0.3 * p, p, scenario="single-sample", prior=0.5, weight=weight
        )
        for cut in (cal.table.Distinct(), cal.table.HybridGrid(), cal.EqualMass(7), cal.EqualWidth(7)):
            table = cal.BinTable.of(data, cut)
            assert table.n == len(data) == 900
            assert table.observed.sum() == pytest.approx(
                data.positive_weight.sum() if weight is not None else len(data.positive)
            )
    two = drawn(rng, 50, 100, LESS)
    assert cal.BinTable.of(two, cal.table.Distinct()).n == len(two) == 150


def test_bad_options_are_refused():
    data = drawn(np.random.default_rng(6), 50, 200, LESS)
    with pytest.raises(cal.InvalidPredictions, match="finite norm"):
        cal.interval(cal.mce, data)
    with pytest.raises(ValueError, match="prior_error"):
        PUInversion(prior_error=-0.1)
    with pytest.raises(ValueError, match="must rise"):
        PUInversion(prior_interval=(0.6, 0.5))
    known = single_sample(np.random.default_rng(7), 500, LESS, "label_frequency")
    with pytest.raises(cal.InvalidPredictions, match="label_frequency"):
        PUInversion(prior_interval=(0.4, 0.6)).interval(known)


@pytest.mark.no_cover
def test_a_higher_level_is_wider_by_at_least_the_ratio_of_normal_quantiles():
    rng = np.random.default_rng(2)
    for world in (LESS, OVERCONFIDENT):  # the mean gap of the second is zero, and so does not decide the lower end
        data = drawn(rng, 1000, 10_000, world)
        usual, high = (PUInversion().interval(data, level=level) for level in (0.95, 0.99))
        assert high.low < usual.low < usual.high < high.high
    ratio = ndtri(1 - tail_risk(0.99)) / ndtri(1 - tail_risk(0.95))
    assert 0.95 * ratio < (high.high - high.low) / (usual.high - usual.low) < 1.3 * ratio


def flat_sample(rng):
    """A single sample of 1000 rows with prior 0.2 of which a fifth of the positives are labelled."""
    y = rng.random(1000) < 0.2
    score = expit(FLAT[0] + FLAT[1] * (rng.standard_normal(1000) + 2 * y - 1))
    labelled = y & (rng.random(1000) < 0.2)
    return cal.PositiveUnlabeled.from_labels(labelled, score, scenario="single-sample", prior=0.2)


@pytest.mark.no_cover
def test_a_precise_mean_gap_makes_the_lower_end_informative():
    rng = np.random.default_rng(0)
    lows = np.array([PUInversion(199).interval(single_sample(rng, 1000, LESS, "prior")).low for _ in range(30)])
    assert np.median(lows) > 0.5 * TRUE_ERROR[LESS]
    assert np.mean(lows > TRUE_ERROR[LESS]) <= 0.05


@pytest.mark.no_cover
def test_zero_is_rarely_excluded_from_calibrated_data():
    rng = np.random.default_rng(1)
    ends = [PUInversion(199).interval(single_sample(rng, 1000, CALIBRATED, "prior")).low for _ in range(100)]
    assert np.mean(np.array(ends) > 0) <= 0.05


@pytest.mark.no_cover
def test_the_upper_end_allows_for_signs_that_the_data_do_not_tell():
    intervals = [PUInversion(199).interval(flat_sample(np.random.default_rng([601, 1000, k]))) for k in range(200)]
    assert np.mean([one.high < FLAT_ERROR for one in intervals]) <= 0.04


def test_constant_scores_have_the_mean_gap_as_their_limit():
    group = np.repeat(np.arange(30), 4)
    data = cal.PositiveUnlabeled(np.full(20, 0.3), np.full(100, 0.3), prior=0.4, group=group)
    assert PUInversion().interval(data).low == pytest.approx(0.1)


def test_clusters_make_the_limit_lower_as_their_number_says():
    data = drawn(np.random.default_rng(5), 100, 1000, LESS)
    group = np.repeat(np.arange(1100), 4)
    alone = PUInversion().interval(data)
    copied = np.repeat(data.positive, 4), np.repeat(data.unlabeled, 4)
    copies = PUInversion().interval(cal.PositiveUnlabeled(*copied, prior=0.5, group=group))
    ignored = PUInversion().interval(cal.PositiveUnlabeled(*copied, prior=0.5))
    assert copies.low == pytest.approx(alone.low, abs=0.002)
    assert ignored.low > alone.low + 0.005


@pytest.mark.no_cover
def test_few_labelled_rows_of_a_known_frequency_are_not_taken_for_a_small_prior():
    lows = []
    for k in range(200):
        rng = np.random.default_rng([605, k])
        score = rng.beta(1, 9, 1000)  # the true error is 0.05
        labelled = rng.random(1000) < 0.2 * score / 2
        data = cal.PositiveUnlabeled.from_labels(labelled, score, scenario="single-sample", label_frequency=0.2)
        lows.append(PUInversion(199).interval(data).low)
    assert np.mean(np.array(lows) > 0.05) <= 0.03


def test_pools_keep_all_mass_in_order():
    data = drawn(np.random.default_rng(0), 300, 3000, LESS)
    table = fine_cells(data, needed_by="test")
    scores = PooledScores.of(table)
    assert len(scores.position) <= CELLS
    assert np.all(np.diff(scores.position) > 0)
    assert np.all(np.diff(scores.score) > 0)
    gaps = scores.gaps
    assert (gaps.share.sum(), gaps.positive.sum()) == pytest.approx((1, 1))
    assert gaps.predicted.sum() == pytest.approx(data.unlabeled.mean())
    assert gaps.gap.sum() == pytest.approx(cal.pu.Gaps.of(table).gap.sum())


def test_positives_between_two_pools_belong_to_the_lower_one():
    data = cal.PositiveUnlabeled([0.05, 0.5, 0.95], [0.1, 0.2, 0.8, 0.9], prior=0.4)
    scores = PooledScores.of(fine_cells(data, needed_by="test"))
    assert scores.gaps.positive == pytest.approx([1 / 3, 1 / 3, 0, 1 / 3])


def test_rates_say_where_positives_are_and_clusters_count_less():
    data = drawn(np.random.default_rng(1), 100, 1000, LESS)
    table = fine_cells(data, needed_by="test")
    scores, half = PooledScores.of(table), PooledScores.of(table, 2.0)
    assert scores.positives(scores.score).sum() == pytest.approx(1)
    np.testing.assert_allclose(scores.positives(np.zeros(len(scores.score))), scores.gaps.share)
    assert half.information == pytest.approx(scores.information / 2)


def test_bins_are_refused():
    bins = cal.BinTable.of(drawn(np.random.default_rng(2), 50, 500, LESS), cal.EqualMass(5))
    with pytest.raises(ValueError, match="fine table"):
        fine_cells(bins, needed_by="PUInversion")


def one_cell(mean, *, prior=0.4, spread=0.2, rows=400.0, **known):
    """Gaps of a single cell with these moments of the score."""
    of_score = np.array([mean]), np.array([mean**2 + spread**2])
    return Gaps(prior, np.ones(1), np.ones(1), *of_score, np.zeros(1), rows / 10, rows, **known)


@pytest.mark.no_cover
@pytest.mark.parametrize("prior_error", [0.0, 0.02])
@pytest.mark.parametrize(("gap", "expected"), [(0.0, ZERO_SHARE * 0.02), (0.1, 0.02)])
def test_the_limit_exceeds_the_mean_gap_at_its_risk(gap, expected, prior_error):
    rng = np.random.default_rng(2)
    means = 0.4 + 0.01 * rng.standard_normal(8000)
    priors = 0.4 + gap + prior_error * rng.standard_normal(8000)
    limits = [
        mean_gap_limit(one_cell(mean, prior=prior), risk=0.02, prior_error=prior_error)
        for mean, prior in zip(means, priors, strict=True)
    ]
    assert np.mean(np.array(limits) > gap) == pytest.approx(expected, rel=0.25)


def test_the_limit_of_a_prior_interval_is_that_of_its_nearest_prior():
    limit = partial(mean_gap_limit, one_cell(0.33), risk=0.02)
    assert limit(prior_interval=(0.2, 0.5)) == 0
    assert limit(prior_interval=(0.45, 0.6)) == mean_gap_limit(one_cell(0.33, prior=0.45), risk=0.02) > 0
    assert limit(prior_interval=(0.1, 0.2)) == mean_gap_limit(one_cell(0.33, prior=0.2), risk=0.02) > 0
    assert limit(prior_error=0.05) == 0


def test_a_known_label_frequency_with_no_labelled_row_is_not_precise():
    few = one_cell(0.05, prior=0.0, spread=0.01, rows=500.0, frequency=0.2, known_frequency=True)
    assert mean_gap_limit(few, risk=0.02) == 0  # five labelled rows are expected
    more = one_cell(0.05, prior=0.0, spread=0.01, rows=2000.0, frequency=0.2, known_frequency=True)
    assert 0 < mean_gap_limit(more, risk=0.02) < 0.05
