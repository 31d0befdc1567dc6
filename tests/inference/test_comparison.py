"""Comparisons of models on the same rows: equal ones are seldom called different, the better one is found."""

import copy
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from scipy import stats

import calibrant as cal
from calibrant.inference import PairedCrossFits, PairedGaps
from tests.inference.class_worlds import sample, softmax
from tests.inference.worlds import models

FEW = cal.Bootstrap(199, kind="bias-corrected")


def test_the_better_model_is_found():
    bad, good = models()
    found = cal.compare(cal.ece, bad, good, method=FEW)
    assert found.value_a == float(cal.ece(bad))
    assert found.p_value < 0.001
    assert 0 < found.interval.low < found.difference < found.interval.high


def test_a_model_does_not_differ_from_itself():
    data, _ = models()
    found = cal.compare(cal.ece, data, data, method=FEW)
    assert (found.difference, found.p_value) == (0.0, 1.0)


def test_the_difference_of_a_mean_is_the_paired_textbook_one():
    bad, good = models(3000)
    loss = (bad.y_prob - bad.y_true) ** 2 - (good.y_prob - good.y_true) ** 2
    found = cal.compare(cal.brier, bad, good, method=cal.Bootstrap(399, kind="bias-corrected"))
    assert found.difference == pytest.approx(loss.mean(), abs=0.0005)
    reach = (found.interval.high - found.interval.low) / 2
    assert reach == pytest.approx(1.96 * loss.std() / np.sqrt(3000), rel=0.2)


def test_interval_and_p_value_of_resamples_are_of_one_normal_distribution():
    bad, good = models(300)
    found = cal.compare(cal.brier, bad, good, method=FEW)
    middle = (found.interval.low + found.interval.high) / 2
    assert found.difference == pytest.approx(middle)
    spread = (found.interval.high - middle) / stats.norm.ppf(0.975)
    assert found.p_value == pytest.approx(2 * stats.norm.sf(abs(middle) / spread))


@pytest.mark.no_cover
def test_equal_models_are_told_apart_at_the_level():
    rng, alarms, few = np.random.default_rng(0), [], cal.Bootstrap(99, kind="bias-corrected")
    for _ in range(40):
        p = rng.random(300)
        noise = rng.normal(0, 0.5, (2, 300))
        a, b = (1 / (1 + (1 / p - 1) * np.exp(-shift)) for shift in noise)
        y = rng.random(300) < p
        alarms.append(cal.compare(cal.ece, cal.Binary(y, a), cal.Binary(y, b), method=few).p_value <= 0.05)
    assert np.mean(alarms) <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 40)


def test_many_models_share_the_risk():
    bad, good = models()
    worse = cal.Binary(bad.y_true, bad.y_prob**0.5)
    found = cal.compare_many(cal.brier, {"good": good, "bad": bad, "worse": worse}, method=FEW)
    assert [(one.a, one.b) for one in found] == [("bad", "good"), ("worse", "good")]
    assert all(one.adjusted >= one.p_value for one in found)
    assert found[0].interval.level == pytest.approx(0.975)


def test_estimators_of_rows_are_compared_too():
    bad, good = models(300)
    found = cal.compare(lambda d: float(np.mean(d.y_prob)), bad, good, method=cal.Bootstrap(49))
    assert found.difference == pytest.approx(bad.y_prob.mean() - good.y_prob.mean(), abs=0.01)


def test_comparisons_are_exact_by_seed_and_print_themselves():
    bad, good = models(400)
    one, other = (cal.compare(cal.ece, bad, good, method=FEW) for _ in range(2))
    assert one == other
    assert "a - b" in repr(one)
    assert one.to_dict()["interval"]["level"] == 0.95


def test_other_rows_are_refused():
    bad, good = models(100)
    with pytest.raises(cal.InvalidPredictions, match="same rows"):
        cal.compare(cal.ece, bad, cal.Binary(1 - good.y_true, good.y_prob))
    with pytest.raises(ValueError, match="two models"):
        cal.compare_many(cal.ece, {"a": bad})
    with pytest.raises(ValueError, match="reference"):
        cal.compare_many(cal.ece, {"a": bad, "b": good}, reference="c")


