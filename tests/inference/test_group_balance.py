"""Predicted and observed events of a group."""

import numpy as np

import calibrant as cal
from calibrant.inference.group_balance import balance


def test_the_direction_is_said_where_it_is_clear():
    rng = np.random.default_rng(0)
    p = rng.random(500)
    low = balance(cal.Binary(rng.random(500) < np.sqrt(p), p))
    assert low["direction"] == "too low"
    assert low["observed"] > low["predicted"] == p.mean()
    assert balance(cal.Binary([1, 0], [0.5, 0.4]))["direction"] == ""


def test_several_classes_count_right_predictions_and_forecasts_nothing():
    data = cal.Multiclass([0, 1, 2], [[0.8, 0.1, 0.1], [0.6, 0.3, 0.1], [0.1, 0.1, 0.8]])
    assert balance(data)["events"] == 2
    assert balance(cal.Gaussian([0.0], [0.0], [1.0])) == {}


def test_weights_count():
    found = balance(cal.Binary([1, 0], [0.5, 0.3], weight=[3, 1]))
    assert (found["observed"], found["events"]) == (0.75, 1)
