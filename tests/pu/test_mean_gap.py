"""The lower limit of the calibration error by the mean gap."""

from functools import partial

import numpy as np
import pytest

from calibrant.pu import Gaps
from calibrant.pu.mean_gap import ZERO_SHARE, mean_gap_limit


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
