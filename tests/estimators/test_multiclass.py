"""Binary estimators averaged over classes."""

from functools import partial

import numpy as np
import pytest

import calibrant as cal


def test_classwise_averages_one_against_the_rest():
    rng = np.random.default_rng(1)
    probs = rng.dirichlet(np.ones(3), 500)
    y = rng.integers(0, 3, 500)
    data = cal.Multiclass(y, probs)
    measured = cal.classwise(partial(cal.ece, bins=cal.EqualWidth(10)), data)
    parts = [cal.ece((y == k).astype(int), probs[:, k], bins=cal.EqualWidth(10)) for k in range(3)]
    assert measured == pytest.approx(np.mean(parts))
    assert list(measured.details["classes"].values()) == pytest.approx(parts)


def test_classwise_wants_several_classes():
    with pytest.raises(TypeError, match="Multiclass"):
        cal.classwise(cal.ece, cal.Binary([0, 1], [0.2, 0.7]))


def test_labels_and_a_matrix_are_as_good_as_multiclass_predictions():
    rng = np.random.default_rng(1)
    p, y = rng.dirichlet(np.ones(3), 200), rng.integers(0, 3, 200)
    found = cal.classwise(cal.brier, y, p)
    assert found == cal.classwise(cal.brier, cal.Multiclass(y, p))
    assert 3 * found == pytest.approx(float(cal.brier(cal.Multiclass(y, p))), rel=1e-12)
    assert found.name == "Classwise Brier score"
    with pytest.raises(TypeError, match="both y_true and y_prob"):
        cal.classwise(cal.ece, y)
    with pytest.raises(TypeError, match="not both"):
        cal.classwise(cal.ece, cal.Multiclass(y, p), p)


def test_order_of_rows_and_names_of_classes_do_not_matter():
    rng = np.random.default_rng(2)
    p, y = rng.dirichlet(np.ones(3), 200), rng.integers(0, 3, 200)
    order = rng.permutation(200)
    named = cal.Multiclass(np.array(["a", "b", "c"])[y], p, classes=["a", "b", "c"])
    assert cal.classwise(cal.ece, y[order], p[order]) == pytest.approx(float(cal.classwise(cal.ece, named)), rel=1e-12)
    assert list(cal.classwise(cal.ece, named).details["classes"]) == ["a", "b", "c"]


def test_predictions_that_are_certain_and_right_have_no_error():
    assert cal.classwise(cal.ece, [0, 1, 2, 1], np.eye(3)[[0, 1, 2, 1]]) == 0.0


ONE_PASS = {
    "ece": partial(cal.ece, bins=cal.EqualWidth(15)),
    "ece, L2": partial(cal.ece, bins=cal.EqualWidth(7), norm=2),
    "mce": partial(cal.mce, bins=cal.EqualWidth(15)),
    "debiased": partial(cal.debiased_ece, bins=cal.EqualWidth(15)),
    "other edges": partial(cal.ece, bins=cal.EqualWidth(15, high=2.0)),
    "equal mass": cal.ece,
}


def drawn(classes, rows=700):
    rng = np.random.default_rng(classes)
    return rng.integers(0, classes, rows), rng.dirichlet(np.full(classes, 0.3), rows)


@pytest.mark.no_cover
@pytest.mark.parametrize("estimator", ONE_PASS.values(), ids=ONE_PASS)
@pytest.mark.parametrize("classes", [2, 5, 80])
def test_classes_in_one_pass_are_those_one_by_one(classes, estimator, fast):
    y, p = drawn(classes)
    one_by_one = {str(k): float(estimator(y == k, p[:, k].copy())) for k in range(classes)}
    for found in (cal.classwise(estimator, y, p), cal.classwise(estimator, cal.Multiclass(y, p))):
        assert found.details["classes"] == pytest.approx(one_by_one, rel=1e-11)
        assert found == pytest.approx(np.mean(list(one_by_one.values())), rel=1e-11)
        words = estimator(y == 0, p[:, 0].copy())
        assert (found.name, found.method) == (f"Classwise {words.name}", f"{words.method}, {classes} classes")
        assert found.n == len(y)
        assert found.target.norm == words.target.norm


def test_weights_shares_and_words_are_measured_alike_in_both_ways(fast):
    y, p = drawn(3)
    estimator = ONE_PASS["ece"]
    weighted = cal.Multiclass(y, p, weight=np.where(y == 1, 2.0, 1.0))
    assert cal.classwise(estimator, weighted) != cal.classwise(estimator, y, p)
    shares = cal.Multiclass(0.5 * np.eye(3)[y] + 0.5 * np.eye(3)[0], p)
    assert cal.classwise(estimator, shares) != cal.classwise(estimator, y, p)
    words = cal.classwise(estimator, cal.Multiclass(np.array(["a", "b", "c"])[y], p))
    assert words == pytest.approx(cal.classwise(estimator, y, p), rel=1e-11)
    assert list(words.details["classes"]) == ["a", "b", "c"]


@pytest.mark.parametrize(("bad_label", "bad_score"), [(3, None), (-1, None), (None, 1.5), (None, np.nan)])
def test_bad_rows_are_refused_in_the_same_words_in_both_ways(bad_label, bad_score, monkeypatch):
    pytest.importorskip("numba")
    y, p = drawn(3)
    y[5] = y[5] if bad_label is None else bad_label
    p[5, 1] = p[5, 1] if bad_score is None else bad_score
    words = []
    for setting in ("on", "off"):
        monkeypatch.setenv("CALIBRANT_FAST", setting)
        with pytest.raises(cal.InvalidPredictions) as refused:
            cal.classwise(ONE_PASS["ece"], y, p)
        words.append(str(refused.value))
    assert words[0] == words[1]


def test_options_of_the_estimator_are_passed_on():
    rng = np.random.default_rng(0)
    data = cal.Multiclass(rng.integers(0, 3, 200), rng.dirichlet(np.ones(3), 200))
    found = cal.classwise(cal.ece, data, norm=2, bins=cal.EqualWidth(10))
    assert found == cal.classwise(partial(cal.ece, norm=2, bins=cal.EqualWidth(10)), data)
    assert str(found.target) == "classwise mean (L2)"
    assert cal.interval(partial(cal.classwise, cal.ece, norm=2), data).interval.target == found.target
    with pytest.raises(TypeError, match="no argument 'bin'"):
        cal.classwise(cal.ece, data, bin=3)
