"""The sections of single tasks: classes, and spread, coverage and F(y) of forecasts."""

import numpy as np
import pytest

import calibrant as cal
from calibrant.reporting.contents import CannotBuild
from calibrant.reporting.sections.task_sections import EDGES, NOMINAL, SPREAD_BINS, classes_section, spread_section
from tests.reporting.sections.classes_worlds import classes, softmax


@pytest.fixture(scope="module")
def data():
    return classes(lowered=0.8)


@pytest.fixture(scope="module")
def section(data):
    return classes_section(data)


@pytest.mark.no_cover
def test_the_worst_class_comes_first(section):
    assert section.test.p_value == 0.001
    assert section.rows[0].name == "1"
    assert section.rows[0].direction == "too low"
    assert section.rows[0].ratio.low > 1.2
    assert [row.p_value for row in section.rows] == sorted(row.p_value for row in section.rows)
    assert section.shown == 4


def test_totals_ratios_and_errors(data, section):
    for row in section.rows:
        k = int(row.name)
        assert row.observed == (data.y_true == k).sum()
        assert row.expected == pytest.approx(data.y_prob[:, k].sum())
        own = cal.interval(cal.observed_expected, data.one_vs_rest()[k])
        limits = (own.interval.low, own.interval.high)
        assert (row.ratio.value, row.ratio.low, row.ratio.high) == pytest.approx((float(own), *limits), rel=1e-6)
        assert row.error.low <= row.error.value <= row.error.high


def test_p_values_are_those_of_by_class(data, section):
    expected = {str(row.label): row.adjusted for row in cal.by_class(data)}
    assert {row.name: row.p_value for row in section.rows} == expected


def test_cells_by_class_and_range(data, section):
    for row, cells in zip(section.rows, section.cells, strict=True):
        p, hit = data.y_prob[:, int(row.name)], data.y_true == int(row.name)
        n, observed, expected, variance = np.array(cells).T
        assert n.sum() == len(data)
        inside = (p > EDGES[4]) & (p <= EDGES[5])
        assert (n[4], observed[4]) == (inside.sum(), hit[inside].sum())
        assert expected[4] == pytest.approx(p[inside].sum())
        assert variance[4] == pytest.approx((p[inside] * (1 - p[inside])).sum())
    assert section.ranges[4] == (0.1, 0.2)


@pytest.mark.no_cover
def test_calibrated_classes_are_not_flagged():
    section = classes_section(classes(seed=1))
    assert section.test.p_value > 0.05
    assert not any(row.flagged for row in section.rows)


@pytest.mark.no_cover
@pytest.mark.parametrize(
    "columns", [{"group": np.arange(3000) // 3}, {"weight": np.random.default_rng(0).random(3000)}]
)
def test_clusters_and_weights(columns):
    section = classes_section(classes(lowered=0.8, **columns))
    assert section.rows[0].name == "1"
    assert section.rows[0].flagged
    assert section.test.p_value == section.rows[0].p_value
    assert not any(row.flagged for row in classes_section(classes(seed=1, **columns)).rows)


def test_many_classes_show_twenty():
    section = classes_section(classes(600, 60))
    assert len(section.rows) == 60
    assert section.shown == 20
    assert sum(row.error.high is not None for row in section.rows) == 20


def test_classes_that_never_occur_and_single_rows():
    p = np.tile([0.5, 0.5, 0.0], (40, 1))
    found = {row.name: row for row in classes_section(cal.Multiclass([0, 1] * 20, p)).rows}
    assert np.isnan(found["2"].ratio.value)
    assert not found["2"].judged
    with pytest.raises(CannotBuild, match="One row"):
        classes_section(cal.Multiclass([0], [[0.5, 0.3, 0.2]]))


def test_decisions():
    section = classes_section(cal.Multiclass([0, 1, 2, 2] * 20, np.tile(np.eye(3)[[0, 1, 2, 1]], (20, 1))))
    assert section.test.p_value <= 0.05


RNG = np.random.default_rng(0)
STD = np.exp(0.4 * RNG.normal(size=2000))
NARROW = cal.Gaussian(1.5 * STD * RNG.normal(size=2000), np.zeros(2000), STD)


def test_errors_of_too_narrow_forecasts_lie_above_their_range():
    found = spread_section(NARROW, unit="minutes")
    assert found.unit == "minutes"
    assert len(found.bins) == SPREAD_BINS
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
    assert len(found.bins) == SPREAD_BINS
    assert found.coverage == found.pit == ()


def test_few_forecasts():
    assert len(spread_section(cal.Gaussian([1.0, 2.0, 0.5], [0.0] * 3, [1.0, 2.0, 1.0])).bins) == 1


def test_what_has_neither():
    table = cal.BinTable.of(cal.Binary([0, 1], [0.2, 0.7]), cal.EqualWidth(2))
    with pytest.raises(CannotBuild):
        spread_section(table)


@pytest.mark.no_cover
def test_flagged_classes_are_ranked_by_the_size_of_their_error():
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(6), 4000)
    y = (rng.random((4000, 1)) > p.cumsum(axis=1)).sum(axis=1)
    stated = p * [1.0, 1.0, 1.6, 0.4, 1.3, 1.0]
    data = cal.Multiclass(y, stated / stated.sum(axis=1, keepdims=True))
    section = classes_section(data)
    flagged = [row for row in section.rows if row.flagged]
    gaps = [abs(row.observed - row.expected) for row in flagged]
    assert len({row.p_value for row in flagged}) < len(flagged)
    assert gaps == sorted(gaps, reverse=True)
    assert section.rows[: len(flagged)] == tuple(flagged)
    assert "≤ 0.001" in str(cal.report(data)).split("\nClasses\n")[1].split("Recalibration")[0]


@pytest.mark.no_cover
def test_an_error_spread_over_many_classes_is_said_to_be():
    rng = np.random.default_rng(0)
    z = 3 * rng.normal(size=(500, 300))
    p, stated = softmax(z), softmax(0.75 * z)
    y = (rng.random((500, 1)) > p.cumsum(axis=1)).sum(axis=1).clip(0, 299)
    found = cal.report(cal.Multiclass(y, stated))
    assert found.verdict.direction == "under-confident"
    (said,) = [finding for finding in found.findings if finding.code == "CAL212"]
    assert said.text == "No class by itself differs beyond chance: the error is spread over all 300 classes."
    assert "the error is spread over all of them" in found.to_html()


def test_sizes_of_the_sections(section):
    assert section.draws == 999
    assert len(section.ranges) == 13
    assert (section.ranges[0], section.ranges[-1]) == ((0.0, 0.005), (0.98, 1.0))
    assert classes_section(classes(400, 40)).shown == 40
    found = spread_section(NARROW)
    assert (len(found.bins), len(found.pit), found.coverage[-1].nominal) == (14, 20, 0.99)
    assert len(spread_section(NARROW.take(np.arange(50))).bins) == 5
