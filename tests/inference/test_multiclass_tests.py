"""Tests of whole vectors and of classes: sums written out, level, power, and what they say and refuse."""

from functools import partial

import numpy as np
import pytest

import calibrant as cal
from calibrant.inference import VectorTest
from calibrant.inference import multiclass_tests as looks
from calibrant.inference.multiclass_tests import default_draws
from tests.inference.class_worlds import sample, softmax


@pytest.fixture
def layout():
    data, _ = sample(300, 5, seed=3, spread=1.0)
    return looks.Layout.of(data.y_prob), data.y_true


def test_gaps_of_the_observed_labels_are_sums_over_rows(layout):
    layout, labels = layout
    p = layout.probability
    gaps = looks.gaps_of_labels(layout, labels, 3, np.random.default_rng(0))
    residual = np.eye(5)[labels] - p
    z = np.log(p) - (p * np.log(p)).sum(axis=1, keepdims=True)
    assert np.allclose(gaps["slope"].gap[0], (z * residual).sum(axis=0))
    assert np.allclose(gaps["class"].gap[0].reshape(5, 4).sum(axis=1), residual.sum(axis=0))
    top = p.argmax(axis=1)
    for a in range(5):
        assert np.allclose(gaps["confusion"].gap[0].reshape(5, 5)[a], residual[top == a].sum(axis=0))
    order = np.argsort(-p, axis=1)
    ranked = np.take_along_axis(residual, order, axis=1).sum(axis=0)
    assert np.allclose(gaps["rank"].gap[0].reshape(4, 32).sum(axis=1), [*ranked[:3], ranked[3:].sum()])
    assert gaps["surprise"].gap[0, 0] == pytest.approx((1 / p[np.arange(300), labels]).sum() - 300 * 5)
    assert gaps["pooled"].gap[0].sum() == pytest.approx(0, abs=1e-9)


def test_drawn_gaps_have_mean_zero_and_the_variance_they_state(layout):
    layout, labels = layout
    gaps = looks.gaps_of_labels(layout, labels, 4000, np.random.default_rng(0))
    for name in ("slope", "class", "rank"):
        gap, variance = gaps[name].gap[1:], gaps[name].variance
        assert np.abs(gap.mean(axis=0)).max() < 5 * np.sqrt(variance.max() / 4000), name
        assert np.allclose(gap.var(axis=0), variance, rtol=0.15, atol=0.02) or name == "slope", name


def test_rows_in_chunks_give_the_sums_of_all_rows(layout, monkeypatch):
    layout, labels = layout
    whole = looks.gaps_of_labels(layout, labels, 2, np.random.default_rng(0))
    monkeypatch.setattr(looks, "_chunks", lambda shape, lines: (slice(k, k + 100) for k in (0, 100, 200)))
    parts = looks.gaps_of_labels(layout, labels, 2, np.random.default_rng(0))
    for name, one in whole.items():
        assert np.allclose(one.gap[0], parts[name].gap[0]), name
        assert np.allclose(one.variance, parts[name].variance), name


def test_every_statistic_has_a_weight_and_small_samples_have_fewer(layout):
    layout, labels = layout
    rng = np.random.default_rng(0)
    assert set(looks.statistics(layout, looks.gaps_of_labels(layout, labels, 2, rng))) == set(looks.WEIGHTS)
    few = looks.Layout.of(layout.probability[:50])
    found = looks.statistics(few, looks.gaps_of_labels(few, labels[:50], 2, rng))
    assert set(looks.WEIGHTS) - set(found) == {"rank of the true class in 32 bins of confidence"}


def test_equal_probabilities_share_a_bin():
    p = np.repeat([[0.2, 0.8], [0.6, 0.4], [0.61, 0.39]], [50, 49, 1], axis=0)
    layout = looks.Layout.of(p)
    assert len(np.unique(layout.class_bin[:50, 0])) == 1
    assert len(np.unique(layout.confidence_bin[50:99])) == 1


@pytest.mark.no_cover
@pytest.mark.parametrize(("classes", "n"), [(3, 100), (10, 200), (50, 100)])
def test_the_level_is_exact(classes, n):
    p_values = [VectorTest(99).test(sample(n, classes, seed=k)[0]).p_value for k in range(80)]
    assert np.mean(np.array(p_values) <= 0.05) <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 80)
    assert 0.35 < np.mean(p_values) < 0.65


def test_a_wrong_temperature_is_found_and_named():
    found = cal.calibration_test(sample(1000, 5, temperature=1.3)[0])
    assert found.p_value <= 0.01
    assert found.details["temperature of all classes"] <= 0.01
    assert list(found.details.values()) == sorted(found.details.values())
    assert found.to_dict()["details"] == found.details


def test_wrong_class_frequencies_are_found():
    data, _ = sample(1000, 5)
    p = data.y_prob * [2, 1, 1, 1, 1]
    found = VectorTest(199).test(cal.Multiclass(data.y_true, p / p.sum(axis=1, keepdims=True)))
    assert found.p_value == found.details["class frequencies, worst class"] == 0.005


