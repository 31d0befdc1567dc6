"""Proper scores and AUC against scikit-learn, and log scores that are infinite."""

import math
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from sklearn.metrics import brier_score_loss, roc_auc_score
from sklearn.metrics import log_loss as sklearn_log_loss

import calibrant as cal
from calibrant.estimators.proper_scores import check_floor, floored, log_losses
from tests.estimators.worlds import columns, weighted_rows


@pytest.mark.no_cover
@given(weighted_rows)
def test_scores_agree_with_scikit_learn_with_and_without_weights(rows):
    p, y, w = columns(rows)
    assert cal.brier(y, p) == pytest.approx(brier_score_loss(y, p), abs=1e-12)
    assert cal.log_loss(y, p) == pytest.approx(sklearn_log_loss(y, p, labels=[0, 1]), rel=1e-10)
    data = cal.Binary(y, p, weight=w)
    assert cal.brier(data) == pytest.approx(brier_score_loss(y, p, sample_weight=w), abs=1e-12)
    for score in (cal.brier, cal.log_loss):
        assert score(cal.BinTable.of(data, cal.table.Distinct())) == pytest.approx(score(data), rel=1e-9)


def test_scores_of_several_classes_agree_with_scikit_learn():
    rng = np.random.default_rng(0)
    probs = rng.dirichlet(np.ones(4), 300)
    y = rng.integers(0, 4, 300)
    data = cal.Multiclass(y, probs, weight=rng.random(300))
    assert cal.brier(data) == pytest.approx(np.average(((probs - np.eye(4)[y]) ** 2).sum(axis=1), weights=data.weight))
    assert cal.log_loss(data) == pytest.approx(sklearn_log_loss(y, probs, sample_weight=data.weight))


def test_a_certain_forecast_that_failed_costs_infinity_and_one_that_held_nothing():
    assert cal.log_loss([0], [1.0]) == math.inf
    assert cal.log_loss([1, 0], [1.0, 0.0]) == 0.0


def test_predictions_without_probabilities_are_refused():
    with pytest.raises(ValueError, match="no probability score"):
        cal.brier(cal.Gaussian([0.0], [0.0], [1.0]))


FLOOR = 1e-3


def saturated(n=400, *, seed=0, weighted=False):
    """Binary rows of which some are predicted with certainty, rightly and wrongly."""
    rng = np.random.default_rng(seed)
    p = np.round(rng.random(n), 2).astype(np.float32)
    p[::10], p[5::10] = 0.0, 1.0
    y = rng.random(n) < 0.2 + 0.6 * p
    return cal.Binary(y, p, weight=rng.integers(0, 4, n).astype(float) if weighted else None)


def vectors(n=300, *, seed=0, k=4):
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.full(k, 0.3), n)
    p[p < 0.05] = 0.0
    p /= p.sum(axis=1, keepdims=True)
    return cal.Multiclass(rng.integers(0, k, n), p, weight=rng.random(n) + 0.5)


@pytest.mark.parametrize("weighted", [False, True])
def test_the_floored_log_loss_is_its_formula_and_scikit_learns(weighted):
    data = saturated(weighted=weighted)
    p = np.clip(data.y_prob.astype(float), FLOOR, 1 - FLOOR)
    w = np.ones(len(data)) if data.weight is None else data.weight
    expected = -(w @ np.where(data.y_true == 1, np.log(p), np.log(1 - p))) / w.sum()
    found = cal.log_loss(data, floor=FLOOR)
    assert found == pytest.approx(expected, rel=1e-12)
    assert found == pytest.approx(sklearn_log_loss(data.y_true, p, sample_weight=w), rel=1e-9)
    assert found.method == "mean, floor=0.001"
    assert found.details == {"floor": FLOOR}


@pytest.mark.parametrize("weighted", [False, True])
def test_a_table_gives_the_floored_score_of_its_rows(weighted):
    data = saturated(weighted=weighted)
    table = cal.BinTable.of(data, cal.table.Distinct())
    assert cal.log_loss(table, floor=FLOOR) == pytest.approx(float(cal.log_loss(data, floor=FLOOR)), rel=1e-12)


