"""Columns line up: one number of decimals for all rows."""

import math

from calibrant.reporting.contents import Value
from calibrant.reporting.layout.columns import value_column, with_interval


def test_the_row_that_needs_most_decides_up_to_three():
    found = value_column([Value(1.0, 0.5, 1.5), Value(2.0, 1.98, 2.02)])
    assert found == [("1.000", "0.500 to 1.500"), ("2.000", "1.980 to 2.020")]
    tiny = value_column([Value(1.0, 0.999999, 1.000001)])
    assert tiny == [("1.000", "1.000 to 1.000")]


def test_an_interval_that_excludes_a_number_does_not_touch_it_in_print():
    assert value_column([Value(1.74, 0.04, 3.44)], least=1) == [("1.7", "0.0 to 3.4")]
    assert value_column([Value(1.74, 0.04, 3.44)], least=1, apart=0.0) == [("1.74", "0.04 to 3.44")]


def test_what_is_not_known():
    assert value_column([Value(0.5), Value(math.nan)]) == [("0.50", ""), ("–", "")]
    assert value_column([]) == []


def test_an_interval_from_zero_is_an_upper_bound_only_where_asked():
    assert value_column([Value(0.001, 0.0, 0.003)], scale=100, at_most=True) == [("≤ 0.30", "")]
    assert value_column([Value(0.001, 0.0, 0.003)], scale=100) == [("0.10", "0.00 to 0.30")]


def test_the_interval_stands_after_its_value():
    assert with_interval(("1", "0 to 2"), hide=True) == '1<span class="q hide"> (0 to 2)</span>'
    assert with_interval(("≤ 1", "")) == "≤ 1"
