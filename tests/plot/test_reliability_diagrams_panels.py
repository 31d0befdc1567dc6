"""Panels per class, and the strip of over- and underconfidence."""

import numpy as np
import pytest
from matplotlib.figure import Figure

import calibrant as cal
from tests.plot.figures import line

pytestmark = pytest.mark.usefixtures("unchanged_settings")


def test_panels_show_the_top_label_and_every_class():
    rng = np.random.default_rng(1)
    p = rng.dirichlet([1, 1, 1], 300)
    several = cal.Multiclass(rng.integers(0, 3, 300), p)
    tables = cal.inference.class_tables(several)
    panels = cal.plot.class_panels(tables, ax=Figure().subplots(1, 5))
    assert [panel.get_title() for panel in panels] == ["top label", "0", "1", "2"]
    for panel, table in zip(panels, tables.values(), strict=True):
        np.testing.assert_array_equal(line(panel, "observed").get_ydata(), table.filled().observed_mean)
    with pytest.raises(ValueError, match="4 panels need"):
        cal.plot.class_panels(tables, ax=Figure().subplots(1, 2))


def test_over_and_underconfidence_of_the_strip_add_up_to_the_ece(data, ax):
    estimate = cal.ece(data, bins=cal.EqualWidth(10))
    gaps = cal.inference.confidence_gaps(estimate)
    assert gaps.over + gaps.under == pytest.approx(estimate)
    assert gaps.over > 2 * gaps.under
    cal.plot.confidence_strip(gaps, ax=ax)
    heights = sorted(bar.get_height() for bar in ax.patches)
    np.testing.assert_allclose(heights, np.sort(gaps.gap))
    assert {bar.get_hatch() for bar in ax.patches if bar.get_height() > 0} == {"//"}


def test_a_low_confidence_claims_too_much_where_less_is_right():
    estimate = cal.ece([0, 0, 0, 1], [0.4, 0.4, 0.4, 0.4], bins=cal.EqualWidth(2))
    assert cal.inference.confidence_gaps(estimate).gap == pytest.approx([-0.15])
    assert cal.inference.confidence_gaps(estimate, top_label=True).gap == pytest.approx([0.15])


def test_panels_of_predictions_are_those_of_their_tables():
    rng = np.random.default_rng(1)
    several = cal.Multiclass(rng.integers(0, 3, 300), rng.dirichlet([1, 1, 1], 300))
    panels = cal.plot.class_panels(several)
    assert [panel.get_title() for panel in panels] == ["top label", "0", "1", "2"]
    tables = cal.inference.class_tables(several)
    for panel, table in zip(panels, tables.values(), strict=True):
        np.testing.assert_array_equal(line(panel, "observed").get_ydata(), table.filled().observed_mean)


def test_many_classes_show_the_most_frequent_in_rows_of_four():
    rng = np.random.default_rng(1)
    y = np.minimum(rng.geometric(0.1, 2000) - 1, 39)
    panels = cal.plot.class_panels(cal.Multiclass(y, rng.dirichlet(np.ones(40), 2000)), most=5)
    assert [panel.get_title() for panel in panels] == ["top label", "0", "1", "2", "3", "4"]
    assert len(panels[0].figure.axes) == 6
    assert len({panel.get_subplotspec().colspan.start for panel in panels}) == 4


def test_a_strip_of_predictions(data, ax):
    cal.plot.confidence_strip(data, ax=ax)
    expected = cal.inference.confidence_gaps(cal.ece(data))
    np.testing.assert_allclose(sorted(bar.get_height() for bar in ax.patches), np.sort(expected.gap))
