"""Digits that intervals support."""

import math

import numpy as np
import pytest

from calibrant.reporting.rounding import (
    Rounded,
    approximate,
    at_least,
    bound,
    brief,
    count,
    decimals,
    fixed,
    loss,
    no_break,
    p_number,
    p_words,
    percent,
    points,
    rates,
    ratio,
    rounded,
    score,
    value_column,
)
from calibrant.results.estimate import Value


def test_the_two_ends_of_an_interval_never_print_alike():
    rng = np.random.default_rng(0)
    for low, width in zip(rng.normal(size=500), 10 ** rng.uniform(-4.5, 2, 500), strict=True):
        found = rounded(Value(low + width / 3, low, low + width))
        assert found.low != found.high
        assert len(found.value.split(".")[-1]) == len(found.low.split(".")[-1]) or "." not in found.low


def test_decimals_are_the_fewest_that_leave_five_units():
    assert decimals(0.0, 5.0) == 0
    assert decimals(0.0, 4.99) == 1
    assert decimals(0.77, 0.90) == 2
    assert decimals(0.3, 0.3) == 6
    assert decimals(0.3, float("inf")) == 0


@pytest.mark.parametrize("end", [0.9951, 0.9996, 0.99996])
def test_an_interval_that_excludes_one_does_not_print_as_touching_it(end):
    assert "1.0" not in ratio(Value(0.9, 0.8, end)).high
    assert ratio(Value(0.9, 0.8, 1.001)).high == "1.00"


def test_an_interval_that_excludes_zero_does_not_print_as_touching_it():
    assert points(Value(0.02, 0.0004, 0.06)).low == "0.04"
    assert percent(Value(-0.02, -0.06, -0.0004)).high == "−0.04"


def test_bounds_are_rounded_outward():
    rng = np.random.default_rng(1)
    for value in 10 ** rng.uniform(-4, 0, 300):
        assert float(bound(value)) >= 100 * value - 1e-6
        assert float(at_least(value)) <= 100 * value + 1e-6
    assert bound(0.07) == "7"
    assert bound(float("inf")) == "∞"


def test_small_scores_do_not_print_as_zero():
    assert score(3e-10) == "3e−8 %"
    assert score(4.6e-32) == "5e−30 %"
    assert (score(0.0), score(2e-7)) == ("0 %", "0.00002 %")


def test_rates_have_two_significant_digits():
    assert [score(x) for x in (0.0305, 0.166, 0.00027, 0.0, 1.0)] == ["3.05 %", "16.6 %", "0.027 %", "0 %", "100 %"]
    assert rates(Value(0.166)).value == "16.6"
    assert rates(Value(0.166, 0.15, 0.183)).ends == "15.0 to 18.3"
    assert [score(x) for x in (0.0, 0.2, 0.1234)] == ["0 %", "20 %", "12.3 %"]


def test_p_values_never_round_to_zero_nor_across_the_level():
    assert p_words(0.0) == "p < 0.001"
    assert p_words(0.001, draws=999) == "p ≤ 0.001"
    assert p_words(0.005, draws=199) == "p ≤ 0.005"
    assert p_words(0.002, draws=999) == "p = 0.002"
    assert p_words(0.0499) == "p = 0.0499"
    assert p_words(0.0503) == "p = 0.0503"
    assert p_number(0.21) == "0.21"


def test_counts_and_signs():
    assert [count(x) for x in (20000, 12.4, 3.4, 0)] == ["20,000", "12", "3.4", "0"]
    assert [approximate(x) for x in (2371, 51.2, 123456)] == ["2,400", "51", "120,000"]
    assert [fixed(x, 1) for x in (-0.01, -2.0, float("nan"))] == ["0.0", "−2.0", "unknown"]
    assert no_break("5 % (4 to 6 %)") == "5\xa0% (4 to 6\xa0%)"


def test_mean_scores_have_four_significant_digits_and_their_intervals_the_same_decimals():
    assert loss(Value(0.123456)) == Rounded("0.1235", "", "")
    assert loss(Value(0.123456, 0.1, 0.15)) == Rounded("0.1235", "0.1000", "0.1500")


def test_the_digits_of_a_row_follow_from_its_own_interval_as_in_a_sentence():
    values = [Value(1.0, 0.5, 1.5), Value(2.0, 1.98, 2.02)]
    assert value_column(values) == [("1.0", "0.5 to 1.5"), ("2.000", "1.980 to 2.020")]
    assert value_column(values) == [(found.value, found.ends) for found in map(rounded, values)]


