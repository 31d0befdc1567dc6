"""The lower limit by the mean gap, and upper ends where the signs of the gap are in doubt."""

from functools import partial

import numpy as np
import pytest
from scipy.special import expit

import calibrant as cal
from calibrant.pu import Gaps, PUInversion
from calibrant.pu.mean_gap import ZERO_SHARE, mean_gap_limit
from tests.pu.test_inference import single_sample
from tests.pu.worlds import CALIBRATED, LESS, TRUE_ERROR, drawn

#: Error from a sum over a grid of x; the gap is negative at low scores, and positive for a sixth of the rows.
FLAT, FLAT_ERROR = (float(np.log(0.5)), 1.0), 0.0998779


def one_cell(mean, *, prior=0.4, spread=0.2, rows=400.0, **known):
    """Gaps of a single cell with these moments of the score."""
    of_score = np.array([mean]), np.array([mean**2 + spread**2])
    return Gaps(prior, np.ones(1), np.ones(1), *of_score, np.zeros(1), rows / 10, rows, **known)


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
