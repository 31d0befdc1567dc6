"""What the columns of a table mean, for labelled rows, spreads and positive-unlabeled rows."""

import warnings
from dataclasses import FrozenInstanceError

import numpy as np
import pytest
from scipy.stats import norm

import calibrant as cal
from calibrant.numerics.rows import Mass
from calibrant.pu import Gaps, largest_prior
from calibrant.table.task import Labelled, Spread, Unlabeled, task_of
from tests.pu.worlds import LESS, drawn, everybody

P = [0.1, 0.2, 0.7, 0.8, 0.9]
Y = [0, 1, 0, 1, 1]
GAUSSIAN = cal.Gaussian([0.3, -1.2], mean=[0.0, 0.0], std=[0.5, 1.0])


@pytest.mark.parametrize(
    ("data", "task"),
    [
        (cal.Binary(Y, P), Labelled()),
        (cal.Quantiles([1.0, 3.0], [0.25, 0.75], [[1, 2], [1, 2]]), Labelled()),
        (GAUSSIAN, Spread()),
        (cal.Samples([2.0, 1.0], [[0.0, 2.0], [1.0, 3.0]]), Spread()),
        (cal.PositiveUnlabeled([0.8], P, prior=0.4), Unlabeled(0.4)),
        (cal.PositiveUnlabeled([0.8], P, prior=0.4, scenario="single-sample"), Unlabeled(0.4, None, nested=True)),
        (
            cal.PositiveUnlabeled([0.8], P, label_frequency=0.5, scenario="single-sample"),
            Unlabeled(None, 0.5, nested=True),
        ),
    ],
    ids=lambda value: type(value).__name__,
)
def test_the_task_of_predictions_and_of_their_table(data, task):
    assert task_of(data) == task
    table = cal.BinTable.of(data, cal.table.Distinct())
    assert table.task == task
    assert task_of(table) is table.task


def test_tasks_have_names_and_only_differences_have_rounding():
    tasks = [Labelled(), Spread(), Unlabeled(0.5)]
    assert [task.name for task in tasks] == ["labelled", "spread", "positive-unlabeled"]
    assert [task.rounding for task in tasks] == [0.0, 0.0, 1e-12]
    assert Labelled() != Spread()
    for task in tasks[:2]:
        with pytest.raises(FrozenInstanceError):
            task.name = "other"


@pytest.mark.parametrize("task", [Labelled(), Spread()])
def test_outcomes_are_taken_as_they_are(task):
    table = cal.BinTable.of(cal.Binary(Y, P), cal.EqualMass(2))
    assert task.observed_scale(3.0, 7.0) == 1
    assert task.mass_variance(Mass(6.0, 12.0), Mass(1.0, 1.0)) == pytest.approx(1 / 3)
    assert task.most_bins(table) == 5
    assert task.of_part(table, table.take([0])) is task
    np.testing.assert_allclose(task.mean_score(table), [0.15, 0.8])
    np.testing.assert_allclose(task.shared_mass(table), [0.2, 1.7])
    assert task.warn(table) is None


@pytest.mark.parametrize("weight", [None, [1.0, 2.0, 2.0, 1.0, 3.0, 5.0]])
def test_the_variance_of_a_gap_is_that_of_the_mean_outcome_times_the_squared_share(weight):
    p, y = np.array([*P, 0.3]), np.array([*Y, 1])
    table = cal.BinTable.of(cal.Binary(y, p, weight=weight), cal.Edges([0, 0.5, 1]))
    w = np.ones(6) if weight is None else np.array(weight)
    for b, inside in enumerate((p <= 0.5, p > 0.5)):
        mean = np.average(y[inside], weights=w[inside])
        rows = w[inside].sum() ** 2 / (w[inside] ** 2).sum()
        spread = np.average((y[inside] - mean) ** 2, weights=w[inside])
        expected = spread / (rows - 1) * (w[inside].sum() / w.sum()) ** 2
        assert table.task.gap_variance(table)[b] == pytest.approx(expected, rel=1e-12)
        if weight is None:
            assert expected == pytest.approx(np.var(y[inside], ddof=1) / 3 / 4)


