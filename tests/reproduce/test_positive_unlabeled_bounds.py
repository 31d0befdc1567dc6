"""Theorem 3 of the PU-ECE paper, against its formula."""

import math

import pytest
from reproduce.positive_unlabeled_bounds import fcmi_of_entropy, fcmi_of_vc_dimension, generalization_bound

import calibrant as cal
from calibrant import pu


def test_theorem_3_is_its_formula_and_twice_theorem_1_without_information():
    sizes = {"prior": 0.5, "n_positive": 1000, "n_unlabeled": 10_000}
    v = 0.25 / 1000 + 1 / 10_000
    bound = generalization_bound(**sizes, fcmi=5.0, fcmi_unlabeled=3.0, bins=cal.EqualMass(15))
    expected = 2 / 15 + math.sqrt(8 * v * (5 + 15 * math.log(2))) + 2 * math.sqrt(8e-4 * (3 + 15 * math.log(2)))
    assert bound == pytest.approx(expected)
    first, third = pu.bias_bound(**sizes), generalization_bound(**sizes, fcmi=0.0)
    assert third - 2 / 15 == pytest.approx(2 * (first - 2 / 15))
    with pytest.raises(ValueError, match="fcmi must be"):
        generalization_bound(**sizes, fcmi=1.0, fcmi_unlabeled=2.0)


def test_trivial_bounds_of_the_information():
    assert fcmi_of_entropy(10, 90) == pytest.approx(100 * math.log(2))
    assert fcmi_of_vc_dimension(11, 1e4) == pytest.approx(11 * math.log(2 * math.e * 1e4 / 11))
    assert fcmi_of_vc_dimension(50, 1) == pytest.approx(51 * math.log(2))
