"""Scores as maps read them, and cells of outcomes."""

import numpy as np
import pytest
from scipy.special import expit, log_softmax, logit, logsumexp, softmax

import calibrant as cal
from calibrant.data.validation import InvalidPredictions
from calibrant.recalibrate.inputs import LARGEST_LOGIT, BinomialCells, Scores, pooled_log_odds

P = np.array([0.1, 0.5, 0.93])
WIDE = np.array([[0.2, 0.5, 0.3], [0.7, 0.1, 0.2]])


def test_one_column_two_columns_and_log_odds_are_the_same_scores():
    one = Scores.of(P, input="probabilities")
    two = Scores.of(np.column_stack([1 - P, P]), input="probabilities")
    odds = Scores.of(logit(P), input="logits")
    pair = Scores.of(np.column_stack([np.full(3, 5.0), 5 + logit(P)]), input="logits")
    for scores in (one, two, odds, pair):
        assert scores.classes == 2
        np.testing.assert_allclose(scores.probability, P, rtol=1e-14)
        np.testing.assert_allclose(scores.log_odds, logit(P), rtol=1e-12)
        np.testing.assert_allclose(scores.probabilities, np.column_stack([1 - P, P]), rtol=1e-12)
    assert (one.columns, two.columns) == (1, 2)
    np.testing.assert_allclose(one.log_probabilities, np.log(np.column_stack([1 - P, P])))


def test_logits_keep_tails_that_probabilities_lose():
    far = Scores.of([40.0, 400.0], input="logits")
    np.testing.assert_array_equal(far.log_odds, [40.0, 400.0])
    np.testing.assert_allclose(far.probabilities[:, 0], expit([-40.0, -400.0]), rtol=1e-12)


def test_certainty_has_finite_logarithms():
    certain = Scores.of([0.0, 1.0], input="probabilities")
    assert np.isfinite(certain.log_odds).all()
    assert np.isfinite(certain.log_probabilities).all()
    huge = Scores.of([1e300, -1e300], input="logits")
    np.testing.assert_array_equal(huge.log_odds, [LARGEST_LOGIT, -LARGEST_LOGIT])


def test_several_classes():
    logits = np.array([[1.0, 2.0, -1.0], [0.0, 700.0, 0.0]])
    scores = Scores.of(logits, input="logits")
    np.testing.assert_allclose(scores.probabilities, softmax(logits, axis=1))
    np.testing.assert_array_equal(scores.log_probabilities, logits)
    rounded = Scores.of(np.float32(WIDE), input="probabilities")
    np.testing.assert_allclose(rounded.probabilities.sum(axis=1), 1, rtol=1e-15)
    np.testing.assert_array_equal(scores.take([1]).values, logits[[1]])


@pytest.mark.parametrize("k", [0, 1, 2])
def test_one_class_against_the_rest(k):
    by_probability = Scores.of(WIDE, input="probabilities").one_vs_rest(k)
    np.testing.assert_allclose(by_probability.probability, WIDE[:, k])
    z = np.log(WIDE) + 3
    by_logit = Scores.of(z, input="logits").one_vs_rest(k)
    expected = z[:, k] - logsumexp(np.delete(z, k, axis=1), axis=1)
    np.testing.assert_allclose(by_logit.log_odds, expected)
    np.testing.assert_allclose(expit(expected), np.exp(log_softmax(z, axis=1)[:, k]))


@pytest.mark.parametrize("values", [P, np.column_stack([1 - P, P])])
def test_either_of_two_classes_against_the_other(values):
    scores = Scores.of(values, input="probabilities")
    np.testing.assert_allclose(scores.one_vs_rest(1).probability, P)
    np.testing.assert_allclose(scores.one_vs_rest(0).probability, 1 - P)
    np.testing.assert_allclose(Scores(logit(P), logits=True).one_vs_rest(0).log_odds, -logit(P))


@pytest.mark.parametrize(
    ("values", "options", "message"),
    [
        ([0.2, 1.2], {}, r"scores must lie in \[0, 1\]"),
        ([[0.2, 0.2]], {}, "rows that sum to 1.*input='logits'"),
        ([0.2, np.nan], {}, "scores"),
        ([0.5], {"input": "odds"}, "input must be 'probabilities' or 'logits', got 'odds'"),
    ],
)
def test_what_is_refused(values, options, message):
    with pytest.raises(ValueError, match=message):
        Scores.of(values, **{"input": "probabilities", **options})


def test_sparse_scores_are_refused_and_rounding_is_clipped_when_asked():
    from scipy.sparse import csr_array

    with pytest.raises(InvalidPredictions, match="sparse"):
        Scores.of(csr_array([[0.5, 0.5]]), input="probabilities")
    assert Scores.of([1 + 1e-9], input="probabilities", clip=True).values == 1


def test_cells_of_rows_distinct_scores_and_a_table_hold_the_same_sums():
    p, y, w = np.array([0.3, 0.7, 0.3, 0.7, 0.7]), np.array([0, 1, 1, 1, 0]), np.array([1.0, 2.0, 3.0, 1.0, 1.0])
    scores = Scores.of(p, input="probabilities")
    rows = BinomialCells.of_rows(scores, y, w)
    assert (len(rows), rows.total, rows.rate) == (5, 8.0, 0.75)
    distinct = BinomialCells.of_distinct(scores, y, w)
    table = BinomialCells.of_table(cal.BinTable.of(cal.Binary(y, p, weight=w), cal.table.Distinct()))
    for cells, scale in ((distinct, 1), (table, 8 / 16)):  # weights of a table add up to the effective number of rows
        np.testing.assert_array_equal(cells.probability, [0.3, 0.7])
        np.testing.assert_allclose(cells.weight, [4.0 * scale, 4.0 * scale])
        np.testing.assert_allclose(cells.positive, [3.0 * scale, 3.0 * scale])
        np.testing.assert_allclose(cells.log_odds, logit([0.3, 0.7]))
    plain = BinomialCells.of_distinct(scores, y, None)
    np.testing.assert_array_equal(plain.weight, [2, 3])
    np.testing.assert_array_equal(plain.positive, [1, 2])


def test_empty_cells_of_a_table_are_left_out():
    table = cal.BinTable.of(cal.Binary([0, 1], [0.1, 0.9]), cal.EqualWidth(10))
    assert len(BinomialCells.of_table(table)) == 2


def test_pooled_log_odds_never_split_equal_values():
    rng = np.random.default_rng(0)
    x = np.round(rng.normal(size=300), 2)
    y = (rng.random(300) < 0.4).astype(float)
    values, place = np.unique(x, return_inverse=True)
    cells = (values, np.bincount(place).astype(float), np.bincount(place, y))
    for groups in (20, 1000):
        pooled = pooled_log_odds(x, np.ones(300), y, groups=groups)
        for one, other in zip(pooled, pooled_log_odds(*cells, groups=groups), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12)
        assert len(pooled[0]) <= groups
        assert pooled[1].sum() == 300
        assert pooled[2].sum() == y.sum()
