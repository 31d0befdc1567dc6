"""Which classes: any false report at the level, a wrong class found and described, printed with its evidence."""

import numpy as np
import pytest

import calibrant as cal
from tests.inference.class_worlds import sample, softmax


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