def test_rows_of_several_classes_keep_their_sum():
    data = vectors()
    p = np.clip(data.y_prob, FLOOR, 1 - FLOOR)
    p /= p.sum(axis=1, keepdims=True)
    expected = -(data.weight @ np.log(p[np.arange(len(data)), data.y_true])) / data.weight.sum()
    assert cal.log_loss(data) == np.inf
    assert cal.log_loss(data, floor=FLOOR) == pytest.approx(expected, rel=1e-12)
    off = data.y_prob * 1.0005  # within the tolerance of Multiclass
    assert floored(off, FLOOR).sum(axis=1) == pytest.approx(off.sum(axis=1))
    inside = np.array([[0.2, 0.3, 0.5005]])
    np.testing.assert_allclose(floored(inside, FLOOR), inside, rtol=1e-15)


def test_one_event_is_as_good_as_two_classes():
    data = saturated()
    p = data.y_prob.astype(float)
    two = cal.Multiclass(data.y_true, np.column_stack([1 - p, p]))
    assert cal.log_loss(two, floor=FLOOR) == pytest.approx(float(cal.log_loss(data, floor=FLOOR)), rel=1e-12)


def test_a_small_floor_changes_only_certain_predictions():
    rng = np.random.default_rng(1)
    p = 0.01 + 0.98 * rng.random(500)
    y = rng.random(500) < p
    assert cal.log_loss(y, p, floor=1e-6) == cal.log_loss(y, p)
    assert cal.log_loss([0, 1], [0.0, 1.0], floor=1e-6) == pytest.approx(1e-6, rel=1e-6)


def test_an_infinite_score_counts_its_rows_and_names_the_first():
    found = cal.log_loss([1, 0, 1, 0, 0], np.array([0.5, 0.2, 0.0, 1.0, 0.3], dtype=np.float32))
    assert found == np.inf
    assert repr(found) == "<Log loss inf, n=5, mean, infinite for 2 rows>"
    assert (found.details["infinite_rows"], found.details["first_infinite_row"]) == (2, 2)
    assert "2 rows (first: row 2)" in found.details["message"]
    assert "floor=1e-6" in found.details["message"]
    several = cal.log_loss(cal.Multiclass([0, 1], [[0.5, 0.5], [1.0, 0.0]]))
    assert (several.details["infinite_rows"], several.details["first_infinite_row"]) == (1, 1)


def test_a_row_without_weight_is_no_infinite_row():
    data = cal.Binary([1, 0, 1], [0.0, 0.4, 0.7], weight=[0.0, 1.0, 2.0])
    found = cal.log_loss(data)
    assert found == pytest.approx(-(np.log(0.6) + 2 * np.log(0.7)) / 3)
    assert found.details == {}


def test_a_table_counts_its_infinite_rows_unless_they_have_weights():
    table = cal.BinTable.of(cal.Binary([1, 1, 0, 0], [0.0, 0.0, 0.0, 1.0]), cal.table.Distinct())
    assert cal.log_loss(table).details["infinite_rows"] == 3
    data = cal.Binary([1, 1, 0, 0], [0.0, 0.0, 0.0, 1.0], weight=[1.0, 2.0, 3.0, 1.0])
    found = cal.log_loss(cal.BinTable.of(data, cal.table.Distinct()))
    assert found.details["infinite_rows"] is None
    assert "infinite for some rows" in found.details["message"]


class Fixed:
    """A map that nobody fits."""

    def fit(self, scores, labels, sample_weight=None):
        return self

    def predict_proba(self, scores):
        q = 0.1 + 0.8 * scores if scores.shape[1] == 1 else (scores + 0.1) / (1 + 0.1 * scores.shape[1])
        return np.hstack([1 - q, q]) if scores.shape[1] == 1 else q