def test_one_row_or_none_does_not_tell_the_variance():
    table = cal.BinTable.of(cal.Binary([0, 1, 1], [0.1, 0.9, 0.8]), cal.EqualWidth(3))
    assert np.isnan(table.task.gap_variance(table)).tolist() == [True, True, False]
    table = cal.BinTable.of(GAUSSIAN, cal.table.Distinct())
    assert np.isnan(table.task.gap_variance(table)).all()


EDGES = np.array([0, 0.3, 0.5, 0.8, 1])


def bins_of(p):
    """An indicator column for each bin."""
    return (np.searchsorted(EDGES[1:-1], p, side="left")[:, None] == np.arange(4)).astype(float)


def two_samples(seed=0, n_positive=60, n_unlabeled=300):
    rng = np.random.default_rng(seed)
    return rng.beta(3, 2, n_positive), rng.random(n_unlabeled)


def table_of(data):
    return cal.BinTable.of(data, cal.Edges(EDGES))


def test_positive_unlabeled_rows_weigh_the_unlabeled_and_scale_the_positives_to_the_prior():
    data = cal.PositiveUnlabeled([0.9, 0.8], [0.1, 0.2, 0.8, 0.9], prior=0.5)
    table = cal.BinTable.of(data, cal.EqualWidth(2))
    np.testing.assert_array_equal(table.weight, [2, 2])
    np.testing.assert_allclose(table.observed_mean, [0.0, 1.0])
    np.testing.assert_allclose(table.predicted_mean, [0.15, 0.85])
    twice = table + table
    np.testing.assert_allclose(twice.observed_mean, table.observed_mean)


@pytest.mark.no_cover
def test_variances_are_those_of_repeated_draws():
    rng = np.random.default_rng(5)
    gaps = [Gaps.of(cal.BinTable.of(drawn(rng, 200, 2000, LESS), cal.EqualWidth(5))) for _ in range(800)]
    seen = np.cov([g.gap for g in gaps], rowvar=False)
    expected = np.mean([g.covariance() for g in gaps], axis=0)
    np.testing.assert_allclose(seen, expected, atol=0.2 * np.abs(expected).max())
    np.testing.assert_allclose(np.diag(seen), np.diag(expected), rtol=0.25)


def test_gaps_of_two_samples_and_their_covariance_row_by_row():
    positive, unlabeled = two_samples()
    gaps = Gaps.of(table_of(cal.PositiveUnlabeled(positive, unlabeled, prior=0.4)))
    first, second = 0.4 * bins_of(positive), unlabeled[:, None] * bins_of(unlabeled)
    np.testing.assert_allclose(gaps.gap, first.mean(axis=0) - second.mean(axis=0), atol=1e-14)
    expected = np.cov(first, rowvar=False) / len(positive) + np.cov(second, rowvar=False) / len(unlabeled)
    np.testing.assert_allclose(gaps.covariance(), expected, rtol=1e-9, atol=1e-15)
    np.testing.assert_allclose(gaps.variance, np.diag(expected), rtol=1e-9)
    np.testing.assert_allclose(gaps.rate, 0.4 * bins_of(positive).mean(axis=0) / bins_of(unlabeled).mean(axis=0))
    assert (gaps.prior, gaps.frequency, gaps.known_frequency) == (pytest.approx(0.4), None, False)
    assert (gaps.n_positive, gaps.n_unlabeled) == (60, 300)


@pytest.mark.parametrize("known", ["label_frequency", "prior"])
def test_the_covariance_of_a_single_sample_is_that_of_its_terms(known):
    rng = np.random.default_rng(1)
    p, y = everybody(rng, 400, LESS)
    s = y & (rng.random(400) < 0.3)
    value = 0.3 if known == "label_frequency" else 0.5
    data = cal.PositiveUnlabeled.from_labels(s, p, scenario="single-sample", **{known: value})
    gaps = Gaps.of(table_of(data))
    inside, label, score = bins_of(p), s[:, None] * 1.0, p[:, None]
    frequency = 0.3 if known == "label_frequency" else s.mean() / 0.5
    assert gaps.frequency == pytest.approx(frequency)
    np.testing.assert_allclose(gaps.gap, ((label / frequency - score) * inside).mean(axis=0), atol=1e-14)
    share = 0.0 if known == "label_frequency" else inside[s].mean(axis=0)  # the noise of an estimated frequency
    terms = label / frequency * (inside - share) - score * inside
    np.testing.assert_allclose(gaps.covariance(), np.cov(terms, rowvar=False) / 400, rtol=1e-9, atol=1e-15)


