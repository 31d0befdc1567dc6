"""Edges of bins: few digits, rising, around all scores."""

import numpy as np
import pytest

from calibrant.reporting.sections.score_edges import inner_log_odds, linear_edges, log_odds_edges, two_digits
from tests.reporting.sections.worlds import part


@pytest.mark.parametrize("mean", [-6.0, -1.0, 0.0, 3.0])
@pytest.mark.parametrize("spread", [0.05, 1.0, 3.0])
def test_edges_rise_and_hold_all_scores(mean, spread):
    cells = part(3000, mean=mean, spread=spread).cells
    for edges in (log_odds_edges(cells), linear_edges(cells)):
        assert np.all(np.diff(edges) > 0)
        assert edges[0] <= cells.low[0]
        assert cells.high[-1] <= edges[-1]
        assert 4 <= len(edges) <= 15


def test_edges_on_log_odds_have_two_digits_and_are_evenly_spaced():
    edges = log_odds_edges(part(5000).cells)[1:-1]
    np.testing.assert_array_equal(edges, two_digits(edges))
    steps = np.diff(np.log(edges / (1 - edges)))
    assert steps.max() / steps.min() < 1.5


def test_linear_edges_are_multiples_of_a_round_step():
    np.testing.assert_allclose(linear_edges(part(5000, spread=2.5).cells), np.linspace(0, 1, 11))


def test_scores_of_0_and_1_have_no_log_odds():
    cells = part(500, digits=0).cells
    assert set(cells.key) == {0.0, 1.0}
    assert log_odds_edges(cells) is None
    assert inner_log_odds(cells) is None


def test_far_scores_do_not_stretch_the_axis():
    cells = part(10_000, spread=1.0, mean=0.0).cells
    low, high = inner_log_odds(cells)
    assert low > np.log(cells.low[0] / (1 - cells.low[0]))
    assert 2.8 < high < 3.4  # the 99.9 % quantile of a standard normal is 3.09