def test_an_interval_that_excludes_a_prediction_is_seen_to_do_so_beside_its_rounded_text():
    assert rates(Value(0.271, 0.211, 0.338), 0.2097).ends == "21.1 to 33.8"
    assert rates(Value(0.271, 0.211, 0.338), 0.15).ends == "21 to 34"


def test_an_interval_that_excludes_a_number_does_not_touch_it_in_print():
    assert value_column([Value(1.74, 0.04, 3.44)], least=1) == [("1.7", "0.0 to 3.4")]
    assert value_column([Value(1.74, 0.04, 3.44)], least=1, apart=0.0) == [("1.74", "0.04 to 3.44")]


@pytest.mark.parametrize(("value", "words"), [(0.01, "1 point"), (-0.01, "−1 point"), (0.02, "2 points")])
def test_one_point_is_singular(value, words):
    found = points(Value(value, value - 0.04, value + 0.04))
    assert (found.points, found.percentage_points) == (words, words.replace(" ", " percentage "))


def test_what_is_not_known():
    assert value_column([Value(0.5), Value(math.nan)]) == [("0.50", ""), ("–", "")]
    assert value_column([]) == []


def test_an_interval_from_zero_is_an_upper_bound_only_where_asked():
    assert value_column([Value(0.001, 0.0, 0.003)], scale=100, at_most=True) == [("≤ 0.30", "")]
    assert value_column([Value(0.001, 0.0, 0.003)], scale=100) == [("0.10", "0.00 to 0.30")]


def test_examples_of_decimals() -> None:
    assert (decimals(0.77, 0.90), decimals(0.49, 1.0), decimals(-0.3, 7.9)) == (2, 1, 0)
    assert (decimals(0.9, 0.996), decimals(0.9, 0.996, apart=1.0)) == (2, 3)


def test_examples_of_value_column() -> None:
    assert value_column([Value(0.83, 0.77, 0.9), Value(1.5, 1.0, 2.5)], least=2) == [
        ("0.83", "0.77 to 0.90"),
        ("1.50", "1.00 to 2.50"),
    ]
    assert value_column([Value(0.001, 0.0, 0.0031)], scale=100, at_most=True) == [("≤ 0.31", "")]


def test_examples_of_bound() -> None:
    assert (bound(0.0041), bound(0.00413), bound(0.07), bound(0.0803)) == ("0.41", "0.42", "7", "9")


def test_examples_of_score() -> None:
    assert (score(0.2), score(0.005), score(0.125), score(1 / 3)) == ("20 %", "0.5 %", "12.5 %", "33.3 %")


def test_examples_of_count() -> None:
    assert (count(20000), count(732.4), count(3.4), count(3.0)) == ("20,000", "732", "3.4", "3")


def test_examples_of_approximate() -> None:
    assert (approximate(2371.0), approximate(84.6)) == ("2,400", "85")


def test_examples_of_p_words() -> None:
    assert (p_words(0.0004), p_words(0.012), p_words(0.42), p_words(0.001, draws=999), p_words(0.0496)) == (
        "p < 0.001",
        "p = 0.012",
        "p = 0.42",
        "p ≤ 0.001",
        "p = 0.0496",
    )


def test_examples_of_fixed() -> None:
    assert (fixed(-0.04, 1), fixed(-1234.5, 1), fixed(float("inf"), 2)) == ("0.0", "−1,234.5", "∞")


def test_examples_of_brief() -> None:
    assert (brief(1.5), brief(-250.0), brief(1.5e-30), brief(1.2e29)) == ("1.5", "−250", "1.5e−30", "1.2e29")


def test_examples_of_rounded() -> None:
    assert rounded(Value(0.0031, 0.0022, 0.0039), scale=100) == Rounded("0.31", "0.22", "0.39")


def test_an_interval_that_includes_a_number_is_seen_to_include_it():
    assert rounded(Value(0.04, 0.0175, 0.098), scale=100, apart=0.0179).ends == "1.75 to 9.80"
    assert rounded(Value(0.264, 0.17, 0.3734), scale=100, apart=0.373).ends == "17.0 to 37.3"
    assert rounded(Value(0.04, 0.0175, 0.098), scale=100, apart=0.02).ends == "2 to 10"
