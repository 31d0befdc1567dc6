"""Judged data: what is read and refused, the recalibrated judge, rectified outcomes, and what to label next."""

import numpy as np
import pytest
from scipy.special import expit, logit

import calibrant as cal
from calibrant.data import judged
from calibrant.numerics.random_draws import generator

RNG = np.random.default_rng(7)
N = 400
P = RNG.beta(4, 2, N)
RIGHT = (RNG.random(N) < P).astype(float)
SCORE = np.where(RNG.random(N) < 0.9, RIGHT, 1 - RIGHT)
LABELLED = np.isin(np.arange(N), RNG.choice(N, 80, replace=False))
GOLD = np.where(LABELLED, RIGHT, np.nan)


def made(**more):
    return cal.Judged(**{"gold": GOLD, "p": P, "judge": SCORE, **more})


def test_missing_gold_may_be_none_nan_or_masked():
    objects = [None if np.isnan(g) else bool(g) for g in GOLD]
    masked = np.ma.array(RIGHT, mask=~LABELLED)
    for gold in (objects, masked, GOLD):
        data = made(gold=gold)
        assert data.known.sum() == 80
        assert np.array_equal(data.forecast, made().forecast)
    assert repr(made(group=np.arange(N) // 2)) == "<Judged, n=400, with group, 80 gold labels>"


def test_five_gold_labels_are_needed():
    gold = np.full(N, np.nan)
    gold[:4] = 1
    with pytest.raises(cal.InvalidPredictions, match=r"gold holds 4 labels, but at least 5 .*without_labels"):
        made(gold=gold)
    gold[4] = 0
    assert len(made(gold=gold).labelled()) == 5


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"gold": np.where(LABELLED, 0.5, np.nan)}, "gold must be 0, 1 or missing, but 80 of 400 rows"),
        ({"p": P * 2}, r"p must lie in \[0, 1\]"),
        ({"judge": SCORE[1:]}, "judge must have one value per row, or one column per judge"),
        ({"judge": np.where(LABELLED, "good", "bad")}, "judge must hold numbers, got"),
        ({"judge": np.where(LABELLED, np.inf, 0)}, "judge must be finite or missing"),
        ({"weight": np.zeros(N)}, "weight must be positive and finite where gold is known, but 80 of 400"),
        ({"weight": np.where(LABELLED, np.nan, 1)}, "weight must be positive and finite where gold is known"),
        ({"by": [np.arange(3)]}, "by"),
    ],
)
def test_bad_input_is_refused_with_the_rule(more, message):
    with pytest.raises(cal.InvalidPredictions, match=message):
        made(**more)


def test_pandas_columns_with_other_indexes_are_refused():
    pd = pytest.importorskip("pandas")
    with pytest.raises(cal.InvalidPredictions, match="different pandas indexes"):
        made(gold=pd.Series(GOLD), p=pd.Series(P, index=np.arange(N) + 1))


def test_weights_of_rows_without_a_label_are_ignored():
    weight = np.where(LABELLED, 2.0, np.nan)
    assert np.array_equal(made(weight=weight).forecast, made().forecast)
    assert made(weight=weight).label_weight[~LABELLED].max() == 0


def test_the_forecast_is_the_ridge_regression_written_out():
    """Ten folds of labels, a ridge of 0.3 on columns in units of their deviation, half a row of each outcome."""
    data, labelled = made(), np.flatnonzero(LABELLED)
    fold = generator(0, "folds of gold labels").permutation(80) % 10
    x = np.stack([SCORE, logit(np.clip(P, 1e-3, 1 - 1e-3))], axis=1)
    x = (x - x.mean(axis=0)) / x.std(axis=0)
    fits = []
    for k in range(10):
        rows = labelled[fold != k]
        a = np.vstack([np.column_stack([np.ones(len(rows)), x[rows]]), [1, 0, 0]])
        ones, zeros = np.append(RIGHT[rows], 0.5), np.append(1 - RIGHT[rows], 0.5)
        b = np.zeros(3)
        for _ in range(50):
            m = expit(a @ b)
            penalty = np.diag([0, 0.3, 0.3])
            hessian = (a * ((ones + zeros) * m * (1 - m))[:, None]).T @ a + penalty
            b = b + np.linalg.solve(hessian, a.T @ (ones - (ones + zeros) * m) - penalty @ b)
        fits.append(b)
    each = expit(np.column_stack([np.ones(N), x]) @ np.array(fits).T)
    constant = np.array([(RIGHT[labelled[fold != k]].sum() + 0.5) / ((fold != k).sum() + 1) for k in range(10)])
    m, base = each.mean(axis=1), np.full(N, constant.mean())
    m[labelled], base[labelled] = each[labelled, fold], constant[fold]
    moved, away = (m - base)[labelled], (RIGHT - base)[labelled]
    power = np.clip(moved @ away / (moved @ moved), 0, 1)
    assert data.forecast == pytest.approx(base + power * (m - base), abs=2e-4)


def test_the_rectified_mean_is_that_of_gold_when_all_rows_are_labelled():
    everything = made(gold=RIGHT)
    assert everything.rectified == pytest.approx(RIGHT)
    assert cal.accuracy(everything) == pytest.approx(RIGHT.mean())


def test_a_useless_judge_is_drawn_to_a_constant_and_an_inverted_one_is_as_good():
    noise = made(judge=np.random.default_rng(1).random(N), p=np.full(N, 0.6))
    assert noise.forecast.std() < 0.5 * made().forecast.std()
    assert made(judge=1 - SCORE).forecast == pytest.approx(made().forecast, abs=1e-9)
    assert made(judge=3 + 5 * SCORE).forecast == pytest.approx(made().forecast, abs=1e-9)