def test_spreads_are_compared_by_their_true_errors():
    rng = np.random.default_rng(0)
    std, zero = np.exp(0.5 * rng.standard_normal(1500)), np.zeros(1500)
    y = std * rng.normal(size=1500)
    right, narrow, wide = (cal.Gaussian(y, zero, std * factor) for factor in (1.0, 0.7, 1.05))
    for estimator in (cal.ence, cal.sweep_ence, cal.debiased_ence, cal.uce):
        found = cal.compare(estimator, narrow, right)
        assert "PairedFits" in found.interval.method
        assert found.p_value < 0.001
        assert found.interval.low > 0
    assert cal.compare(cal.ence, narrow, narrow).p_value == 1
    assert 1 / 0.7 - 1 in cal.compare(cal.ence, narrow, right).interval
    assert cal.compare(cal.ence, wide, right).p_value > 0.01
    scores = cal.compare(cal.crps, narrow, right)
    assert scores.p_value < 0.01
    assert scores.difference == pytest.approx(scores.value_a - scores.value_b, abs=2e-3)


def test_positive_unlabeled_models_are_compared_on_the_same_rows():
    rng = np.random.default_rng(1)
    positive, unlabeled = rng.beta(2, 1, 1000), rng.random(10_000)
    good, bad = (cal.PositiveUnlabeled(positive**k, unlabeled**k, prior=0.5) for k in (1.0, 1.5))
    found = cal.compare(cal.sweep_ece, bad, good)
    assert "PairedFits" in found.interval.method
    assert found.p_value < 0.001
    assert 0.1 in found.interval  # E|u - u^1.5|
    assert cal.compare(cal.ece, good, good).p_value == 1
    other = cal.PositiveUnlabeled(positive, unlabeled, prior=0.4)
    with pytest.raises(cal.InvalidPredictions, match="same rows"):
        cal.compare(cal.ece, good, other)


def test_control_characters_in_names_of_models_are_written_out():
    a, b = models(60)
    (found,) = cal.compare_many(cal.brier, {"\x1b[31mred": a, "plain": b})
    assert "\x1b" not in repr(found)
    assert "\\x1b[31mred" in repr(found)


