"""Sums of groups in cells of the scores."""

import numpy as np
import pytest

import calibrant as cal
from calibrant.inference import slice_sums
from calibrant.inference.groupings import groupings
from calibrant.inference.slice_sums import ScoreCells


def rows(weight=None):
    rng = np.random.default_rng(0)
    p = np.round(rng.beta(0.5, 2, 3000), 2)
    group = rng.integers(0, 3, 3000)
    return cal.Binary(rng.random(3000) < p, p, weight=weight), groupings(group, length=3000)[0]


def test_sums_are_those_of_the_rows_and_equal_scores_share_a_cell():
    data, grouping = rows()
    scores = ScoreCells.of(data)
    assert all(len(set(scores.cell[data.y_prob == p])) == 1 for p in np.unique(data.y_prob))
    found = scores.sums(grouping)
    for k in range(3):
        inside = grouping.index == k
        assert found.count[k].sum() == inside.sum()
        assert found.observed[k].sum() == data.y_true[inside].sum()
        gap = (data.y_prob[inside] - data.y_true[inside]).mean()
        assert found.gap[k] == pytest.approx(gap)
        p = data.y_prob[inside]
        assert found.gap_error[k] == pytest.approx(np.sqrt((p * (1 - p)).sum()) / len(p), rel=1e-3)


def test_equal_weights_change_nothing_and_many_groups_have_fewer_cells(monkeypatch):
    data, grouping = rows()
    plain = ScoreCells.of(data).sums(grouping)
    weighted = ScoreCells.of(rows(weight=np.full(3000, 7.0))[0]).sums(grouping)
    for name in ("count", "predicted", "observed"):
        assert getattr(weighted, name) == pytest.approx(getattr(plain, name))
    monkeypatch.setattr(slice_sums, "_MOST", 100)
    coarse = ScoreCells.of(data).sums(grouping)
    assert coarse.count.shape == (3, 32)
    assert coarse.count.sum(axis=1) == pytest.approx(plain.count.sum(axis=1))