def test_the_null_covariance_spreads_the_positives_as_the_predictions_say():
    positive, unlabeled = two_samples()
    gaps = Gaps.of(table_of(cal.PositiveUnlabeled(positive, unlabeled, prior=0.4)))
    null = (unlabeled[:, None] * bins_of(unlabeled)).sum(axis=0) / unlabeled.sum()
    rows = np.cov(unlabeled[:, None] * bins_of(unlabeled), rowvar=False) / 300
    expected = 0.4**2 * (np.diag(null) - np.outer(null, null)) / 59 + rows
    np.testing.assert_allclose(gaps.null_covariance(), expected, rtol=1e-9, atol=1e-15)


@pytest.mark.parametrize("known", [{"prior": 0.08}, {"prior": 0.9}, {"label_frequency": 0.1}, {"label_frequency": 1.0}])
def test_no_combination_of_gaps_has_a_negative_variance_however_wrong_the_model(known):
    rng = np.random.default_rng(0)
    score = rng.beta(2, 6, 3000)
    labelled = rng.random(3000) < 0.3 * score
    gaps = Gaps.of(table_of(cal.PositiveUnlabeled.from_labels(labelled, score, scenario="single-sample", **known)))
    extreme = np.eye(len(gaps.share))[-1]  # all positives in the last bin: more than it has rows
    for covariance in (gaps.covariance(), gaps.null_covariance(), gaps.covariance(extreme)):
        assert np.linalg.eigvalsh(covariance)[0] >= -1e-15
        assert np.diag(covariance).min() >= 0


def test_weights_of_two_units_change_nothing():
    positive, unlabeled = two_samples()
    weight = np.random.default_rng(2).exponential(size=360)
    plain, scaled = (
        Gaps.of(table_of(cal.PositiveUnlabeled(positive, unlabeled, prior=0.4, weight=unit * weight)))
        for unit in (1.0, 7.3)
    )
    np.testing.assert_allclose(scaled.gap, plain.gap, atol=1e-14)
    np.testing.assert_allclose(scaled.covariance(), plain.covariance(), rtol=1e-9, atol=1e-15)
    assert plain.n_positive == pytest.approx(weight[:60].sum() ** 2 / (weight[:60] ** 2).sum())
    assert plain.n_unlabeled == pytest.approx(weight[60:].sum() ** 2 / (weight[60:] ** 2).sum())


def test_bins_without_unlabeled_rows_have_no_rate():
    gaps = Gaps.of(table_of(cal.PositiveUnlabeled([0.9, 0.2], [0.1, 0.2, 0.4], prior=0.3)))
    np.testing.assert_allclose(gaps.rate, [0.15 / (2 / 3), 0, np.nan, np.nan])


def test_the_largest_prior_is_the_smallest_upper_end_over_the_bins():
    positive, unlabeled = two_samples(3)
    table = table_of(cal.PositiveUnlabeled(positive, unlabeled, prior=0.2))
    ends = []
    for b in range(4):
        hits, rows = bins_of(positive)[:, b].sum(), bins_of(unlabeled)[:, b].sum()
        p, u = (hits + 0.5) / 61, (rows + 0.5) / 301
        error = np.sqrt((1 - p) / (60 * p) + (1 - u) / (300 * u))
        ends.append(u / p * np.exp(norm.ppf(1 - 0.05 / 4) * error))
    assert largest_prior(table, level=0.95) == pytest.approx(min(1.0, *ends), rel=1e-12)
    assert largest_prior(table) > largest_prior(table, level=0.95)
    rng = np.random.default_rng(0)
    many = table_of(cal.PositiveUnlabeled(rng.beta(2, 1, 1000), rng.random(10_000), prior=0.4))
    assert largest_prior(many, level=0.999) == largest_prior(many) < 1
    few = table_of(cal.PositiveUnlabeled([0.9], [0.1, 0.9], prior=0.2))
    assert largest_prior(few) == 1.0


