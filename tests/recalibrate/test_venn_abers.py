"""Venn-Abers: two isotonic regressions per prediction."""

import numpy as np
import pytest
from hypothesis import given, settings

from calibrant.recalibrate import VennAbers
from tests.recalibrate.worlds import isotonic_peer, tied_rows


@pytest.mark.no_cover
@given(tied_rows)
@settings(max_examples=40, deadline=None)
def test_venn_abers_is_two_isotonic_regressions_per_prediction(data):
    p, y = np.array(data[0]) / 15, np.array(data[1])
    new = np.array([0.0, 0.2, 3 / 15, 0.5, 8 / 15, 0.99, 1.0])
    interval = VennAbers().fit(p, y).interval(new)
    for place, bounds in zip(new, interval, strict=True):
        for label in (0, 1):
            expected = isotonic_peer(np.append(p, place), np.append(y, label), [place])[0]
            assert bounds[label] == pytest.approx(expected, abs=1e-12)


def test_venn_abers_merges_its_two_probabilities():
    venn = VennAbers().fit([0.1, 0.4, 0.6, 0.9], [0, 1, 0, 1])
    lower, upper = venn.interval([0.5]).T
    np.testing.assert_allclose(venn.predict_proba([0.5])[:, 1], upper / (1 - lower + upper))


def test_venn_abers_bounds_hold_the_rate_between_them():
    rng = np.random.default_rng(0)
    p = rng.random(5000)
    y = rng.random(5000) < p**2
    new = rng.random(5000)
    venn = VennAbers().fit(p, y)
    assert (venn.interval(new)[:, 0] < venn.interval(new)[:, 1]).all()
    lower, upper = venn.interval(p).mean(axis=0)
    assert lower < y.mean() < upper
