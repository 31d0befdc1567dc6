"""Which groups are looked at."""

import numpy as np
import pytest

import calibrant as cal
from calibrant.inference.group_search import confirmed, group_evidence, strongest, words
from calibrant.inference.groupings import groupings


def rows(n=4000):
    rng = np.random.default_rng(0)
    p, place = rng.random(n), rng.integers(0, 5, n)
    return cal.Binary(rng.random(n) < np.where(place == 3, p**1.7, p), p), groupings(place, length=n)


def test_the_strongest_keep_their_order():
    found = group_evidence(*rows(), None)
    assert [one.number for one in found] == [0, 1, 2, 3, 4]
    two = strongest(found, 2)
    assert 3 in [one.number for one in two]
    assert sorted(one.number for one in two) == [one.number for one in two]


def test_rows_that_confirm_are_not_those_that_found():
    data, columns = rows()
    half, found = confirmed(data, columns, None, 2)
    assert len(half) == 2000
    one = next(one for one in found if one.grouping.names[one.number] == 3)
    assert one.adjusted < 1e-3
    assert one.found < 1e-3
    assert len(one.grouping.index) == 2000
    inside = half.take(one.grouping.rows()[one.number])
    assert inside.y_prob.mean() > inside.y_true.mean()


def test_halves_consist_of_whole_clusters():
    data, columns = rows()
    data = cal.Binary(data.y_true, data.y_prob, group=np.arange(len(data)) // 7)
    half, found = confirmed(data, columns, None, 2)
    own = np.unique(half.group)
    assert len(own) == 572 // 2
    assert len(half) == np.isin(data.group, own).sum()
    assert next(one for one in found if one.grouping.names[one.number] == 3).adjusted < 1e-3
    one = cal.Binary([0, 1], [0.5, 0.5], group=[1, 1])
    with pytest.raises(cal.InvalidPredictions, match="one cluster only"):
        confirmed(one, groupings([0, 1], length=2), None, 2)


def test_the_words_name_the_tests():
    data, columns = rows(50)
    assert words(data, columns, None) == "multi-scale and likelihood ratio tests"
    assert words(data, columns * 5, None) == "gap and likelihood ratio tests"
    assert words(data, columns, cal.inference.Spiegelhalter()) == "Spiegelhalter()"
    assert words(cal.Binary([0], [0.1], group=["a"]), columns, None) == "clustered score test"
    gauss = cal.Gaussian([0.0], [0.0], [1.0])
    assert words(gauss, columns, None) == "default test"
