"""Several classes: the test of the vector, classes worst first, and their sums."""

import numpy as np
import pytest

import calibrant as cal
from calibrant.reporting.sections.classes import EDGES, classes_section
from calibrant.reporting.sections.omission import CannotBuild
from tests.reporting.sections.classes_worlds import classes


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
