"""The test of a change: its formula by hand, its level, and its power."""

import numpy as np

from calibrant.reporting.sections.change_point import DRAWS, Residuals, change_point, random_signs, summed


def residuals(sums, drawn, variance=1.0):
    size = len(sums)
    return Residuals(
        sums=np.asarray(sums, dtype=float),
        variance=np.full(size, variance),
        scores=np.full((size, 1), variance),
        information=np.array([[size * variance]]),
        drawn=drawn,
        drawn_scores=drawn.sum(axis=0, keepdims=True),
    )


def test_the_statistic_is_that_of_a_bridge():
    """With one parameter and equal variances the largest of S_k / sqrt(k (1 - k / K)) decides."""
    rng = np.random.default_rng(0)
    drawn = rng.standard_normal((10, DRAWS))
    sums = rng.standard_normal(10) + np.repeat([1.0, -1.0], [6, 4])
    sums -= sums.mean()

    def by_hand(values):
        k = np.arange(1, 10)
        bridge = np.cumsum(values - values.mean())[:-1]
        return bridge**2 / (k * (1 - k / 10))

    found = change_point(residuals(sums, drawn))
    assert found.first == by_hand(sums).argmax() + 1
    larger = sum(by_hand(column).max() >= by_hand(sums).max() for column in drawn.T)
    assert found.p_value == (1 + larger) / (DRAWS + 1)


def test_the_level_holds_whatever_the_number_of_periods():
    rng = np.random.default_rng(1)
    for size in (2, 12, 40):
        p = []
        for _ in range(200):
            sums = rng.standard_normal(size)
            p.append(change_point(residuals(sums - sums.mean(), rng.standard_normal((size, 199)))).p_value)
        assert np.mean(np.array(p) < 0.05) < 0.09


def test_nothing_to_split():
    assert change_point(residuals([0.0], np.zeros((1, 9)))) is None
    assert change_point(residuals([0.0, 0.0], np.zeros((2, 9)), variance=0.0)) is None


def test_signs_keep_clusters_together():
    parts = np.array([[1.0, 2.0], [3.0, -1.0]])
    drawn = random_signs(parts, 0)
    assert drawn.shape == (2, DRAWS)
    assert {tuple(column) for column in drawn.T} == {(4.0, 1.0), (-4.0, -1.0), (2.0, -3.0), (-2.0, 3.0)}


def test_sums_by_index():
    np.testing.assert_array_equal(summed(np.array([0, 1, 0]), np.array([[1.0], [2.0], [3.0]]), 3), [[4], [2], [0]])
