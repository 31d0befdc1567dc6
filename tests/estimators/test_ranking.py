"""The area under the ROC curve."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score

import calibrant as cal

ROWS = st.lists(st.tuples(st.integers(0, 10), st.booleans(), st.floats(0.1, 3)), min_size=2, max_size=60)


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
