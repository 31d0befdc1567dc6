"""Some of the rows of any predictions."""

import copy
import pickle

import numpy as np
import pandas as pd
import pytest
from scipy import special, stats

import calibrant as cal
from calibrant.data.predictions import Binary

N = 40
RNG = np.random.default_rng(0)
Y, P, MEAN, STD, W = RNG.integers(0, 2, N), RNG.random(N), RNG.normal(size=N), RNG.random(N) + 0.5, RNG.random(N) + 0.1
VECTORS, GROUP = RNG.dirichlet([1, 1, 1], N), RNG.integers(0, 5, N)
ROWS = RNG.integers(0, N, 60)  # with repeats


def made(kind, rows=slice(None)):
    y, p, mean, std, w, g = Y[rows], P[rows], MEAN[rows], STD[rows], W[rows], GROUP[rows]
    more = {"weight": w, "group": g}
    return {
        "Binary": lambda: cal.Binary(y, p, **more),
        "Multiclass": lambda: cal.Multiclass(y, VECTORS[rows], **more),
        "Gaussian": lambda: cal.Gaussian(mean**2, mean, std, **more),
        "Distribution": lambda: cal.Distribution(mean**2, stats.t(5, loc=mean, scale=std), **more),
        "one Distribution": lambda: cal.Distribution(mean**2, stats.norm(0.2, 1.5), **more),
        "Quantiles": lambda: cal.Quantiles(mean, [0.1, 0.5], np.stack([mean, mean + std], axis=1), **more),
        "Samples": lambda: cal.Samples(mean, np.stack([mean, mean + std, mean - 2 * std], axis=1), **more),
    }[kind]()


def quantiles_and_ranks(data):
    """What every metric of a `Distribution` is made of, without the quadrature that its CRPS needs."""
    return data.quantile(0.3).sum() + data.pit()[0].sum() + data.std.sum()


MEASURES = {
    "Binary": cal.ece,
    "Multiclass": cal.brier,
    "Quantiles": cal.pinball,
    "Distribution": quantiles_and_ranks,
    "one Distribution": quantiles_and_ranks,
}
KINDS = ["Binary", "Multiclass", "Gaussian", "Distribution", "one Distribution", "Quantiles", "Samples"]


@pytest.mark.parametrize("kind", KINDS)
def test_taken_rows_are_those_that_were_given(kind):
    taken, given = made(kind).take(ROWS), made(kind, ROWS)
    assert len(taken) == len(ROWS)
    np.testing.assert_array_equal(taken.weight, given.weight)
    np.testing.assert_array_equal(taken.group, given.group)
    measure = MEASURES.get(kind, cal.crps)
    assert float(measure(taken)) == pytest.approx(float(measure(given)), abs=1e-14)


@pytest.mark.parametrize("kind", KINDS)
def test_rows_are_taken_by_mask_too(kind):
    data, mask = made(kind), P > 0.5
    np.testing.assert_array_equal(data.take(mask).y_true, data.take(np.flatnonzero(mask)).y_true)


def test_rows_of_a_distribution_with_several_outputs():
    y = np.stack([MEAN, MEAN + 1], axis=1)
    data = cal.Distribution(y, stats.norm(0.0, STD[:, None]))
    given = cal.Distribution(y[ROWS], stats.norm(0.0, STD[ROWS, None]))
    np.testing.assert_allclose(data.take(ROWS).pit()[0], given.pit()[0])
    np.testing.assert_allclose(data.take(ROWS).quantile(0.2), given.quantile(0.2))
    np.testing.assert_allclose(data.take(ROWS).std, given.std)


@pytest.mark.parametrize("scenario", ["case-control", "single-sample"])
@pytest.mark.parametrize("weight", [None, W])
def test_rows_of_positive_unlabeled_data_are_numbered_as_their_weights(scenario, weight):
    data = cal.PositiveUnlabeled(P[:15], P[15:], prior=0.4, scenario=scenario, weight=weight)
    taken = data.take(ROWS)
    first, rest = ROWS[ROWS < 15], ROWS[ROWS >= 15]
    order = np.concatenate([first, rest])
    weights = None if weight is None else weight[order]
    given = cal.PositiveUnlabeled(P[first], P[rest], prior=0.4, scenario=scenario, weight=weights)
    assert float(cal.brier(taken)) == pytest.approx(float(cal.brier(given)), abs=1e-14)


