"""Reliability diagrams draw the numbers they were given, on the axes they were given."""

import numpy as np
import pytest
from matplotlib.figure import Figure
from sklearn.isotonic import IsotonicRegression

import calibrant as cal
from tests.plot.figures import line

pytestmark = pytest.mark.usefixtures("unchanged_settings")


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


def test_before_and_after_differ_in_marker_and_line_too(data, ax):
    after = cal.recalibrate.Platt().fit(data.y_prob, data.y_true).predict_proba(data.y_prob)[:, 1]
    cal.plot.before_after(cal.ece(data), cal.ece(data.y_true, after), ax=ax)
    first, second = line(ax, "before"), line(ax, "after")
    assert first.get_marker() != second.get_marker()
    assert first.get_linestyle() != second.get_linestyle()
    np.testing.assert_array_equal(first.get_xdata(), cal.ece(data).bins.filled().predicted_mean)


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
    with pytest.raises(ValueError, match="has no bins"):
        cal.inference.confidence_gaps(cal.BinTable.of(data, cal.table.Distinct()))


def test_new_figures_are_square_and_fit_a_column_with_the_legend_below(data):
    ax = cal.plot.reliability_diagram(data)
    figure = ax.figure
    figure.canvas.draw()
    assert figure.get_size_inches()[0] == pytest.approx(3.4)
    box, legend = ax.get_window_extent(), ax.get_legend().get_window_extent()
    assert box.width == pytest.approx(box.height, rel=0.01)
    assert legend.y1 <= box.y0  # nothing is covered
    whole = figure.bbox
    assert legend.x1 <= whole.x1
    assert legend.y0 >= whole.y0
    assert box.width > 0.7 * whole.width


def test_predictions_have_dots_by_rows_and_a_histogram(data, ax):
    cal.plot.reliability_diagram(data, ax=ax)
    curve = cal.reliability_curve(data, bins=cal.EqualWidth(10))
    dots = next(drawn for drawn in ax.collections if "area shows rows" in str(drawn.get_label()))
    np.testing.assert_allclose(dots.get_offsets(), np.stack([curve.predicted, curve.observed], axis=1))
    np.testing.assert_allclose(dots.get_sizes(), np.maximum(160 * curve.share, 8))
    assert len(ax.patches) == 20


def test_log_odds_show_rare_events(ax):
    rng = np.random.default_rng(0)
    p = 1 / (1 + np.exp(-rng.normal(-5, 1.5, 2000)))
    rare = cal.Binary(rng.random(2000) < p, p)
    cal.plot.reliability_diagram(rare, ax=ax, axis="log odds")
    ax.figure.canvas.draw()  # warnings are errors
    assert ax.get_xscale() == ax.get_yscale() == "logit"
    assert ax.get_xlim()[1] < 0.99
    assert [label.get_text() for label in ax.get_xticklabels()] == [f"{tick:g}" for tick in ax.get_xticks()]
    assert 0.01 in ax.get_xticks()
    with pytest.raises(ValueError, match="axis must be"):
        cal.plot.reliability_diagram(rare, ax=ax, axis="log")


def test_several_classes_are_drawn_by_their_top_label(ax):
    rng = np.random.default_rng(0)
    several = cal.Multiclass(rng.integers(0, 3, 300), rng.dirichlet([1, 1, 1], 300))
    cal.plot.reliability_diagram(several, ax=ax)
    expected = cal.reliability_curve(several.top_label()).observed
    np.testing.assert_array_equal(line(ax, "observed").get_ydata(), expected)


def test_before_and_after_take_predictions(data, ax):
    after = cal.recalibrate.Platt().fit(data).predict_proba(data.y_prob)[:, 1]
    cal.plot.before_after(data, cal.Binary(data.y_true, after), ax=ax)
    np.testing.assert_array_equal(line(ax, "before").get_ydata(), cal.reliability_curve(data).observed)
    assert line(ax, "before").get_linestyle() != line(ax, "after").get_linestyle()


def test_no_module_is_taken_for_a_function():
    assert not hasattr(cal.plot, "reliability")


def test_bins_of_predicted_spreads_are_drawn_as_spread_against_error(ax):
    rng = np.random.default_rng(0)
    sigma = rng.uniform(0.5, 2, 300)
    estimate = cal.ence(sigma * rng.standard_normal(300), np.zeros(300), sigma)
    curve = cal.spread_curve(estimate.bins)
    assert estimate.plot(ax=ax) is ax
    np.testing.assert_allclose(line(ax, "observed").get_data(), [curve.x, curve.observed])
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("root mean variance", "RMSE")


def test_a_forecast_is_drawn_as_its_spread_curve(ax):
    rng = np.random.default_rng(0)
    std = np.exp(0.4 * rng.normal(size=500))
    forecast = cal.Gaussian(std * rng.normal(size=500), np.zeros(500), std)
    cal.plot.forecast_diagram(forecast, ax=ax)
    np.testing.assert_array_equal(ax.lines[-1].get_ydata(), cal.spread_curve(forecast).observed)