def test_a_prior_larger_than_the_data_allow_is_called_out_with_the_largest_consistent_one():
    p, y = everybody(np.random.default_rng(0), 5000, LESS)
    with pytest.warns(UserWarning, match=r"The largest prior consistent with the bins is 0\.6"):
        cal.ece(cal.PositiveUnlabeled(p[y], p, prior=0.9))
    cal.ece(cal.PositiveUnlabeled(p[y], p, prior=0.5))  # warnings are errors here


def test_a_rate_above_1_within_noise_is_not_called_impossible():
    table = table_of(cal.PositiveUnlabeled([0.9, 0.9], [0.1, 0.2, 0.9], prior=0.5))
    assert (Gaps.of(table).rate > 1).any()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        table.task.warn(table)


def test_the_observed_column_is_scaled_to_the_prior_or_by_the_label_frequency():
    assert Unlabeled(0.4).observed_scale(5.0, 50.0) == pytest.approx(0.4 * 50 / 5)
    assert Unlabeled(0.4).observed_scale(0.0, 50.0) == 1
    assert Unlabeled(None, 0.25, nested=True).observed_scale(5.0, 50.0) == 4


def test_the_variance_of_a_single_bin():
    population, positives = Mass(100.0, 200.0), Mass(10.0, 10.0)  # 50 and 10 effective rows
    assert Unlabeled(0.4).mass_variance(population, positives) == pytest.approx(0.4**2 / 10 + 1 / 50)
    assert Unlabeled(None, 0.25, nested=True).mass_variance(population, positives) == pytest.approx(16 / 50)


def test_what_estimators_ask_of_a_table():
    table = table_of(cal.PositiveUnlabeled([0.9, 0.2], [0.1, 0.2, 0.4], prior=0.3))
    mean = table.task.mean_score(table.take(table.count > 0))
    np.testing.assert_allclose(mean, [0.5 / 3, 0.4, 0.9])
    np.testing.assert_array_equal(table.task.shared_mass(table), np.zeros(4))
    assert table.task.most_bins(table) == 2
    np.testing.assert_allclose(table.task.gap_variance(table), Gaps.of(table).variance)


def test_some_of_the_bins_have_their_own_prior():
    data = cal.PositiveUnlabeled([0.9, 0.2, 0.6], [0.1, 0.2, 0.4, 0.7, 0.9], prior=0.3)
    table = table_of(data)
    part = table.take([0, 1])  # a third of the positives, three fifths of the rows
    assert part.task.prior == pytest.approx(0.3 / 3 / 0.6)
    np.testing.assert_allclose(part.observed_mean, table.observed_mean[:2])
    assert table.task.of_part(table, table.take([])) is table.task
    single = Unlabeled(None, 0.5, nested=True)
    assert single.of_part(table, part) is single


@pytest.mark.parametrize("given", [(None, None), (0.5, 0.5)])
def test_either_the_prior_or_the_label_frequency_is_known(given):
    with pytest.raises(ValueError, match="needs either the prior or the label_frequency"):
        Unlabeled(*given)
    with pytest.raises(FrozenInstanceError):
        Unlabeled(0.5).prior = 0.4


def test_gaps_need_positive_unlabeled_data():
    with pytest.raises(ValueError, match="needs positive-unlabeled data"):
        Gaps.of(cal.BinTable.of(cal.Binary([0, 1], [0.2, 0.7]), cal.EqualWidth(2)))


def test_a_table_without_squares_says_so():
    table = cal.ece(drawn(np.random.default_rng(0), 50, 500, LESS), bins=cal.EqualWidth(5)).bins
    with pytest.raises(ValueError, match="without squares"):
        cal.calibration_test(table)


def test_joined_bins_have_the_gaps_of_the_larger_bins():
    data = drawn(np.random.default_rng(0), 50, 500, LESS)
    fine, coarse = (Gaps.of(cal.BinTable.of(data, cal.EqualWidth(size))) for size in (4, 2))
    joined = fine.joined(np.array([0, 0, 1, 1]), 2)
    np.testing.assert_allclose(joined.gap, coarse.gap)
    np.testing.assert_allclose(joined.covariance(), coarse.covariance())