@pytest.mark.parametrize("data", [saturated(), saturated(weighted=True), vectors()], ids=["rows", "weights", "classes"])
def test_the_floored_kl_error_is_a_difference_of_floored_log_losses(data):
    options = {"recalibrator": Fixed(), "floor": FLOOR}
    error = cal.variational_error(data, norm="kl", **options)
    left = cal.refinement(data, score="log_loss", **options)
    p = data.y_prob.astype(float)
    after = Fixed().predict_proba(p[:, None] if p.ndim == 1 else p)
    mapped = type(data)(data.y_true, after[:, 1] if p.ndim == 1 else after, weight=data.weight)
    assert left == pytest.approx(float(cal.log_loss(mapped, floor=FLOOR)), rel=1e-12)
    assert error == pytest.approx(cal.log_loss(data, floor=FLOOR) - cal.log_loss(mapped, floor=FLOOR), rel=1e-11)
    for found in (error, left):
        assert found.method.endswith("floor=0.001")
        assert found.details["floor"] == FLOOR
        assert np.isfinite(found.details["standard_error"])


def test_over_and_underconfidence_add_up_under_a_floor():
    data = saturated()
    both = [side(data, norm="kl", floor=FLOOR) for side in (cal.overconfidence, cal.underconfidence)]
    assert sum(both) == pytest.approx(float(cal.variational_error(data, norm="kl", floor=FLOOR)), abs=1e-12)
    last = cal.estimators.variational_errors(data, norms=[1, "kl"], floor=FLOOR)
    assert [one.details.get("floor") for one in last] == [None, FLOOR]


def test_an_infinite_kl_error_counts_its_rows_and_names_the_first():
    data = saturated()
    wrong = np.flatnonzero(np.abs(data.y_prob - data.y_true) == 1)
    found = cal.variational_error(data, norm="kl")
    assert found == np.inf
    assert found.details["infinite_rows"] == len(wrong)
    assert found.details["first_infinite_row"] == wrong[0]
    assert f"infinite for {len(wrong)} rows" in found.method
    weighted = saturated(weighted=True)
    seen = np.flatnonzero((np.abs(weighted.y_prob - weighted.y_true) == 1) & (weighted.weight > 0))
    found = cal.variational_error(weighted, norm="kl")
    assert (found.details["infinite_rows"], found.details["first_infinite_row"]) == (len(seen), seen[0])
    assert "message" not in cal.variational_error(data, norm="squared").details


def test_rows_that_were_counted_in_cells_are_named_as_well():
    rng = np.random.default_rng(2)
    p = rng.random(70_000)
    y = rng.random(70_000) < p
    p[123], y[123] = 1.0, False
    found = cal.variational_error(y, p, norm="kl")
    assert (found.details["infinite_rows"], found.details["first_infinite_row"]) == (1, 123)
    table = cal.BinTable.of(cal.Binary(y, p), cal.table.HybridGrid(2**14))
    found = cal.variational_error(table, norm="kl")
    assert (found.details["infinite_rows"], found.details["first_infinite_row"]) == (1, None)


@pytest.mark.parametrize("method", ["corp", "variational"])
def test_a_decomposition_uses_one_floor_for_all_parts(method):
    data = saturated()
    parts = cal.decompose(data, score="log_loss", method=method, floor=FLOOR)
    assert parts.score == pytest.approx(float(cal.log_loss(data, floor=FLOOR)), rel=1e-12)
    total = parts.miscalibration - parts.discrimination + parts.uncertainty
    assert total == pytest.approx(float(parts.score), rel=1e-12)
    rate = data.y_true.mean()
    assert parts.uncertainty == pytest.approx(-(rate * np.log(rate) + (1 - rate) * np.log(1 - rate)), rel=1e-12)
    assert min(parts.miscalibration, parts.discrimination, parts.uncertainty) >= 0
    assert all("floor=0.001" in part.method for part in (parts.score, parts.miscalibration))
    infinite = cal.decompose(data, score="log_loss", method=method)
    assert infinite.score == infinite.miscalibration == np.inf
    assert infinite.score.details["infinite_rows"] == (np.abs(data.y_prob - data.y_true) == 1).sum()


