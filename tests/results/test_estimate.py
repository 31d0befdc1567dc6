"""A result is a float that remembers how it was measured, and no control character of a user's text gets through."""

import copy
import json
import math
import pickle
from dataclasses import FrozenInstanceError, replace

import matplotlib as mpl
import numpy as np
import pytest

import calibrant as cal
from calibrant.results.estimate import Component, Value, printable

mpl.use("Agg")
ESTIMATE = cal.Estimate(0.25, name="ECE (L1)", method="EqualMass(n_bins=2)", n=8, details={"null": 0.1})
INTERVAL = cal.Interval(0.2, 0.3, level=0.95, method="Bootstrap(n=999)")
SIGNIFICANCE = cal.Significance(statistic=1.5, p_value=0.2, method="KS", n=10)


def test_an_estimate_is_a_float_and_arithmetic_gives_plain_floats():
    assert ESTIMATE == 0.25
    assert type(ESTIMATE + 0) is float
    assert f"{ESTIMATE:.3f} {ESTIMATE}" == "0.250 0.25"
    assert np.asarray([ESTIMATE]).dtype == np.float64
    assert json.dumps(ESTIMATE) == "0.25"
    assert hash(ESTIMATE) == hash(0.25)


def test_an_estimate_cannot_be_changed():
    with pytest.raises(AttributeError, match="immutable"):
        ESTIMATE.name = "other"


@pytest.mark.parametrize("clone", [copy.copy, copy.deepcopy, lambda e: pickle.loads(pickle.dumps(e))])
def test_copies_keep_their_fields(clone):
    kept = clone(ESTIMATE.with_interval(INTERVAL))
    assert kept == 0.25
    assert (kept.name, kept.method, kept.n, kept.interval, kept.details) == (
        "ECE (L1)",
        "EqualMass(n_bins=2)",
        8,
        INTERVAL,
        {"null": 0.1},
    )


def test_to_dict_is_ready_for_json():
    text = json.dumps(ESTIMATE.with_interval(INTERVAL).to_dict())
    assert json.loads(text)["interval"]["level"] == 0.95
    assert ESTIMATE.to_dict()["interval"] is None


def test_repr_shows_the_interval_and_its_level():
    assert repr(ESTIMATE.with_interval(INTERVAL)) == "<ECE (L1) 0.25 [0.2, 0.3] at 95%, n=8, EqualMass(n_bins=2)>"


def test_notebooks_get_an_escaped_table():
    html = cal.Estimate(0.1, name="<script>", method="m", n=1).with_interval(INTERVAL)._repr_html_()
    assert "&lt;script&gt;" in html
    assert "<script>" not in html
    assert "95\u00a0% interval" in html


def test_negative_estimates_stay_negative_and_clip_on_request():
    estimate = cal.Estimate(-0.1, name="x", method="m", n=1)
    assert estimate == -0.1
    assert estimate.clipped == 0.0
    assert estimate.value == -0.1


def test_an_interval_knows_what_it_contains():
    assert 0.25 in INTERVAL
    assert 0.31 not in INTERVAL
    assert 0.19 not in INTERVAL
    assert INTERVAL.low in INTERVAL
    assert INTERVAL.high in INTERVAL
    assert np.nextafter(0.2, 0) not in INTERVAL
    assert np.nextafter(0.3, 1) not in INTERVAL
    assert math.nan not in INTERVAL


@pytest.mark.parametrize(
    ("found", "field"),
    [
        *((INTERVAL, field) for field in ("low", "high", "level", "method", "side", "assumption", "target")),
        *((SIGNIFICANCE, field) for field in ("statistic", "p_value", "method", "n", "null")),
    ],
)
def test_fields_of_results_cannot_be_changed(found, field):
    before = getattr(found, field)
    with pytest.raises(FrozenInstanceError):
        setattr(found, field, before)


@pytest.mark.parametrize("field", ["name", "method", "n", "target", "interval", "bins", "details", "value", "other"])
def test_no_field_of_an_estimate_can_be_set(field):
    with pytest.raises(AttributeError, match="Estimate is immutable"):
        setattr(ESTIMATE, field, None)


def test_equal_results_are_equal_and_can_be_keys():
    assert cal.Interval(0.2, 0.3, level=0.95, method="Bootstrap(n=999)") == INTERVAL
    assert cal.Interval(0.2, 0.3, level=0.9, method="Bootstrap(n=999)") != INTERVAL
    assert len({INTERVAL, cal.Interval(0.2, 0.3, level=0.95, method="Bootstrap(n=999)")}) == 1
    assert (INTERVAL.side, INTERVAL.assumption, INTERVAL.target) == ("two-sided", "", None)
    assert str(INTERVAL) == "[0.2, 0.3]"


def test_a_target_fills_in_that_of_an_interval_without_one():
    mean, slope = cal.results.Target("mean score"), cal.results.Target("binned error", 1)
    filled = ESTIMATE.with_interval(INTERVAL).with_target(mean)
    assert (filled.target, filled.interval.target) == (mean, mean)
    own = ESTIMATE.with_interval(replace(INTERVAL, target=slope)).with_target(mean)
    assert (own.target, own.interval.target) == (mean, slope)
    assert ESTIMATE.with_target(mean).interval is None
    assert ESTIMATE.target is None


def test_significance_prints_in_one_line_and_exports():
    assert repr(SIGNIFICANCE) == "<KS: statistic 1.5, p = 0.2, n=10>"
    assert SIGNIFICANCE.to_dict()["p_value"] == 0.2