def test_a_known_label_frequency_is_kept_and_the_prior_follows():
    data = cal.PositiveUnlabeled(P[:10], P[10:], label_frequency=0.5, scenario="single-sample")
    assert (data.prior, data.take(np.arange(5, N)).prior) == (pytest.approx(0.5), pytest.approx(5 / 35 / 0.5))
    with pytest.raises(cal.InvalidPredictions, match="got 0 and 30"):
        data.take(np.arange(10, N))


def test_groups_of_positive_unlabeled_rows_need_a_prior_each():
    data = cal.PositiveUnlabeled(P[:10], P[10:], prior=0.4)
    with pytest.raises(cal.InvalidPredictions, match="its own prior"):
        cal.by_group(cal.ece, data, by=GROUP)


def test_log_odds_are_probabilities_given_otherwise():
    odds = np.array([-800.0, -1.5, 0.0, 0.3, 40.0])
    y = [0, 1, 0, 1, 1]
    data = cal.Binary(y, logits=odds, weight=np.arange(1, 6), positive=1)
    np.testing.assert_allclose(data.y_prob, special.expit(odds), rtol=1e-15)
    assert cal.Binary(y, logits=odds.astype(np.float32)).y_prob.dtype == np.float32
    for given in ({}, {"y_prob": data.y_prob, "logits": odds}):
        with pytest.raises(cal.InvalidPredictions, match=r"Give either y_prob, .* or logits="):
            cal.Binary(y, **given)
    with pytest.raises(cal.InvalidPredictions, match=r"logits must be finite, but 1 of 5 rows"):
        cal.Binary(y, logits=[*odds[:4], np.inf])
    with pytest.raises(cal.InvalidPredictions, match=r"must lie in \[0, 1\].*pass Binary\(y_true, logits="):
        cal.Binary(y, odds)
    with pytest.raises(cal.InvalidPredictions, match="y_true and logits have different pandas indexes"):
        cal.Binary(pd.Series(y), logits=pd.Series(odds)[::-1])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("copied", [copy.deepcopy, lambda data: pickle.loads(pickle.dumps(data)), copy.copy])
def test_copies_and_pickles_are_read_only_too(kind, copied):
    data = made(kind)
    again = copied(data)
    columns = {name: values for name, values in vars(again).items() if isinstance(values, np.ndarray)}
    assert len(columns) >= 3
    assert [name for name, values in columns.items() if values.flags.writeable] == []
    assert len(again) == len(data)
    for name, values in columns.items():
        np.testing.assert_array_equal(values, getattr(data, name))


def test_a_copy_of_borrowed_columns_borrows_them():
    data = Binary.borrowing(Y, P)
    assert copy.copy(data).y_prob is P


def test_confidence_is_binary_under_other_names():
    data = cal.Confidence(["C", "I", "C"], [0.9, 0.2, 0.5], positive="C", group=["q1", "q2", "q2"])
    assert repr(data) == "<Confidence, n=3, with group>"
    np.testing.assert_array_equal(data.correct, [1, 0, 1])
    np.testing.assert_array_equal(data.confidence, data.y_prob)
    assert isinstance(data, Binary)
    for other in (data.take(np.array([0, 2])), data.sorted_once(), copy.copy(data), pickle.loads(pickle.dumps(data))):
        assert type(other) is cal.Confidence
    assert type(cal.Multiclass([0, 1], [[0.6, 0.4], [0.3, 0.7]]).top_label()) is cal.Confidence
    assert type(cal.Multiclass([0, 1], [[0.6, 0.4], [0.3, 0.7]]).one_vs_rest()[1]) is Binary


@pytest.mark.parametrize(
    ("correct", "confidence", "message"),
    [
        ([1, 0, 1], [90, 20, 50], r"^confidence must lie in \[0, 1\], but 3 of 3 rows .*divide them by 100"),
        ([1, 0, 1], [-0.1, -2.0, -0.5], r"^confidence must lie .*log-probabilities: numpy\.exp"),
        ([1, 0, 2], [0.9, 0.2, 0.5], "^correct "),
        ([1, 0], [0.9, 0.2, 0.5], "correct"),
        (pd.Series([1, 0]), pd.Series([0.9, 0.2])[::-1], "correct and confidence have different pandas indexes"),
    ],
)
def test_messages_name_correct_and_confidence(correct, confidence, message):
    with pytest.raises(cal.InvalidPredictions, match=message):
        cal.Confidence(correct, confidence)