def test_an_infinite_score_of_positives_and_unlabeled_rows_can_be_bounded():
    data = cal.PositiveUnlabeled([0.0, 0.7, 0.9], [0.0, 0.2, 0.7, 0.9, 1.0], prior=0.4)
    found = cal.log_loss(data)
    assert found == np.inf
    assert "floor" in found.details["message"]
    u, p = (np.clip(side, FLOOR, 1 - FLOOR) for side in (data.unlabeled, data.positive))
    expected = -0.4 * np.log(p / (1 - p)).mean() - np.log(1 - u).mean()
    for source in (data, cal.BinTable.of(data, cal.table.Distinct())):
        bounded = cal.log_loss(source, floor=FLOOR)
        assert bounded == pytest.approx(expected, rel=1e-12)
        assert bounded.details["floor"] == FLOOR
    rng = np.random.default_rng(3)
    many = cal.PositiveUnlabeled(np.append(rng.beta(3, 1, 200), 0.0), rng.random(500), prior=0.5)
    error = cal.variational_error(many, norm="kl", floor=FLOOR)
    assert np.isfinite(error)
    assert error.method.endswith("floor=0.001")


def test_an_outcome_outside_the_support_can_be_bounded():
    y = np.array([0.5, 2.0, 0.3, -1.0])
    data = cal.Distribution(y, stats.uniform(np.zeros(4), np.ones(4)))
    found = cal.nll(data)
    assert found == np.inf
    assert (found.details["infinite_rows"], found.details["first_infinite_row"]) == (2, 1)
    bounded = cal.nll(data, floor=0.01)
    assert bounded == pytest.approx(-np.log(0.01) / 2)
    assert bounded.method == "mean, floor=0.01"
    with pytest.raises(ValueError, match="floor must be a number of at least 0"):
        cal.nll(data, floor=-1.0)


def test_a_floor_bounds_gaussian_densities_and_their_reference():
    rng = np.random.default_rng(4)
    y, std = rng.normal(size=4000), np.ones(4000)
    floor = float(stats.norm.pdf(1.0))
    found = cal.nll(y, np.zeros(4000), std, floor=floor)
    assert found == pytest.approx(np.minimum(-stats.norm.logpdf(y), -np.log(floor)).mean(), rel=1e-12)
    assert found == pytest.approx(found.details["null"]["mean"], abs=4 * found.details["null"]["sd"])
    assert found.details["null"]["mean"] < cal.nll(y, np.zeros(4000), std).details["null"]["mean"]


@pytest.mark.parametrize("floor", [-0.1, 0.5, np.nan])
def test_a_floor_that_is_none_is_refused(floor):
    with pytest.raises(ValueError, match=r"floor must lie in \[0, 0.5\)"):
        check_floor(floor)
    with pytest.raises(ValueError, match=r"floor must lie in \[0, 0.5\)"):
        cal.log_loss([0, 1], [0.2, 0.7], floor=floor)


@pytest.mark.parametrize(
    "estimate",
    [
        cal.variational_error,
        cal.overconfidence,
        cal.refinement,
        cal.decompose,
        partial(cal.estimators.variational_errors, norms=[1, 2]),
    ],
)
def test_a_floor_where_no_logarithm_is_taken_is_refused(estimate):
    with pytest.raises(ValueError, match="bounds log scores only"):
        estimate(saturated(), floor=FLOOR)


def test_zero_times_the_logarithm_of_zero_is_zero():
    p, positives, negatives = np.array([0.0, 1.0, 0.5]), np.array([0.0, 2.0, 1.0]), np.array([3.0, 0.0, 1.0])
    np.testing.assert_allclose(log_losses(p, positives, negatives), [0.0, 0.0, 2 * np.log(2)])


ROWS = st.lists(st.tuples(st.integers(0, 10), st.booleans(), st.floats(0.1, 3)), min_size=2, max_size=60)


