"""Predictions and tables as masses on nodes: shares, residuals, and the same from rows and from their table."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import calibrant as cal
from calibrant.estimators.linear_binning import SIZE, linearly_binned
from calibrant.numerics.rows import Rows
from calibrant.table import Distinct, HybridGrid

RNG = np.random.default_rng(0)
P = RNG.beta(0.5, 0.5, 300).round(3)
Y = RNG.random(300) < P
WEIGHT = RNG.exponential(size=300)
LABELLED = cal.Binary(Y, P)
WEIGHTED = cal.Binary(Y, P, weight=WEIGHT)
CASE_CONTROL = cal.PositiveUnlabeled(P[Y], P, prior=0.3)
SINGLE_SAMPLE = cal.PositiveUnlabeled.from_labels(
    Y & (RNG.random(300) < 0.6), P, scenario="single-sample", label_frequency=0.6, weight=WEIGHT
)
ALL = [LABELLED, WEIGHTED, CASE_CONTROL, SINGLE_SAMPLE]
NAMES = ["labelled", "weighted", "case-control", "single-sample"]


def nodes_by_hand(scores, weights):
    """Each weight shared between the nodes around its score, in proportion to nearness."""
    masses = np.zeros(SIZE + 1)
    for score, weight in zip(scores, weights, strict=True):
        left = int(np.floor(score * SIZE))
        beyond = score * SIZE - left
        masses[left] += weight * (1 - beyond)
        if beyond:
            masses[left + 1] += weight * beyond
    return masses


@pytest.mark.parametrize("data", [LABELLED, WEIGHTED], ids=NAMES[:2])
def test_shares_of_labelled_rows_by_hand(data):
    weight = np.ones(300) if data.weight is None else WEIGHT
    nodes = linearly_binned(data, None, needed_by="this")
    np.testing.assert_allclose(nodes.population, nodes_by_hand(P, weight) / weight.sum(), atol=1e-14)
    np.testing.assert_allclose(nodes.positives, nodes_by_hand(P, weight * Y) / weight.sum(), atol=1e-14)
    assert nodes.n == 300
    assert nodes.effective_n == pytest.approx(weight.sum() ** 2 / (weight**2).sum())


def test_labelled_positives_have_the_share_of_the_prior():
    nodes = linearly_binned(CASE_CONTROL, None, needed_by="this")
    np.testing.assert_allclose(nodes.population, nodes_by_hand(P, np.ones(300)) / 300, atol=1e-14)
    np.testing.assert_allclose(nodes.positives, 0.3 * nodes_by_hand(P[Y], np.ones(Y.sum())) / Y.sum(), atol=1e-14)
    assert nodes.n == 300 + Y.sum()
    assert nodes.effective_n == 300


def test_labels_of_a_single_sample_are_divided_by_their_frequency():
    nodes = linearly_binned(SINGLE_SAMPLE, None, needed_by="this")
    positive, weight = SINGLE_SAMPLE.positive, SINGLE_SAMPLE.positive_weight
    np.testing.assert_allclose(nodes.positives, nodes_by_hand(positive, weight / 0.6) / WEIGHT.sum(), atol=1e-14)
    assert nodes.population.sum() == pytest.approx(1)
    assert nodes.n == 300


@pytest.mark.parametrize("data", ALL, ids=NAMES)
def test_the_exact_table_has_the_nodes_of_its_rows(data):
    rows, cells = (linearly_binned(some, None, needed_by="this") for some in (data, cal.BinTable.of(data, Distinct())))
    np.testing.assert_allclose(cells.population, rows.population, atol=1e-13)
    np.testing.assert_allclose(cells.positives, rows.positives, atol=1e-13)
    assert cells.effective_n == pytest.approx(rows.effective_n)


@pytest.mark.parametrize("data", ALL[:3], ids=NAMES[:3])
def test_the_exact_table_has_as_many_rows(data):
    assert linearly_binned(cal.BinTable.of(data, Distinct()), None, needed_by="this").n == len(data)


@pytest.mark.parametrize("data", ALL, ids=NAMES)
def test_a_grid_keeps_totals_and_mean_scores_of_either_outcome(data):
    rows, cells = (
        linearly_binned(some, None, needed_by="this") for some in (data, cal.BinTable.of(data, HybridGrid(16)))
    )
    for name in ("population", "positives"):
        one, other = getattr(rows, name), getattr(cells, name)
        assert other.sum() == pytest.approx(one.sum(), abs=1e-12)
        assert other @ cells.position == pytest.approx(one @ rows.position, abs=1e-12)
    assert (cells.population >= -1e-15).all()
    assert (cells.positives >= -1e-15).all()


@settings(max_examples=15, deadline=None)
@given(st.lists(st.tuples(st.floats(0, 1), st.booleans()), min_size=1, max_size=20), st.randoms(use_true_random=False))
def test_the_residual_keeps_its_total_and_forgets_the_order_of_rows(rows, random):
    p, y = (np.array(column, dtype=float) for column in zip(*rows, strict=True))
    nodes = linearly_binned(y, p, needed_by="this")
    assert nodes.residual.sum() == pytest.approx(np.mean(y - p), abs=1e-12)
    assert nodes.residual @ nodes.position == pytest.approx(np.mean((y - p) * p), abs=1 / SIZE**2)
    p, y = (np.array(column, dtype=float) for column in zip(*random.sample(rows, len(rows)), strict=True))
    np.testing.assert_allclose(linearly_binned(y, p, needed_by="this").residual, nodes.residual, atol=1e-14)


def test_nodes_are_equally_spaced_and_a_score_on_one_goes_there_whole():
    nodes = linearly_binned([1, 0, 1], [0.0, 0.5, 1.0], needed_by="this")
    np.testing.assert_array_equal(nodes.position, np.arange(SIZE + 1) / SIZE)
    assert np.flatnonzero(nodes.population).tolist() == [0, SIZE // 2, SIZE]
    np.testing.assert_allclose(nodes.residual[[0, SIZE // 2, SIZE]], [1 / 3, -1 / 6, 0])


def test_what_has_no_probabilities_is_refused():
    with pytest.raises(ValueError, match=r"^this needs probabilities, got Gaussian predictions"):
        linearly_binned(cal.Gaussian([0.0, 1.0], [0.0, 0.0], [0.2, 0.4]), None, needed_by="this")
    with pytest.raises(ValueError, match=r"^this needs a fine table"):
        linearly_binned(cal.BinTable.of(LABELLED, cal.EqualWidth(4)), None, needed_by="this")
    spreads = cal.BinTable.of(cal.Gaussian([0.0, 1.0], [0.0, 0.0], [0.2, 0.4]), Distinct())
    with pytest.raises(ValueError, match=r"^this needs probabilities and outcomes"):
        linearly_binned(spreads, None, needed_by="this")


@pytest.mark.parametrize("key", [[-0.2, 0.5], [0.5, 1.2]])
def test_cells_outside_the_unit_interval_are_refused(key):
    key = np.array(key)
    table = cal.BinTable.of(Rows(key, key, np.array([0, 1], np.int8), np.ones(2)), Distinct())
    with pytest.raises(ValueError, match=r"must lie in \[0, 1\]"):
        linearly_binned(table, None, needed_by="this")