def test_impossible_labels_are_found_and_possible_ones_are_not():
    p = np.tile([0.5, 0.5, 0.0], (40, 1))
    labels = np.tile([0, 1], 20)
    assert cal.calibration_test(cal.Multiclass(labels, p)).p_value > 0.05
    labels[3] = 2
    assert cal.calibration_test(cal.Multiclass(labels, p)).p_value == 0.001


def test_the_order_of_rows_does_not_matter_and_the_seed_decides():
    data, _ = sample(400, 4, temperature=1.1)
    rows = np.random.default_rng(0).permutation(400)
    assert VectorTest(99).test(data) == VectorTest(99).test(data.take(rows))
    assert VectorTest(99).test(data).details != VectorTest(99, seed=1).test(data).details


def test_few_rows_and_two_classes():
    assert 0 < cal.calibration_test(cal.Multiclass([0, 1], [[0.6, 0.4], [0.3, 0.7]])).p_value <= 1


def test_draws_by_default():
    assert (default_draws(20_000), default_draws(20_001)) == (999, 499)


def test_what_it_cannot_answer_is_refused():
    data, _ = sample(50)
    with pytest.raises(cal.InvalidPredictions, match="group"):
        VectorTest().test(cal.Multiclass(data.y_true, data.y_prob, group=np.arange(50)))
    with pytest.raises(cal.InvalidPredictions, match="weight"):
        cal.calibration_test(cal.Multiclass(data.y_true, data.y_prob, weight=np.arange(50) + 1.0))
    with pytest.raises(cal.InvalidPredictions, match="Multiclass"):
        VectorTest().test(data.top_label())
    with pytest.raises(TypeError, match="multiclass"):
        cal.calibration_test(data.top_label(), method=VectorTest())
    with pytest.raises(TypeError, match="multiclass"):
        cal.calibration_test(cal.BinTable.of(data.top_label(), cal.table.Distinct()), method=VectorTest())
    with pytest.raises(TypeError, match="outcomes"):
        cal.calibration_test(data, method=cal.inference.MultiScale())
    with pytest.raises(ValueError, match="whole number"):
        VectorTest(draws=0)
    weighted = cal.Multiclass(data.y_true, data.y_prob, weight=np.full(50, 2.0))
    assert VectorTest(9).test(weighted) == VectorTest(9).test(data)


def wrong(n=2000, classes=10, seed=0, factor=2.0):
    """Class 3 is stated too high, all others in proportion too low."""
    rng = np.random.default_rng(seed)
    stated = softmax(2 * rng.normal(size=(n, classes)))
    truth = stated.copy()
    moved = stated[:, 3] * (1 - 1 / factor)
    truth[:, 3] -= moved
    truth[:, 4] += moved
    y = (rng.random((n, 1)) > np.cumsum(truth, axis=1)).sum(axis=1)
    names = np.array(list("abcdefghij"))
    return cal.Multiclass(names[np.minimum(y, classes - 1)], stated, classes=names.tolist())


def test_calibrated_classes_are_reported_at_the_level():
    any_found = [bool(cal.by_class(sample(150, 6, seed=k)[0], draws=99, seed=k).found()) for k in range(100)]
    assert np.mean(any_found) <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 100)


def test_wrong_classes_are_found_first_with_their_direction():
    found = cal.by_class(wrong())
    assert set(found.found(0.01)) == {"d", "e"}
    assert {row.label for row in found.rows[:2]} == {"d", "e"}
    assert found["d"].direction == "too high"
    assert found["e"].direction == "too low"
    assert found["d"].predicted > found["d"].observed
    assert sum(row.n for row in found) == 2000
    adjusted = [row.adjusted for row in found]
    assert adjusted == sorted(adjusted)
    assert all(row.adjusted >= row.p_value for row in found)


def test_too_extreme_probabilities_are_called_so():
    data, _ = sample(3000, 3, temperature=1.6)
    assert {row.direction for row in cal.by_class(data, draws=199)} == {"too extreme"}
    data, _ = sample(3000, 3, temperature=0.6)
    assert {row.direction for row in cal.by_class(data, draws=199)} == {"not extreme enough"}


def test_many_classes_do_not_hide_one():
    data, _ = sample(3000, 40)
    stated = data.y_prob * np.where(np.arange(40) == 7, 3.0, 1.0)
    found = cal.by_class(cal.Multiclass(data.y_true, stated / stated.sum(axis=1, keepdims=True)), draws=199)
    assert found.rows[0].label == 7
    assert found.rows[0].adjusted == 0.005


def test_it_prints_and_converts():
    found = cal.by_class(sample(60, 25)[0], draws=19)
    lines = repr(found).splitlines()
    assert lines[0].split()[:3] == ["class", "rows", "predicted"]
    assert lines[-1] == "and 5 more classes"
    assert len({len(line) for line in lines[:-1]}) == 1
    text = cal.by_class(cal.Multiclass(["<b>", "c"], [[0.5, 0.5], [0.4, 0.6]], classes=["<b>", "c"]), draws=19)
    assert "&lt;b&gt;" in text._repr_html_()
    assert "<b>" not in text._repr_html_()
    assert text.to_dict()["classes"][0].keys() >= {"label", "n", "adjusted"}
    with pytest.raises(KeyError):
        text["d"]