def test_a_test_says_of_what_it_consists_and_what_decided():
    level, shape = Component("level", 0.001, 0.25, 1), Component("shape", 0.2, 0.65)
    found = cal.Significance(0.001, 0.004, method="family", n=10, components=(level, shape), decided=level)
    assert SIGNIFICANCE.components == ()
    assert SIGNIFICANCE.decided is None
    assert shape.direction == 0
    plain = json.loads(json.dumps(found.to_dict()))
    assert plain["components"][0] == {"name": "level", "p_value": 0.001, "share": 0.25, "direction": 1}
    assert plain["decided"] == plain["components"][0]
    assert hash(found) == hash(replace(found))


def test_an_estimate_draws_its_bins_on_the_axes_it_is_given():
    import matplotlib.pyplot as plt

    before = dict(mpl.rcParams)
    figure, ax = plt.subplots()
    estimate = cal.ece([0, 0, 1, 1], [0.1, 0.3, 0.6, 0.8], bins=cal.EqualWidth(2))
    assert estimate.plot(ax) is ax
    np.testing.assert_allclose(ax.lines[-1].get_xydata(), [[0.2, 0.0], [0.7, 1.0]])
    assert dict(mpl.rcParams) == before
    plt.close(figure)
    with pytest.raises(ValueError, match="keeps no bins"):
        ESTIMATE.plot(ax)


def test_an_estimate_without_bins_has_none():
    assert ESTIMATE.bins is None
    assert math.isclose(cal.brier([0, 1], [0.5, 1.0]), 0.125)


def test_an_interval_has_its_ends_in_order():
    with pytest.raises(ValueError, match="low <= high"):
        cal.Interval(0.3, 0.2, level=0.95, method="")


def test_errors_are_moved_inside_their_intervals_and_other_numbers_are_not():
    interval = cal.Interval(0.01, 0.05, level=0.95, method="", target=cal.results.Target("true error", 1.0))
    for seen, moved in ((0.03, 0.03), (0.09, 0.05), (-0.01, 0.01), (0.0, 0.01)):
        found = cal.Estimate(seen, name="error", method="m", n=9, interval=interval)
        assert Value.of(found, 0.0) == Value(moved, 0.01, 0.05)
        assert Value.of(found) == Value(seen, 0.01, 0.05)
    assert Value.of(cal.Estimate(-0.01, name="error", method="m", n=9), 0.0) == Value(0.0)
    assert math.isnan(Value.of(cal.Estimate(math.nan, name="error", method="m", n=9, interval=interval), 0.0).value)


def test_an_estimate_outside_its_interval_says_why():
    interval = cal.Interval(0.01, 0.05, level=0.95, method="", target=cal.results.Target("true error", 1.0))
    inside, above, below = (
        cal.Estimate(v, name="ECE (L1)", method="m", n=9, interval=interval) for v in (0.03, 0.09, -0.01)
    )
    assert inside.note == ""
    assert inside.to_dict()["note"] == ""
    assert "above the interval, which is for the true error (L1)" in above.note
    assert "below zero" in below.note
    for outside in (above, below):
        assert outside.note in repr(outside)
        assert outside.note == outside.to_dict()["note"]
    assert "bias" in above._repr_html_()


@pytest.mark.parametrize("text", ["plain", "Österreich", "日本", "a b", "emoji 👩\u200d💻", 'tab le\'s "x" \\ | <b>'])
def test_text_that_only_shows_stays_as_it_is(text):
    assert printable(text) == text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[2J", r"\x1b[2J"),
        ("\x1b]0;title\x07", r"\x1b]0;title\x07"),
        ("\x9b31m", r"\x9b31m"),
        ("a\nb\rc\td\x00", r"a\nb\rc\td\x00"),
        ("\u202eabc\u2066", r"\u202eabc\u2066"),
        ("\u2028", r"\u2028"),
        ("\ud800", r"\ud800"),
        ("\x7f\x08", r"\x7f\x08"),
    ],
)
def test_what_acts_is_written_out(text, shown):
    assert printable(text) == shown
    assert printable(text).isprintable()


def test_anything_has_a_text():
    assert printable(7) == "7"
    assert printable(None) == "None"


def test_text_shows_the_interval_and_numbers_stay_numbers():
    with_ends = ESTIMATE.with_interval(INTERVAL)
    assert str(with_ends) == f"{with_ends}" == format(with_ends, "") == "0.25 (95% interval 0.20 to 0.30)"
    assert "0.25 [0.2, 0.3] at 95%" in repr(with_ends)
    narrow = ESTIMATE.with_interval(replace(INTERVAL, level=0.9975))
    assert "(99.75% interval" in str(narrow)
    lower = ESTIMATE.with_interval(replace(INTERVAL, low=0.2345, high=math.inf, side="lower"))
    assert str(lower) == "0.250 (95% lower bound 0.234)"
    assert str(ESTIMATE.with_interval(replace(INTERVAL, low=0.25, high=0.25))) == "0.25 (95% interval 0.25 to 0.25)"
    low, high = INTERVAL
    assert (low, high) == (INTERVAL.low, INTERVAL.high)
    assert (f"{with_ends:.3f}", f"{with_ends:g}", json.dumps(with_ends)) == ("0.250", "0.25", "0.25")
    assert (float(with_ends), with_ends + 1, type(with_ends * 1)) == (0.25, 1.25, float)
    assert str(ESTIMATE) == f"{ESTIMATE}" == "0.25"