def test_scores_of_few_levels_have_a_coefficient_each():
    twelve, thirteen = (made(judge=np.arange(N) % k) for k in (12, 13))
    constant = np.zeros(N)
    p_alone = judged._features(made(judge=constant)).shape[1]
    assert p_alone == 1
    assert judged._features(twelve).shape[1] == p_alone + 11 + 1  # levels but the first, and the score
    assert judged._features(thirteen).shape[1] == p_alone + 4  # pieces of a curve of ranks
    unit = made(judge=(np.arange(N) % 13) / 13)
    assert judged._features(unit).shape[1] == p_alone + 4 + 1  # and the log odds of the score


def test_missing_scores_and_several_judges_are_columns():
    missing = np.where(np.arange(N) % 5 == 0, np.nan, SCORE)
    assert judged._features(made(judge=missing)).shape[1] == judged._features(made()).shape[1] + 1
    both = made(judge=np.column_stack([SCORE, missing]))
    assert both.scores.shape == (N, 2)
    assert np.isfinite(both.forecast).all()


def test_columns_of_by_may_come_as_array_list_mapping_or_frame():
    pd = pytest.importorskip("pandas")
    model, topic = np.where(np.arange(N) % 2, "a", "b"), np.arange(N) % 3
    one = made(by=model)
    assert list(one.by_names.values()) == [["a", "b"]]
    kinds = [[model, topic], {"m": model, "t": topic}, pd.DataFrame({"m": model, "t": topic})]
    assert [list(made(by=by).by_names) for by in kinds] == [["by[0]", "by[1]"], ["m", "t"], ["m", "t"]]
    assert judged._features(made(by=model)).shape[1] == judged._features(made()).shape[1] + 2


def test_taken_rows_keep_the_forecast_of_all_rows():
    data = made(by=np.arange(N) % 2, group=np.arange(N) // 2)
    some = data.take(np.arange(100))
    assert len(some) == 100
    assert np.array_equal(some.forecast, data.forecast[:100])
    assert some.by_codes.shape == (100, 1)


def test_a_group_of_all_labels_is_refused():
    with pytest.raises(cal.InvalidPredictions, match="All gold labels belong to one group"):
        made(group=np.where(LABELLED, 0, 1)).forecast  # noqa: B018


def test_functions_of_outcomes_refuse_judged_data_and_say_what_takes_them():
    for function in (cal.ece, cal.brier, cal.auc, cal.observed_expected):
        with pytest.raises(cal.InvalidPredictions, match=r"accuracy, observed_expected.*labelled\(\)"):
            function(made())


def test_the_judge_is_a_binary_task_of_labelled_rows_with_a_score():
    score = np.where(np.arange(N) % 4 == 0, np.nan, SCORE * 0.9)
    data = made(judge=np.column_stack([SCORE, score]), group=np.arange(N) // 2).judge(1)
    kept = LABELLED & ~np.isnan(score)
    assert np.array_equal(data.y_prob, score[kept])
    assert np.array_equal(data.y_true, RIGHT[kept])
    assert len(data.group) == kept.sum()
    with pytest.raises(ValueError, match="There are 2 judges"):
        made(judge=np.column_stack([SCORE, score])).judge(2)
    with pytest.raises(cal.InvalidPredictions, match=r"judge must lie in \[0, 1\] to be judged as a probability"):
        made(judge=SCORE * 5).judge()


def test_inclusion_probabilities_of_next_labels_are_exact():
    data, drawn = made(), np.zeros(N)
    spread = np.sqrt(data.forecast * (1 - data.forecast))
    chance = 60 * (0.75 * spread / spread.sum() + 0.25 / N)
    for seed in range(2000):
        found = data.next_labels(60, seed=seed)
        assert len(found.rows) == 60
        drawn[found.rows] += 1
    z = (drawn - 2000 * chance) / np.sqrt(2000 * chance * (1 - chance))
    assert abs((z**2).mean() - 1) < 4 * np.sqrt(2 / N)


def test_a_quarter_of_the_labels_is_drawn_with_equal_probabilities():
    data = made()
    spread = np.sqrt(data.forecast * (1 - data.forecast))
    expected = 60 * (0.75 * spread / spread.sum() + 0.25 / N)
    found = data.next_labels(60)
    assert expected.max() < 1
    assert found.probability == pytest.approx(expected[found.rows])


def test_by_gives_each_group_the_same_number_of_labels():
    by = (np.arange(N) < 40).astype(int)
    numbers = [by[made().next_labels(60, by=by, seed=seed).rows].sum() for seed in range(60)]
    assert np.mean(numbers) == pytest.approx(30, abs=1)


def test_weights_of_two_samples_add_up_to_all_rows_and_earlier_ones_count_by_their_information():
    data = made()
    totals = [data.next_labels(60, seed=seed).weight.sum() for seed in range(200)]
    assert np.mean(totals) == pytest.approx(N, rel=0.02)
    found = data.next_labels(60)
    variance = data.forecast * (1 - data.forecast)
    chance = np.empty(N)
    spread = np.sqrt(variance)
    chance = 60 * (0.75 * spread / spread.sum() + 0.25 / N)
    before, now = (25.0 * variance[LABELLED]).sum(), (variance / chance).sum()  # weights are 400 / 80 = 5
    only_before = LABELLED & ~np.isin(np.arange(N), found.rows)
    assert found.weight[only_before] == pytest.approx(5 * now / (before + now))


def test_as_many_labels_as_rows_are_all_rows_and_more_are_refused():
    found = made().next_labels(N)
    assert np.array_equal(found.rows, np.arange(N))
    assert found.probability == pytest.approx(1)
    with pytest.raises(ValueError, match="k must be at most the number of rows, 400"):
        made().next_labels(N + 1)
