"""The study of orders and seeds: orders move nothing, seeds a little."""

import numpy as np

import calibrant as cal
from reproduce import order_of_rows


def test_spreads_over_orders_are_zero_and_those_over_seeds_are_not(monkeypatch):
    rng = np.random.default_rng(0)
    monkeypatch.setattr(order_of_rows, "TIMES", 3)
    names = ("error", "CrossFittedBound", "SplitSampleBound")
    monkeypatch.setattr(order_of_rows, "STATISTICS", {name: order_of_rows.STATISTICS[name] for name in names})
    p = rng.random(300)
    rows = list(order_of_rows.found("made", p, (rng.random(300) < p**2).astype(int)))
    assert [row["number"] for row in rows] == list(names)
    assert rows[0]["over_orders"] < 1e-9
    assert all(row["over_seeds"] > 0 for row in rows)
    assert rows[0]["value"] > rows[1]["value"]
    assert sum(line.startswith("| made | 2 |") for line in order_of_rows.page(rows)) == 3


def test_a_statistic_is_that_of_the_package():
    rng = np.random.default_rng(1)
    p = rng.random(500)
    rows = cal.Binary((rng.random(500) < p**2).astype(int), p)
    low = cal.variational_error(rows, bound=cal.estimators.CrossFittedBound()).interval.low
    assert order_of_rows.STATISTICS["CrossFittedBound"](rows) == float(low)
