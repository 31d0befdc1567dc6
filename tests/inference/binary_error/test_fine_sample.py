"""Fine cells with clusters: sums by cluster, the design effect, merging."""

import numpy as np
import pytest

import calibrant as cal
from calibrant.inference.binary_error.fine_sample import MOST_CLUSTERS, FineSample


def grouped(n=600, copies=4, seed=0):
    rng = np.random.default_rng(seed)
    p = np.repeat(rng.random(n), copies)
    return cal.Binary(np.repeat(rng.random(n) < p[::copies], copies), p, group=np.repeat(np.arange(n), copies))


def test_clusters_add_up_to_the_cells():
    sample = FineSample.of(grouped(100), needed_by="")
    assert sample.clusters == 100
    np.testing.assert_allclose(sample.weight.sum(axis=0), sample.cells.share)
    np.testing.assert_allclose(sample.events.sum(axis=0), sample.cells.share * sample.cells.observed)
    coarse = sample.merged(5)
    np.testing.assert_allclose(coarse.weight.sum(axis=0), coarse.cells.share)
    np.testing.assert_allclose(coarse.events.sum(axis=0), coarse.cells.share * coarse.cells.observed)


def test_copies_are_thinned_to_the_rows_behind_them():
    sample = FineSample.of(grouped(400, copies=5), needed_by="")
    assert sample.cells.effective_n == pytest.approx(400, rel=0.02)
    assert sample.cells.count.sum() == pytest.approx(400, rel=0.05)


def test_many_clusters_are_united():
    sample = FineSample.of(grouped(2000, copies=2), needed_by="")
    assert sample.clusters <= MOST_CLUSTERS
    assert sample.weight.sum() == pytest.approx(1)


def test_clusters_of_one_row_are_independent_rows():
    rows = grouped(50, copies=1)
    assert FineSample.of(rows, needed_by="").clusters is None
    assert FineSample.of(cal.Binary(rows.y_true, rows.y_prob), needed_by="").merged(3).clusters is None
