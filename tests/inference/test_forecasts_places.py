"""Where outcomes lie in their predicted distributions."""

import numpy as np
import pytest
from scipy import stats
from scipy.integrate import quad

import calibrant as cal
from calibrant.inference.forecast_intervals import nearest_division
from calibrant.inference.forecasts import (
    COSINES,
    HERMITE,
    Cells,
    Jumps,
    Points,
    order_p_value,
    placed,
    width_code,
)

Z = np.linspace(-4, 4, 9)


@pytest.mark.parametrize("basis", [HERMITE, COSINES], ids=["hermite", "cosines"])
def test_means_over_cells_are_integrals(basis):
    low, high = np.array([-38.0, -3.5, 0.2, 2.0]), np.array([-3.2, 0.1, 0.9, 38.0])
    mass = stats.norm.cdf(high) - stats.norm.cdf(low)
    found = basis.mean(low, high, mass)
    for k in range(4):
        for j in range(4):
            value = quad(
                lambda z, k=k: basis.at(np.array(z))[k] * stats.norm.pdf(z), max(low[j], -12), min(high[j], 12)
            )
            assert found[j, k] == pytest.approx(value[0] / mass[j], rel=1e-5, abs=1e-7)
    assert basis.mean(*np.array([[-38.0], [38.0], [1.0]]))[0] == pytest.approx(np.zeros(4), abs=1e-12)


def test_scores_of_skewness_and_tails_are_constant_beyond_three():
    third, fourth = HERMITE.at(np.array([2.9, 3.0, 3.1, 6.0]))[:, 2:].T
    assert third[1] == third[2] == third[3] == pytest.approx(18)
    assert fourth[1] == fourth[2] == fourth[3]
    assert third[0] < 18
    assert fourth[0] < fourth[1]


def test_a_thin_jump_has_the_score_of_its_inner_end():
    found = HERMITE.mean(np.array([8.0]), np.array([8.5]), np.array([1e-15]))
    assert found[0] == pytest.approx(HERMITE.at(np.array(8.0)))


def test_every_kind_has_its_place():
    y, zero = np.array([0.3, -1.2, 9.0]), np.zeros(3)
    normal = placed(cal.Gaussian(y, zero, [1.0, 2.0, 1.0]), bins=4)
    assert isinstance(normal.places, Points)
    assert normal.places.z == pytest.approx([0.3, -0.6, 9.0])
    assert normal.width == pytest.approx([1, 2, 1])
    same = placed(cal.Distribution(y, stats.norm(zero, [1.0, 2.0, 1.0])), bins=4)
    assert same.places.z == pytest.approx([0.3, -0.6, 9.0])  # the upper tail keeps its digits
    assert same.width == pytest.approx(normal.width * (stats.norm.ppf(0.75) * 2))
    cells = placed(cal.Quantiles(y, [0.2, 0.7], [[0.0, 1.0]] * 3), bins=4)
    assert isinstance(cells.places, Cells)
    assert cells.places.inside.tolist() == [1, 0, 2]
    assert cells.places.chance == pytest.approx([0.2, 0.5, 0.3])
    ranks = placed(cal.Samples(y, [[0.0, 1.0, 2.0]] * 3), bins=4)
    assert ranks.places.inside.tolist() == [1, 0, 3]
    assert ranks.width == pytest.approx([2, 3.2, 9])  # at m + 1 = 4 the range of all values


def test_the_width_of_draws_does_not_tell_the_outcome_from_a_draw():
    rng = np.random.default_rng(0)
    values = rng.normal(size=(1, 13))
    widths = [placed(cal.Samples(values[:, k], np.delete(values, k, axis=1)), bins=4).width[0] for k in range(13)]
    assert widths == pytest.approx([widths[0]] * 13)


def test_equal_draws_share_their_ranks():
    tied = placed(cal.Samples([1.0, 0.5], [[0.0, 1.0, 1.0], [0.0, 0.0, 2.0]]), bins=4).places
    assert isinstance(tied, Jumps)
    assert tied.own.mass == pytest.approx([0.75, 0.25])
    assert stats.norm.cdf(tied.own.low) == pytest.approx([0.25, 0.5])
    assert stats.norm.cdf(tied.middle) == pytest.approx([0.625, 0.625])
    possible = tied.possible(slice(0, 2))
    assert possible.mass.tolist() == [[0.25, 0.75, 0.75, 0.75], [0.5, 0.5, 0.25, 0.25]]
    mean = np.einsum("j,rjk->rk", tied.chance, HERMITE.mean(*possible))
    assert mean == pytest.approx(np.zeros((2, 4)), abs=1e-12)


def test_counts_have_the_jump_of_their_distribution():
    rate = np.array([0.3, 2.0, 40.0])
    jumps = placed(cal.Distribution([0, 3, 200], stats.poisson(rate)), bins=4).places
    assert stats.norm.cdf(jumps.own.low[:2]) == pytest.approx([0, stats.poisson.cdf(2, 2.0)])
    assert stats.norm.cdf(jumps.own.high[:2]) == pytest.approx(stats.poisson.cdf([0, 3], rate[:2]))
    assert jumps.own.low[2] == pytest.approx(-stats.norm.ppf(stats.poisson.sf(199, 40.0)))  # far beyond F(y) = 1
    assert HERMITE.mean(*jumps.own)[2, 0] > 15


def test_ties_with_quantiles_are_divided_as_expected():
    low, high = np.repeat([0, 1, 0], [20, 20, 60]), np.repeat([0, 1, 1], [20, 20, 60])
    share = nearest_division(low, high, np.array([0.5, 0.5]))
    assert share.sum(axis=0) == pytest.approx([50, 50])
    assert share[:20] == pytest.approx(np.tile([1.0, 0.0], (20, 1)))
    assert placed(cal.Quantiles([0.0, 1.0], [0.5], [[0.0], [0.0]]), bins=4).ties == 0.5


def test_widths_are_in_fifths_or_thirds():
    assert np.bincount(width_code(np.arange(1.0, 101)).astype(int)).tolist() == [20] * 5
    assert np.bincount(width_code(np.arange(1.0, 31)).astype(int)).tolist() == [10] * 3
    assert not width_code(np.full(50, 2.0)).any()
    assert not width_code(np.array([1.0, np.inf])).any()


def test_order_is_the_test_of_ljung_and_box_on_ranks():
    rng = np.random.default_rng(0)
    z = rng.normal(size=60)
    rank = stats.rankdata(z) - 30.5
    r = [np.sum(rank[k:] * rank[:-k]) / np.sum(rank**2) for k in (1, 2, 3)]
    q = 60 * 62 * sum(x * x / (60 - k) for k, x in zip((1, 2, 3), r, strict=True))
    assert order_p_value(z) == pytest.approx(stats.chi2.sf(q, 3))
    assert order_p_value(np.sort(z), z) < 1e-6
