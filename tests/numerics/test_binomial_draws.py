import numpy as np
import pytest

from calibrant.numerics import binomial_draws
from calibrant.numerics.binomial_draws import BinomialDraws, independent_counts

SIZE, CHANCE = np.array([1, 7, 400, 90_000, 30, 50]), np.array([0.3, 0.5, 0.04, 1e-4, 0.98, 0.0])


def test_counts_have_the_binomial_distribution():
    from scipy.stats import binom

    draws = 2000
    found = BinomialDraws.of(6, draws, np.random.default_rng(0)).counts(SIZE, CHANCE)
    for line, n, p in zip(found, SIZE, CHANCE, strict=True):
        reached = np.array([(line <= k).mean() for k in range(60)])
        np.testing.assert_allclose(reached, binom.cdf(np.arange(60), n, p), atol=1 / draws)


@pytest.mark.no_cover
def test_every_draw_by_itself_is_binomial_and_lines_are_independent():
    rng = np.random.default_rng(1)
    size, chance = np.array([20, 20]), np.array([0.1, 0.1])
    first = np.array([BinomialDraws.of(2, 7, rng).counts(size, chance)[:, 3] for _ in range(4000)])
    np.testing.assert_allclose(first.mean(axis=0), 2.0, atol=0.09)
    np.testing.assert_allclose(first.var(axis=0), 1.8, rtol=0.1)
    assert abs(np.corrcoef(first.T)[0, 1]) < 0.06


def test_counts_rise_with_the_probability_draw_by_draw():
    draws = BinomialDraws.of(1, 300, np.random.default_rng(2))
    few, more = (draws.counts(np.array([500]), np.array([p])) for p in (0.0100, 0.0102))
    assert (more >= few).all()
    assert (more != few).mean() < 0.2  # the mean is 0.1 larger


def test_chosen_lines_keep_their_random_numbers():
    draws = BinomialDraws.of(6, 50, np.random.default_rng(3))
    chosen = np.array([False, True, False, True, True, False])
    np.testing.assert_array_equal(
        draws.counts(SIZE[chosen], CHANCE[chosen], chosen), draws.counts(SIZE, CHANCE)[chosen]
    )


@pytest.mark.parametrize("p", [0.0, 1.0])
def test_certain_outcomes(p):
    assert (BinomialDraws.of(1, 5, np.random.default_rng(0)).counts(np.array([9]), np.array([p])) == 9 * p).all()


def test_independent_counts_have_mean_and_variance_of_the_binomial_distribution():
    size, chance = np.array([1, 7, 400, 90_000, 30, 50, 9000]), np.array([0.3, 0.5, 0.04, 1e-4, 0.98, 0.0, 0.5])
    found = independent_counts(size, chance, 4000, np.random.default_rng(4))
    spread = np.sqrt(size * chance * (1 - chance))
    assert (np.abs(found.mean(axis=1) - size * chance) <= 4 * spread / np.sqrt(4000)).all()
    np.testing.assert_allclose(found.std(axis=1), spread, rtol=0.06)
    assert np.abs(np.corrcoef(found[spread > 0])[np.triu_indices(6, 1)]).max() < 0.06
    assert ((found >= 0) & (found <= size[:, None]) & (found == np.round(found))).all()


def test_few_and_many_expected_events_are_drawn_alike(monkeypatch):
    """A table of probabilities, and rejection."""
    draws = [independent_counts(np.array([300]), np.array([0.5]), 20_000, np.random.default_rng(5))]
    monkeypatch.setattr(binomial_draws, "_TABULATED", 1.0)
    draws.append(independent_counts(np.array([300]), np.array([0.5]), 20_000, np.random.default_rng(5)))
    assert not np.array_equal(*draws)
    quantiles = [np.quantile(one, [0.05, 0.25, 0.5, 0.75, 0.95]) for one in draws]
    np.testing.assert_allclose(*quantiles, atol=1)