def views(n=600, seed=0, temperatures=(1.0, 1.0)):
    """Two models that see independent views of the same label, each with its posterior, tempered."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, n)
    made = []
    for temperature in temperatures:
        z = rng.normal(size=(n, 3)) + 1.5 * np.eye(3)[y]
        made.append(cal.Multiclass(y, softmax(1.5 * z * temperature)))
    return made


def test_the_worse_model_is_found_in_every_norm():
    worse, better = views(temperatures=(2.5, 1.0))
    for norm in (1, "kl"):
        found = cal.compare(partial(cal.variational_error, norm=norm), worse, better)
        assert found.p_value < 0.01
        assert 0 < found.interval.low < found.difference < found.interval.high
        assert found.difference == pytest.approx(found.value_a - found.value_b, rel=0.3)
        assert found.interval.target == cal.results.Target("true error", norm)


@pytest.mark.no_cover
def test_equal_models_are_seldom_called_different():
    called = [cal.compare(cal.variational_error, *views(150, k)).p_value <= 0.05 for k in range(8)]
    assert sum(called) <= 2


def test_paired_cross_fits_a_model_does_not_differ_from_itself():
    data, _ = sample(200, 3)
    found = cal.compare(cal.variational_error, data, data)
    assert (found.difference, found.p_value) == (0.0, 1.0)


@pytest.mark.no_cover
def test_groups_widen_the_interval():
    worse, better = views(temperatures=(2.0, 1.0))
    rows = np.repeat(np.arange(600), 2)
    widths = []
    for group in (np.arange(1200), rows):
        pair = [cal.Multiclass(one.y_true[rows], one.y_prob[rows], group=group) for one in (worse, better)]
        found = PairedCrossFits().difference(*pair, norm=1, level=0.95)
        widths.append(found.high - found.low)
    assert widths[1] > 1.2 * widths[0]


def test_top_labels_are_compared_as_binary_tasks_and_scores_by_the_bootstrap():
    worse, better = views(300, temperatures=(2.5, 1.0))
    top = cal.compare(partial(cal.variational_error, top_label="reduced"), worse, better)
    assert top.interval.method.startswith("PairedGaps")
    assert cal.compare(cal.brier, worse, better, method=cal.Bootstrap(19)).difference > 0


def test_what_has_no_method_is_refused():
    a, b = views(100)
    for estimator in (cal.kernel_error, partial(cal.classwise, cal.ece), lambda d: cal.ece(d.top_label())):
        with pytest.raises(cal.InvalidPredictions, match="hold its level"):
            cal.compare(estimator, a, b)
    with pytest.raises(TypeError, match="multiclass"):
        cal.compare(cal.ece, a.top_label(), a.top_label(), method=PairedCrossFits())
    with pytest.raises(TypeError, match="binary"):
        cal.compare(cal.variational_error, a, b, method=PairedGaps())
    p = np.tile([0.5, 0.5, 0.0], (50, 1))
    impossible = cal.Multiclass(np.arange(50) % 3, p)
    with pytest.raises(cal.InvalidPredictions, match="infinite"):
        PairedCrossFits().difference(impossible, impossible, norm="kl", level=0.95)


def test_columns_of_classes_are_matched_by_name():
    better, _ = sample(200)
    worse = cal.Multiclass(better.y_true, softmax(2 * np.log(better.y_prob)))
    order = [2, 0, 1]
    moved = cal.Multiclass(better.y_true, better.y_prob[:, order], classes=order)
    assert moved.classes != better.classes
    for estimator in (cal.brier, cal.variational_error):
        found, expected = (cal.compare(estimator, worse, one) for one in (moved, better))
        assert (found.difference, found.p_value) == pytest.approx((expected.difference, expected.p_value), rel=1e-9)


def test_a_message_says_what_differs():
    y, p = np.array([0, 1, 1, 0]), np.full((4, 2), 0.5)
    data = cal.Multiclass(y, p, classes=[0, 1])
    others = {
        r"classes: \('a', 'b'\), not \(0, 1\)": cal.Multiclass(np.array(["a", "b"])[y], p, classes=["a", "b"]),
        r"outcomes in 2 of 4 rows \(first: row 1\)": cal.Multiclass([0, 0, 0, 0], p),
        "rows: 3, not 4": data.take(np.arange(3)),
        "predictions: <Binary, n=4>, not <Multiclass, n=4>": cal.Binary(y, p[:, 0]),
    }
    for words, other in others.items():
        with pytest.raises(cal.InvalidPredictions, match=f"'b' has other {words}"):
            cal.compare(cal.brier, data, other)
    one, other = (cal.PositiveUnlabeled([0.5, 0.7], [0.1, 0.4, 0.6], prior=prior) for prior in (0.4, 0.5))
    with pytest.raises(cal.InvalidPredictions, match=r"'b' has other prior: 0\.5, not 0\.4"):
        cal.compare(cal.ece, one, other)


RNG = np.random.default_rng(3)
MEAN = RNG.normal(size=120)
P = RNG.random(120)
EQUAL = {
    "binary": (cal.Binary(RNG.random(120) < P**2, P), [cal.ece, partial(cal.ece, norm=2), cal.brier, cal.ks_error]),
    "classes": (sample(120)[0], [cal.variational_error, cal.brier]),
    "unlabeled": (cal.PositiveUnlabeled(P[:40] ** 0.5, P, prior=0.4), [cal.ece]),
    "normal": (cal.Gaussian(MEAN + RNG.normal(size=120), MEAN, P + 0.5), [cal.ence, cal.crps, cal.coverage]),
    "quantiles": (
        cal.Quantiles(MEAN, [0.05, 0.95], np.stack([MEAN - P, MEAN + 1], axis=1)),
        [cal.coverage, cal.pinball],
    ),
    "ensemble": (cal.Samples(MEAN, RNG.normal(size=(120, 5))), [cal.crps, cal.ence]),
    "distribution": (cal.Distribution(MEAN, stats.norm(0, 2)), [cal.crps, cal.interval_error]),
}


@pytest.mark.parametrize("kind", EQUAL)
def test_equal_predictions_do_not_differ_at_all(kind):
    data, estimators = EQUAL[kind]
    for estimator in estimators:
        found = cal.compare(estimator, data, copy.copy(data))
        assert (found.difference, found.interval.low, found.interval.high, found.p_value) == (0, 0, 0, 1)


def test_a_comparison_names_what_it_compares_and_explains_opposite_signs():
    """Noise adds more to the ECE of many bins of an almost calibrated model than an error does to a rough one's."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=400)
    y = rng.random(400) < 1 / (1 + np.exp(-x))
    rough, fine = cal.Binary(y, np.where(x > 0, 0.78, 0.22)), cal.Binary(y, 1 / (1 + np.exp(-x)))
    found = [cal.compare(estimator, rough, fine) for estimator in (cal.ece, cal.debiased_ece, cal.averaged_error)]
    assert {one.quantity for one in found} == {"true error (L1)"}
    assert len({one.difference for one in found}) == 1
    assert repr(found[0]).startswith("<true error (L1): a - b = ")
    signs = [bool(one.note) == ((one.value_a - one.value_b) * one.difference < 0) for one in found]
    assert all(signs)
    assert cal.compare(cal.brier, rough, fine).quantity == "brier"
    opposed = replace(found[0], value_a=0.05, value_b=0.02, difference=-0.01)
    assert "differ the other way (+0.03)" in opposed.note
    assert str(opposed).endswith(opposed.note)
    assert opposed.to_dict()["note"] == opposed.note
    assert cal.compare(cal.brier, rough, fine).to_dict()["quantity"] == "brier"


