"""Losses outcome by outcome, whose weighted means are the scores."""

from functools import partial

import numpy as np
import pytest
from scipy import stats
from scipy.special import ndtri

import calibrant as cal

LEVELS = np.arange(1, 10) / 10
RNG = np.random.default_rng(0)
Y, WEIGHT = RNG.normal(size=40), RNG.uniform(0.5, 2, 40)
KINDS = {
    "gaussian": cal.Gaussian(Y, np.zeros(40), np.ones(40), weight=WEIGHT),
    "distribution": cal.Distribution(Y, stats.logistic(np.zeros(40), 1.0), weight=WEIGHT),
    "quantiles": cal.Quantiles(Y, LEVELS, np.tile(ndtri(LEVELS), (40, 1)), weight=WEIGHT),
    "samples": cal.Samples(Y, RNG.normal(size=(40, 20)), weight=WEIGHT),
    "outputs": cal.Gaussian(np.stack([Y, Y], 1), np.zeros((40, 2)), np.ones((40, 2)), weight=WEIGHT),
}
SCORES = (
    cal.crps,
    cal.nll,
    partial(cal.nll, floor=0.1),
    partial(cal.pinball, levels=[0.2, 0.8]),
    partial(cal.interval_score, nominal=0.8),
    partial(cal.coverage, nominal=0.6),
)


@pytest.mark.parametrize("kind", KINDS)
def test_a_score_is_the_weighted_mean_of_its_losses(kind):
    data = KINDS[kind]
    for score in SCORES:
        if "nll" in str(score) and kind in ("quantiles", "samples"):
            continue
        found = score(data)
        losses = found.target.losses(data)
        assert losses.shape == (data.y_true.size,)
        assert found == pytest.approx(np.average(losses, weights=data.flat_weight))