@pytest.mark.no_cover
@given(ROWS)
def test_it_is_scikit_learns_with_ties_and_weights(rows):
    p, y, w = (np.array(column, dtype=float) for column in zip(*rows, strict=True))
    p /= 10
    if y.min() == y.max():
        with pytest.raises(ValueError, match="needs both outcomes"):
            cal.auc(y, p)
        return
    data = cal.Binary(y, p, weight=w)
    assert cal.auc(y, p) == pytest.approx(roc_auc_score(y, p), abs=1e-12)
    assert cal.auc(data) == pytest.approx(roc_auc_score(y, p, sample_weight=w), abs=1e-12)
    assert cal.auc(cal.BinTable.of(data, cal.table.Distinct())) == pytest.approx(float(cal.auc(data)), abs=1e-12)


def test_it_is_the_share_of_ordered_pairs():
    rng = np.random.default_rng(0)
    p = np.round(rng.random(80), 1)
    y = rng.random(80) < p
    up, down = p[y][:, None], p[~y][None]
    assert cal.auc(y, p) == pytest.approx(((up > down) + 0.5 * (up == down)).mean(), abs=1e-12)


def test_only_the_order_of_scores_counts():
    rng = np.random.default_rng(1)
    p = rng.random(200)
    y = rng.random(200) < p
    assert cal.auc(y, p**3) == cal.auc(y, p)
    assert cal.auc(y, 1 - p) == pytest.approx(1 - cal.auc(y, p), abs=1e-12)
    assert cal.auc([0, 0, 1, 1], [0.1, 0.2, 0.3, 0.4]) == 1.0


def test_positives_against_everybody_give_the_same_area():
    rng = np.random.default_rng(2)
    p = rng.random(400)
    y = rng.random(400) < p
    data = cal.PositiveUnlabeled(p[y], p, prior=y.mean())
    assert cal.auc(data) == pytest.approx(float(cal.auc(y, p)), abs=1e-12)


def test_accuracy_is_the_share_of_right_answers():
    y, p = np.array([0, 1, 1, 0, 1]), np.array([0.2, 0.5, 0.4, 0.3, 0.9])
    weight = np.array([1.0, 2, 1, 1, 1])
    assert cal.accuracy(y, p) == pytest.approx(4 / 5)  # one half counts as the event
    assert cal.accuracy(y, p, weight=weight) == pytest.approx(5 / 6)
    classes = cal.Multiclass([0, 2, 1], [[0.5, 0.3, 0.2], [0.1, 0.2, 0.7], [0.6, 0.3, 0.1]])
    assert cal.accuracy(classes) == pytest.approx(2 / 3)
    for other in (cal.PositiveUnlabeled([0.8], [0.1, 0.4], prior=0.4), cal.Gaussian([0.0], [0.0], [1.0])):
        with pytest.raises(cal.InvalidPredictions, match="accuracy needs binary or multiclass predictions"):
            cal.accuracy(other)
    with pytest.raises(cal.InvalidPredictions, match="not a table"):
        cal.accuracy(cal.BinTable.of(cal.Binary(y, p), 5))


def test_the_interval_of_accuracy_is_that_of_a_share_and_allows_for_clusters():
    right = np.arange(200) % 5 > 0
    y = np.arange(200) % 2
    p = np.where(right, y, 1 - y) * 0.8 + 0.1
    found = cal.interval(cal.accuracy, cal.Binary(y, p))
    assert float(found) == pytest.approx(0.8)
    low, high = found.interval
    half = stats.binom.pmf(160, 200, [low, high]) / 2  # mid-P
    assert stats.binom.sf(160, 200, low) + half[0] == pytest.approx(0.025, abs=5e-4)
    assert stats.binom.cdf(159, 200, high) + half[1] == pytest.approx(0.025, abs=5e-4)
    assert str(found.interval.target) == "accuracy"
    doubled = cal.Binary(np.repeat(y, 2), np.repeat(p, 2), group=np.repeat(np.arange(200), 2))
    wide = cal.interval(cal.accuracy, doubled).interval
    assert wide.high - wide.low > 0.95 * (found.interval.high - found.interval.low)
    compared = cal.compare(cal.accuracy, cal.Binary(y, p), cal.Binary(y, np.full(200, 0.6)))
    assert compared.difference == pytest.approx(0.3, abs=0.02)
    assert 0.3 in compared.interval
