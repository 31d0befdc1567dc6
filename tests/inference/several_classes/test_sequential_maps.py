"""Growing parts: each judged by a map that was fitted before."""

import numpy as np
import pytest

import calibrant as cal
from calibrant.inference.several_classes.sequential_maps import judged_parts, labels_of
from tests.inference.class_worlds import sample


def test_parts_are_all_rows_but_the_first_part_each_once():
    data, _ = sample(203, 4)
    parts = list(judged_parts(data, parts=5, seed=0, needed_by="test"))
    rows = np.concatenate([part.row for part in parts])
    assert len(parts) == 4
    assert len(rows) == len(set(rows.tolist())) == 203 - 41
    assert np.array_equal(np.concatenate([labels_of(part) for part in parts]), data.y_true[rows])


def test_the_map_of_a_part_does_not_see_it():
    data, _ = sample(200, 3)
    first, *_ = judged_parts(data, parts=5, seed=0, needed_by="test")
    changed = data.y_true.copy()
    later = np.setdiff1d(np.arange(200), _rows_of_first_part(data))
    changed[later] = (changed[later] + 1) % 3
    again, *_ = judged_parts(cal.Multiclass(changed, data.y_prob), parts=5, seed=0, needed_by="test")
    assert np.allclose(first.fitted, again.fitted)


def _rows_of_first_part(data):
    judged = np.concatenate([part.row for part in judged_parts(data, parts=5, seed=0, needed_by="test")])
    return np.setdiff1d(np.arange(len(data)), judged)


def test_too_few_rows_and_other_tasks_are_refused():
    data, _ = sample(19)
    with pytest.raises(cal.InvalidPredictions, match="needs 20"):
        list(judged_parts(data, parts=5, seed=0, needed_by="test"))
    with pytest.raises(cal.InvalidPredictions, match="Multiclass"):
        list(judged_parts(data.top_label(), parts=5, seed=0, needed_by="test"))