@pytest.mark.parametrize("clustered", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_resamples_at_once_are_those_one_by_one(clustered, weighted):
    rng = np.random.default_rng(3)
    p = rng.integers(1, 400, 600) / 400
    y = rng.random(600) < p**1.5
    more = {"group": np.arange(600) // 3 if clustered else None, "weight": rng.random(600) if weighted else None}
    a, b = (cal.Confidence(rng.random(600) < p, q, **more) for q in (p, np.clip(p + 0.1 * (y - 0.5), 0.002, 0.998)))

    def one_by_one(estimator):
        return lambda data: float(estimator(data))  # says neither target nor losses

    for estimator in (cal.observed_expected, cal.auc, cal.calibration_slope, cal.brier, cal.log_loss):
        quick = cal.compare(estimator, a, b, method=FEW)
        slow = cal.compare(one_by_one(estimator), a, b, method=FEW)
        close = {"abs": 1e-6 if estimator is cal.calibration_slope else 1e-12}
        assert (quick.difference, *quick.interval) == pytest.approx((slow.difference, *slow.interval), **close)


def test_a_score_of_other_rows_is_not_resampled_as_that_of_these():
    a, b = models()
    half = lambda data: cal.brier(cal.Binary(data.y_true, data.y_prob / 2)) if hasattr(data, "y_prob") else 1 / 0  # noqa: E731
    with pytest.raises(ZeroDivisionError):
        cal.compare(half, a, b, method=FEW)  # its table is asked for


def test_infinite_losses_have_no_difference():
    y = [1, 0] * 30
    a, b = cal.Confidence(y, [0.0] * 10 + [0.5] * 50), cal.Confidence(y, [0.5] * 60)
    with pytest.raises(cal.InvalidPredictions, match="loss of 5 rows is infinite"):
        cal.compare(cal.log_loss, a, b)


def test_many_clusters_are_united():
    rng = np.random.default_rng(0)
    p = rng.random(6000)
    y, group = rng.random(6000) < p, np.arange(6000) // 2
    a, b = (cal.Binary(y, q, group=group) for q in (p, p**2))
    loss = np.bincount(group, (p - y) ** 2 - (p**2 - y) ** 2)
    found = cal.compare(cal.brier, a, b).interval
    assert (found.high - found.low) / 2 == pytest.approx(1.96 * loss.std() * np.sqrt(3000) / 6000, rel=0.1)
