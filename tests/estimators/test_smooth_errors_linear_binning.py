"""Masses on nodes keep totals and means; their cosine transform is that of the evenly continued masses."""

import numpy as np
import pytest

import calibrant as cal
from calibrant.estimators.smooth_errors import (
    NODE_CHUNK,
    at_nodes,
    cosines,
    even_transform,
    linear_binning,
    linear_binning_of_samples,
)


@pytest.mark.parametrize("weighted", [False, True])
def test_nodes_keep_the_mass_and_the_mean_of_rows_in_several_chunks(weighted):
    rng = np.random.default_rng(6)
    n = NODE_CHUNK + 1000
    p = rng.beta(0.3, 0.3, n)
    y = rng.random(n) < p
    weight = rng.exponential(size=n) if weighted else None
    mass = np.ones(n) if weight is None else weight
    every, positive = linear_binning(cal.Binary(y, p, weight=weight).parts(), 64)
    nodes = np.arange(65) / 64
    assert every.sum() == pytest.approx(mass.sum(), rel=1e-12)
    assert every @ nodes == pytest.approx(mass @ p, rel=1e-12)
    assert positive.sum() == pytest.approx(mass @ y, rel=1e-12)
    assert positive @ nodes == pytest.approx(mass @ (y * p), rel=1e-12)


def test_a_score_on_a_node_goes_there_whole():
    every, positive = linear_binning(cal.Binary([1, 0, 1, 1], [0.0, 0.25, 1.0, 0.375]).parts(), 4)
    assert every.tolist() == [1, 1.5, 0.5, 0, 1]
    assert positive.tolist() == [1, 0.5, 0.5, 0, 1]


def test_many_samples_have_the_masses_of_each():
    rng = np.random.default_rng(0)
    score, outcome = rng.random((4, 50)), rng.integers(0, 2, (4, 50)).astype(np.int8)
    score[0, :3] = 0.0, 1.0, 1.0
    every, positive = linear_binning_of_samples(score, outcome, 16)
    for sample in range(4):
        alone = linear_binning(cal.Binary(outcome[sample], score[sample]).parts(), 16)
        assert every[sample] == pytest.approx(alone[0], abs=1e-12)
        assert positive[sample] == pytest.approx(alone[1], abs=1e-12)


def test_the_transform_is_a_sum_of_cosines_and_can_be_undone():
    values = np.random.default_rng(0).random((3, 9))
    angle = np.pi * np.outer(np.arange(9), np.arange(9)) / 8
    ends = np.array([1, *[2] * 7, 1])
    for each in (values, values[0]):
        assert even_transform(each) == pytest.approx((each * ends) @ np.cos(angle), abs=1e-12)
        assert at_nodes(even_transform(each)) == pytest.approx(each, abs=1e-12)
    assert cosines(values[0]) == pytest.approx(2 * values[0] @ np.cos(angle), abs=1e-12)
    assert cosines(values)[0] == pytest.approx(cosines(values[0]), abs=1e-12)
