"""Forecasts: spread against error, coverage and F(y)."""

import numpy as np
import pytest

import calibrant as cal
from calibrant.reporting.sections.omission import CannotBuild
from calibrant.reporting.sections.spread import BINS, NOMINAL, spread_section

RNG = np.random.default_rng(0)
STD = np.exp(0.4 * RNG.normal(size=2000))
NARROW = cal.Gaussian(1.5 * STD * RNG.normal(size=2000), np.zeros(2000), STD)


def test_errors_of_too_narrow_forecasts_lie_above_their_range():
    found = spread_section(NARROW, unit="minutes")
    assert found.unit == "minutes"
    assert len(found.bins) == BINS
    assert sum(one.n for one in found.bins) == pytest.approx(2000)
    for one in found.bins:
        assert one.null[0] < one.predicted < one.null[1] < one.error.value
        assert one.error.low < 1.5 * one.predicted * 1.15
        assert one.error.low < one.error.value < one.error.high
    assert [one.nominal for one in found.coverage] == list(NOMINAL)
    ninety = next(one for one in found.coverage if one.nominal == 0.9).observed
    assert ninety.value == pytest.approx(float(cal.coverage(NARROW)))
    assert ninety.high < 0.8
    assert sum(found.pit) == pytest.approx(2000)
    assert found.pit[0] > found.pit_null[1]
    assert found.pit_null[0] < 100 < found.pit_null[1]


def test_a_calibrated_forecaster_lies_inside():
    data = cal.Gaussian(STD * RNG.normal(size=2000), np.zeros(2000), STD)
    found = spread_section(data)
    inside = [one.null[0] <= one.error.value <= one.null[1] for one in found.bins]
    assert sum(inside) >= len(inside) - 3
    assert all(one.observed.low - 0.03 < one.nominal < one.observed.high + 0.03 for one in found.coverage)


def test_quantiles_have_coverage_only():
    y = RNG.normal(size=300)
    found = spread_section(cal.Quantiles(y, [0.05, 0.5, 0.95], np.tile([-1.0, 0.0, 1.0], (300, 1))))
    assert found.bins == ()
    assert [one.nominal for one in found.coverage] == [0.9]


def test_intervals_wider_than_an_ensemble_are_left_out():
    draws = RNG.normal(size=(200, 9))
    found = spread_section(cal.Samples(RNG.normal(size=200), draws))
    assert max(one.nominal for one in found.coverage) == 0.8  # nine members reach 8 / 10


def test_tables_have_spreads_only():
    found = spread_section(cal.BinTable.of(NARROW, cal.table.LogGrid()))
    assert len(found.bins) == BINS
    assert found.coverage == found.pit == ()


def test_few_forecasts():
    assert len(spread_section(cal.Gaussian([1.0, 2.0, 0.5], [0.0] * 3, [1.0, 2.0, 1.0])).bins) == 1


def test_what_has_neither():
    table = cal.BinTable.of(cal.Binary([0, 1], [0.2, 0.7]), cal.EqualWidth(2))
    with pytest.raises(CannotBuild):
        spread_section(table)
