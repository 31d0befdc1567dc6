"""The lower bound of the error of whole vectors: below the truth, not idle, and honest about its side."""

from functools import partial

import numpy as np
import pytest

import calibrant as cal
from calibrant.inference import SequentialBound
from tests.inference.class_worlds import sample


def truth(norm):
    data, true = sample(100_000, 4, temperature=1.6, seed=99)
    gap = data.y_prob - true
    if norm == "kl":
        return float((true * np.log(true / data.y_prob)).sum(axis=1).mean())
    if norm == "squared":
        return float((gap**2).sum(axis=1).mean())
    return float(np.linalg.norm(gap, ord=norm, axis=1).mean())


@pytest.mark.parametrize("norm", [1, 2, "squared", "kl"])
def test_it_is_below_the_error_and_above_zero(norm):
    true = truth(norm)
    found = [SequentialBound(seed=k).interval(sample(1500, 4, temperature=1.6, seed=k)[0], norm=norm) for k in range(2)]
    assert all(0.1 * true < one.low < true for one in found)
    assert {one.side for one in found} == {"lower"}
    assert found[0].high == np.inf
    assert "lower bound only" in found[0].assumption


@pytest.mark.no_cover
def test_a_calibrated_model_is_rarely_bounded_away_from_zero():
    lows = [SequentialBound(seed=k).interval(sample(120, 3, seed=k)[0]).low for k in range(25)]
    assert np.mean(np.array(lows) > 0) <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 25)


def test_it_is_the_default_and_judges_more_rows_than_a_split():
    data, _ = sample(2000, 3, temperature=1.4)
    found = cal.interval(cal.calibration_error, data)
    split = cal.interval(cal.calibration_error, data, method=cal.inference.SplitLowerBound())
    assert found.interval == SequentialBound().interval(data, norm=1.0)
    assert found.interval.target == found.target
    assert found.interval.low > split.interval.low


def test_clusters_widen_the_approximate_bound():
    data, _ = sample(600, 3, temperature=2.0)
    rows = np.repeat(np.arange(600), 3)
    y, p = data.y_true[rows], data.y_prob[rows]
    alone, together = (
        SequentialBound(exact=False).interval(cal.Multiclass(y, p, group=group)).low
        for group in (np.arange(1800), rows)
    )
    assert together < alone
    weighted = cal.Multiclass(data.y_true, data.y_prob, weight=np.linspace(1, 2, 600))
    assert 0 < SequentialBound().interval(weighted).low < 1
    with pytest.raises(ValueError, match="exact"):
        SequentialBound(exact=True).interval(weighted)


def test_what_it_is_not_for_is_refused():
    data, _ = sample(100)
    with pytest.raises(TypeError, match="true error"):
        cal.interval(partial(cal.classwise, cal.ece), data, method=SequentialBound())
    with pytest.raises(TypeError, match="Multiclass"):
        cal.interval(cal.ece, data.top_label(), method=SequentialBound())
    unbounded = cal.estimators.Distance(lambda f, q: (q - f)[:, 0] ** 2, lambda f, q: 2 * (q - f))
    with pytest.raises(ValueError, match="bound"):
        SequentialBound().interval(data, norm=unbounded)
