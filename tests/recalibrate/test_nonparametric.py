"""Isotonic and centred isotonic maps, and Venn-Abers on top of them."""

import numpy as np
import pytest
from hypothesis import given, settings
from sklearn.isotonic import IsotonicRegression

import calibrant as cal
from calibrant.recalibrate import CentredIsotonic, Isotonic, VennAbers
from tests.recalibrate.worlds import isotonic_peer, tied_rows


@pytest.mark.no_cover
@given(tied_rows)
@settings(max_examples=100, deadline=None)
def test_isotonic_is_scikit_learns_with_ties_pooled(data):
    p, y = np.array(data[0]) / 15, np.array(data[1])
    new = np.linspace(0, 1, 61)
    q = Isotonic(allow_certainty=True).fit(p, y).predict_proba(new)[:, 1]
    np.testing.assert_allclose(q, isotonic_peer(p, y, new), atol=1e-12)
    weight = np.arange(1, len(p) + 1)
    q = Isotonic(allow_certainty=True).fit(p, y, sample_weight=weight).predict_proba(new)[:, 1]
    np.testing.assert_allclose(q, isotonic_peer(p, y, new, weight), atol=1e-12)


def test_isotonic_is_exactly_scikit_learns_where_no_scores_are_tied():
    rng = np.random.default_rng(0)
    p = rng.random(5000)
    y = rng.random(5000) < p**2
    new = rng.random(1000)
    expected = IsotonicRegression(out_of_bounds="clip").fit(p, y).predict(new)
    np.testing.assert_allclose(
        Isotonic(allow_certainty=True).fit(p, y).predict_proba(new)[:, 1], expected, rtol=1e-12, atol=1e-14
    )
    inside = (new > 0.2) & (new < 0.8)
    np.testing.assert_allclose(Isotonic().fit(p, y).predict_proba(new)[inside, 1], expected[inside], rtol=1e-12)


@pytest.mark.no_cover
@given(tied_rows)
@settings(max_examples=60, deadline=None)
def test_blocks_of_one_outcome_move_inside_and_the_map_still_rises(data):
    p, y = np.array(data[0]) / 15, np.array(data[1])
    for recalibrator in (Isotonic(), CentredIsotonic()):
        values = recalibrator.fit(p, y).values_
        assert (values > 0).all()
        assert (values < 1).all()
        assert (np.diff(values) >= 0).all()


def test_the_first_block_without_positives_gets_laplaces_rule():
    p = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7]
    y = [0, 0, 0, 1, 0, 1, 1]
    values = Isotonic().fit(p, y).values_
    assert values[0] == pytest.approx(1 / (3 + 2))
    assert values[-1] == pytest.approx(1 - 1 / (2 + 2))
    assert Isotonic().fit([0.1, 0.2, 0.3], [0, 0, 0]).values_.tolist() == pytest.approx([0.2, 0.2])


def test_centred_isotonic_goes_through_the_centres_of_the_blocks():
    p = np.array([0.1, 0.2, 0.3, 0.4, 0.5, 0.6])
    y = np.array([0, 1, 0, 0, 1, 1])
    centred = CentredIsotonic(allow_certainty=True).fit(p, y)
    np.testing.assert_allclose(centred.knots_, [0, 0.1, 0.3, 0.55, 1])
    np.testing.assert_allclose(centred.values_, [0, 0, 1 / 3, 1, 1])


@pytest.mark.no_cover
def test_isotonic_of_a_grid_table_is_close_to_that_of_the_rows():
    rng = np.random.default_rng(0)
    p = rng.random(20_000)
    y = rng.random(20_000) < p**2
    table = cal.BinTable.of(cal.Binary(y, p), cal.table.HybridGrid())
    new = np.linspace(0.05, 0.95, 50)
    for recalibrator in (Isotonic(), CentredIsotonic(), VennAbers()):
        by_table, by_rows = recalibrator.fit(table).predict_proba(new), recalibrator.fit(p, y).predict_proba(new)
        assert np.abs(by_table - by_rows).mean() < 2e-3


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
