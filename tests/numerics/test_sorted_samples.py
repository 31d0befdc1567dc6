"""Many sorted samples: cuts and sums are those of each sample."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from calibrant.data.predictions import Binary
from calibrant.numerics.equal_mass import equal_mass_rows
from calibrant.numerics.sorted_samples import SortedSamples
from calibrant.numerics.sorting import sorted_rows

row = st.tuples(st.one_of(st.floats(0, 1), st.integers(0, 4).map(lambda k: k / 4)), st.booleans())
matrices = st.integers(1, 12).flatmap(lambda n: st.lists(st.lists(row, min_size=n, max_size=n), min_size=1, max_size=5))


def arrays(matrix):
    scores = np.array([[score for score, _ in sample] for sample in matrix], dtype=float)
    return scores, np.array([[outcome for _, outcome in sample] for sample in matrix], dtype=np.int8)


@pytest.mark.no_cover
@given(matrices)
def test_samples_are_sorted_by_score_and_keep_their_outcomes(matrix):
    scores, outcomes = arrays(matrix)
    samples = SortedSamples.of(scores, outcomes)
    for sample in range(len(scores)):
        order = np.lexsort((outcomes[sample], scores[sample]))
        assert np.array_equal(samples.key[sample], scores[sample][order])
        assert np.array_equal(samples.outcome[sample], outcomes[sample][order])


@pytest.mark.no_cover
@given(matrices, st.integers(1, 15))
def test_cuts_of_equal_mass_are_those_of_each_sample(matrix, n_bins):
    scores, outcomes = arrays(matrix)
    cuts = SortedSamples.of(scores, outcomes).equal_mass_cuts(n_bins)
    for sample, found in enumerate(np.broadcast_to(cuts, (len(scores), n_bins + 1))):
        rows = sorted_rows(Binary(outcomes[sample], scores[sample]).parts()[0])
        assert np.array_equal(np.unique(found), equal_mass_rows(rows, n_bins))
        alone = SortedSamples.of_rows(rows).equal_mass_cuts(n_bins)
        assert np.array_equal(np.unique(alone), np.unique(found))


@given(matrices, st.lists(st.floats(0, 1), max_size=5).map(sorted))
def test_cuts_at_edges_count_the_scores_up_to_them(matrix, inner):
    scores, outcomes = arrays(matrix)
    samples, edges = SortedSamples.of(scores, outcomes), np.array([0.0, *inner, 1.0])
    cuts = np.broadcast_to(samples.cuts_at(edges), (len(scores), len(edges)))
    assert np.array_equal(cuts[:, 1:-1], [[np.sum(sample <= edge) for edge in inner] for sample in scores])
    assert np.all(cuts[:, 0] == 0)
    assert np.all(cuts[:, -1] == scores.shape[1])


@given(matrices, st.integers(1, 6), st.data())
def test_some_of_the_samples_have_the_sums_they_have_among_all(matrix, n_bins, data):
    scores, outcomes = arrays(matrix)
    samples = SortedSamples.of(scores, outcomes)
    which = np.array(data.draw(st.lists(st.sampled_from(range(len(scores))), min_size=1, unique=True)))
    every = np.broadcast_to(samples.equal_mass_cuts(n_bins), (len(scores), n_bins + 1))
    cuts = samples.equal_mass_cuts(n_bins, which)
    assert np.array_equal(samples.observed(cuts, which), samples.observed(every)[which])
    assert np.array_equal(samples.predicted(cuts, which), samples.predicted(every)[which])
    assert samples.observed(every).sum(axis=1).tolist() == outcomes.sum(axis=1).tolist()
    assert samples.predicted(every).sum(axis=1) == pytest.approx(scores.sum(axis=1))


@given(matrices)
def test_runs_of_equal_scores_end_where_the_score_changes(matrix):
    scores, outcomes = arrays(matrix)
    samples = SortedSamples.of(scores, outcomes)
    for sample in range(len(scores)):
        cuts = samples.run_ends(sample)
        distinct, counts = np.unique(scores[sample], return_counts=True)
        assert np.array_equal(samples.key[sample][cuts[:-1]], distinct)
        assert np.array_equal(np.diff(cuts), counts)
        alone = SortedSamples.of_rows(sorted_rows(Binary(outcomes[sample], scores[sample]).parts()[0]))
        assert np.array_equal(alone.run_ends(0), cuts)