def test_bad_input_is_refused():
    data, _ = sample(20)
    with pytest.raises(cal.InvalidPredictions, match="by_class needs Multiclass"):
        cal.by_class(data.top_label())
    with pytest.raises(ValueError, match="draws"):
        cal.by_class(data, draws=0)


def test_control_characters_in_labels_are_written_out():
    rng = np.random.default_rng(0)
    labels = np.array(["\x1b[31mred", "b", "c"])
    data = cal.Multiclass(labels[rng.integers(0, 3, 60)], rng.dirichlet([1, 1, 1], 60), classes=labels)
    found = cal.inference.by_class(data, draws=19)
    assert "\x1b" not in repr(found) + found._repr_html_()
    assert "\\x1b[31mred" in repr(found)


def test_the_p_value_is_the_rank_of_the_weighted_sum():
    data, _ = sample(300, 5, seed=3, spread=1.0)
    weights = {
        **dict.fromkeys(looks.WEIGHTS, 1.0),
        "temperature of all classes": 0.5,
        "more surprises than predicted": 1.5,
        "class frequencies, all classes": 3.0,
        "class frequencies in 2 bins, all classes": 0.5,
        "class frequencies, worst class": 0.75,
        "rank of the true class in 32 bins of confidence": 0.5,
        "confusion of classes, worst pair": 0.5,
    }
    assert weights == looks.WEIGHTS
    p, labels = looks.independent_rows(data, needed_by="", named=False)
    layout = looks.Layout.of(p)
    rng = looks.generator(0, "labels of a vector test")
    found = looks.statistics(layout, looks.gaps_of_labels(layout, labels, 99, rng))
    sums = np.zeros(100)
    for name, values in found.items():
        above = (values[None] >= values[:, None] - 1e-9 * np.abs(values[:, None])).sum(axis=1)
        sums += weights[name] / np.tan(np.pi * above / 101)
    assert VectorTest(99).test(data).p_value == pytest.approx(np.mean(sums >= sums[0] - 1e-9))


def test_small_probabilities_are_told_apart_down_to_25_halvings():
    p = np.array([[2**-23.5, 2**-24.5, 2**-26, 2**-40, 0.0]])
    layout = looks.Layout.of(np.c_[p, 1 - p.sum()])
    cell = layout.tables(slice(None))["pooled"].cell[0]
    assert cell[0] < cell[1] < cell[2] == cell[3] == cell[4]


@pytest.mark.parametrize(("classes", "columns"), [(128, 128), (129, 4)])
def test_confusions_of_very_many_classes_are_counted_by_rank(classes, columns):
    layout = looks.Layout.of(np.full((1, classes), 1 / classes))
    assert layout.tables(slice(None))["confusion"].size == classes * columns


def test_one_label_of_a_class_that_hardly_exists_has_a_bounded_effect():
    """Its squared gap of 1 is divided by a least variance: 0.05 of a class, 1 pooled, 1e-6 of a rank, 0.5 of a pair."""
    p = np.tile([1 - 2e-9, 1e-9, 1e-9], (10, 1))
    layout, labels = looks.Layout.of(p), np.array([1, *[0] * 9])
    found = looks.statistics(layout, looks.gaps_of_labels(layout, labels, 1, np.random.default_rng(0)))
    of_data = {name: values[0] for name, values in found.items()}
    assert of_data["class frequencies, worst class"] == pytest.approx(1 / 0.05, rel=1e-3)
    assert of_data["probabilities of all classes pooled"] == pytest.approx(2, rel=1e-3)  # events and others
    assert of_data["rank of the true class in 8 bins of confidence"] == pytest.approx(2e6, rel=1e-3)
    assert of_data["confusion of classes, worst pair"] == pytest.approx(2, rel=1e-3)


@pytest.mark.parametrize(("shape", "lines", "step"), [((50_000, 10), 1000, 20_000), ((50_000, 1000), 100, 4000)])
def test_rows_are_divided_so_that_their_labels_fit_into_memory(shape, lines, step):
    """20 million labels, or 4 million probabilities, at a time."""
    assert next(iter(looks._chunks(shape, lines))) == slice(0, step)


def test_neither_the_order_of_rows_nor_the_names_of_classes_matter():
    """Classwise interval and test of the same predictions, shuffled and with permuted columns."""
    rng = np.random.default_rng(3)
    p = rng.dirichlet([1.0, 2.0, 0.5, 1.5], 240)
    y = (rng.random((240, 1)) > np.cumsum(p**0.7 / (p**0.7).sum(axis=1, keepdims=True), axis=1)).sum(axis=1)
    rows, classes = rng.permutation(240), rng.permutation(4)
    same = cal.Multiclass(np.argsort(classes)[y[rows]], p[rows][:, classes])
    found = []
    for data in (cal.Multiclass(y, p), same):
        per_class = cal.interval(partial(cal.classwise, cal.ece), data).interval
        test = cal.calibration_test(data, method=VectorTest(99))
        found.append([*per_class, test.p_value])
    assert found[0] == pytest.approx(found[1], rel=1e-6, abs=1e-9)
