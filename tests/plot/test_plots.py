"""Figures draw the numbers they were given, on the axes they were given, and leave matplotlib as it was."""

import subprocess
import sys

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.figure import Figure
from sklearn.isotonic import IsotonicRegression

import calibrant as cal
from calibrant.inference import ByGroup
from calibrant.results.estimate import Interval, Significance


@pytest.fixture
def ax():
    return Figure().subplots()


@pytest.fixture(autouse=True)
def no_setting_of_matplotlib_changes():
    before = dict(mpl.rcParams)
    yield
    assert dict(mpl.rcParams) == before


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    p = rng.random(500).round(2)
    return cal.Binary(rng.random(500) < 0.5 + 0.7 * (p - 0.5), p)


def line(ax, label):
    return next(drawn for drawn in ax.lines if drawn.get_label().startswith(label))


def test_the_curve_of_a_fine_table_is_the_isotonic_regression(data, ax):
    cal.plot.reliability_diagram(cal.BinTable.of(data, cal.table.Distinct()), ax=ax)
    x, y = line(ax, "observed").get_data()
    expected = IsotonicRegression().fit(data.y_prob, data.y_true)
    np.testing.assert_allclose(y, expected.predict(x), atol=1e-12)
    np.testing.assert_allclose(x, np.unique(data.y_prob), atol=1e-15)


def test_an_estimate_draws_its_bins_with_markers_and_its_value(data, ax):
    estimate = cal.ece(data)
    assert estimate.plot(ax=ax) is ax
    some = estimate.bins.filled()
    np.testing.assert_array_equal(line(ax, "observed").get_data(), [some.predicted_mean, some.observed_mean])
    assert line(ax, "observed").get_marker() == "o"
    assert f"{estimate:.4f}" in ax.get_title()


def test_both_bands_of_a_curve_are_drawn(data, ax):
    curve = cal.reliability_curve(data, draws=20)
    assert curve.plot(ax=ax) is ax
    np.testing.assert_array_equal(line(ax, "observed").get_data(), [curve.predicted, curve.observed])
    consistency, confidence = ax.collections
    for drawn, low, high in (
        (consistency, curve.consistency_low, curve.consistency_high),
        (confidence, curve.confidence_low, curve.confidence_high),
    ):
        across_up = drawn.get_paths()[0].get_extents()
        assert (across_up.y0, across_up.y1) == pytest.approx((low.min(), high.max()))
        assert "95%" in drawn.get_label()


def test_predictions_are_drawn_as_their_curve(data, ax):
    cal.plot.reliability_diagram(data, ax=ax)
    np.testing.assert_array_equal(line(ax, "observed").get_ydata(), cal.reliability_curve(data).observed)


def test_the_histogram_shows_the_share_of_rows(data, ax):
    table = cal.BinTable.of(data, cal.table.Distinct())
    cal.plot.reliability_diagram(table, ax=ax, histogram=table)
    heights = np.array([bar.get_height() for bar in ax.patches])
    expected = np.histogram(data.y_prob, 20, (0, 1))[0]
    assert heights.max() == pytest.approx(0.15)
    share = table.coarsen(cal.EqualWidth(20)).share
    np.testing.assert_allclose(heights, 0.15 * share / share.max())
    assert len(heights) == len(expected)


def test_bins_of_predicted_spreads_are_drawn_as_spread_against_error(ax):
    rng = np.random.default_rng(0)
    sigma = rng.uniform(0.5, 2, 300)
    estimate = cal.ence(sigma * rng.standard_normal(300), np.zeros(300), sigma)
    curve = cal.spread_curve(estimate.bins)
    assert estimate.plot(ax=ax) is ax
    np.testing.assert_allclose(line(ax, "observed").get_data(), [curve.x, curve.observed])
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("root mean variance", "RMSE")


def test_before_and_after_differ_in_marker_and_line_too(data, ax):
    after = cal.recalibrate.Platt().fit(data.y_prob, data.y_true).predict_proba(data.y_prob)[:, 1]
    cal.plot.before_after(cal.ece(data), cal.ece(data.y_true, after), ax=ax)
    first, second = line(ax, "before"), line(ax, "after")
    assert first.get_marker() != second.get_marker()
    assert first.get_linestyle() != second.get_linestyle()
    np.testing.assert_array_equal(first.get_xdata(), cal.ece(data).bins.filled().predicted_mean)


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


def test_the_forest_puts_the_worst_group_on_top_and_fills_those_that_stand_out(ax):
    made = {
        name: cal.Estimate(e, name="ECE", method="", n=9, interval=Interval(e - 0.1, e + 0.1, 0.95, ""))
        for name, e in (("a", 0.2), ("b", 0.4), (3, 0.3))
    }
    tests = {name: Significance(1.0, 0.001 if name == "b" else 0.5, "", 9) for name in made}
    cal.plot.forest(ByGroup(made, tests, tests["b"]), ax=ax)
    assert [text.get_text() for text in ax.get_yticklabels()] == ["b (n = 9)", "3 (n = 9)", "a (n = 9)"]
    squares = [drawn for drawn in ax.lines if drawn.get_marker() == "s"]
    assert [square.get_markerfacecolor() for square in squares] == ["#0072B2", "white", "white"]
    np.testing.assert_allclose(ax.lines[0].get_xdata(), [0.3, 0.5])
    assert [row.group for row in cal.inference.forest_rows(made)] == ["b", "3", "a"]


def test_priors_shade_the_shares_they_imply(ax):
    rng = np.random.default_rng(2)
    found = cal.pu.reliability(cal.PositiveUnlabeled(rng.beta(3, 2, 300), rng.random(900), prior=0.2))
    cal.plot.reliability_diagram(found, ax=ax, priors=(0.1, 0.3))
    band = next(drawn for drawn in ax.collections if "priors" in str(drawn.get_label()))
    extent = band.get_paths()[0].get_extents()
    assert extent.y0 == pytest.approx(0.5 * found.rate.min())
    assert extent.y1 == pytest.approx(min(1.0, 1.5 * found.rate.max()))


def test_what_cannot_be_drawn_says_why(data):
    with pytest.raises(ValueError, match="keeps no bins"):
        cal.plot.reliability_diagram(cal.brier(data), ax=Figure().subplots())
    with pytest.raises(ValueError, match="no bins to draw"):
        cal.inference.confidence_gaps(cal.BinTable.of(data, cal.table.Distinct()))


@pytest.mark.parametrize("module", ["regression", "reliability"])
def test_every_module_can_be_the_first_to_be_imported(module):
    code = f"import calibrant.plot.{module} as first; print(first.__name__)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (run.stdout.strip(), run.stderr) == (f"calibrant.plot.{module}", "")
