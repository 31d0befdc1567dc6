"""The fitted gap, its noise under hypotheses, and how clusters thin it."""

import numpy as np
import pytest

import calibrant as cal
from calibrant.inference.gap_fit import CommonDraws, GapFit, hats, influence, thinned
from calibrant.inference.sample import Sample
from tests.inference.worlds import BENT


def fit_of(n, weight=None):
    data = BENT.sample(n, 3)
    data = cal.Binary(data.y_true, data.y_prob, weight=weight)
    return GapFit.of(Sample.of(data, needed_by="").pooled())


def test_hat_functions_are_orthonormal_in_the_weights():
    cells = fit_of(500).cells
    half = hats(cells, 7)
    np.testing.assert_allclose(half.T @ (cells.share[:, None] * half), np.eye(half.shape[1]), atol=1e-9)


def test_few_rows_of_whole_counts_are_drawn_one_by_one():
    drawn = CommonDraws.of(fit_of(300), 9, np.random.default_rng(0))
    assert drawn.uniform.shape == (9, 300)


def test_many_rows_are_not_drawn_one_by_one():
    assert CommonDraws.of(fit_of(5000), 9, np.random.default_rng(0)).uniform is None


def test_fractional_counts_are_not_drawn_as_rows():
    """With weights the effective counts of cells are fractions: rounded to whole rows their noise would be wrong."""
    weight = np.random.default_rng(1).exponential(size=300)
    fit = fit_of(300, weight)
    assert np.abs(fit.cells.count - fit.cells.count.round()).max() > 0.01
    drawn = CommonDraws.of(fit, 4000, np.random.default_rng(0))
    assert drawn.uniform is None
    chance = fit.cells.predicted
    weighted = fit.half * fit.cells.share[:, None]
    variance = ((weighted**2) * (chance * (1 - chance) / fit.cells.count)[:, None]).sum(axis=0)
    np.testing.assert_allclose(drawn.noise(chance).var(axis=0), variance, rtol=0.15)


@pytest.mark.parametrize("n", [200, 5000, 40_000])
def test_noise_has_the_variance_of_independent_outcomes(n):
    fit = fit_of(n)
    chance = fit.cells.predicted
    weighted = fit.half * fit.cells.share[:, None]
    variance = ((weighted**2) * (chance * (1 - chance) / fit.cells.count)[:, None]).sum(axis=0)
    noise = CommonDraws.of(fit, 3000, np.random.default_rng(0)).noise(chance)
    np.testing.assert_allclose(noise.var(axis=0), variance, rtol=0.15)


def test_influences_add_up_to_nothing_and_by_cluster():
    data = BENT.sample(200)
    sample = Sample.of_rows(cal.Binary(data.y_true, data.y_prob, group=np.arange(200) // 4))
    fit = GapFit.of(sample.pooled())
    by_row, by_cluster = influence(fit, sample, clustered=False), influence(fit, sample)
    assert by_cluster.shape == (50, by_row.shape[1])
    np.testing.assert_allclose(by_cluster, by_row.reshape(50, 4, -1).sum(axis=1), atol=1e-15)
    np.testing.assert_allclose(by_row.sum(axis=0), 0, atol=1e-12)


def test_copies_within_clusters_are_thinned_to_the_rows_behind_them():
    data = BENT.sample(300)
    copies = cal.Binary(np.repeat(data.y_true, 5), np.repeat(data.y_prob, 5), group=np.repeat(np.arange(300), 5))
    cells = thinned(Sample.of_rows(copies))
    assert cells.effective_n == pytest.approx(300, rel=0.02)
    assert cells.count.sum() == pytest.approx(300, rel=0.02)
    alone = Sample.of_rows(data)
    assert thinned(alone).effective_n == alone.effective_n == 300
