"""Results of other rooms show themselves in a notebook: every number, in words, with the users' names escaped."""

import re
from dataclasses import replace
from html import unescape

import numpy as np
import pytest

import calibrant as cal
from calibrant.inference.decision_curves import net_benefit
from calibrant.results.estimate import Interval, Significance
from calibrant.simulate import PAPER_WORLDS, advise
from tests.reporting.hand_made import HOSTILE
from tests.reporting.samples import CALIBRATED, GROUPS, OVER, SPREAD


def words(html):
    return unescape(re.sub(r"(?s)<style>.*?</style>|<[^>]+>", " ", html)).replace("\u00a0", " ")


def test_an_estimate_shows_its_interval_and_what_it_is():
    found = cal.ece(OVER)
    interval = Interval(0.1, 0.14, level=0.95, method="by hand")
    text = words(found.with_interval(interval)._repr_html_())
    assert "ECE, 15 equal-mass bins" in text
    assert "0.100 to 0.140" in text
    assert "Mean gap per bin" in text
    assert "interval" not in words(found._repr_html_())


@pytest.mark.parametrize(("side", "said"), [("lower", "at least 0.1000"), ("upper", "at most 0.1400")])
def test_bounds_of_one_side(side, said):
    ends = (0.1, np.inf) if side == "lower" else (-np.inf, 0.14)
    html = cal.ece(OVER).with_interval(Interval(*ends, level=0.9, method="m", side=side))._repr_html_()
    assert said in words(html)
    assert "90 % interval" in words(html)


def test_a_test_says_what_it_asks_and_what_follows():
    off = words(cal.calibration_test(OVER)._repr_html_())
    assert "≤ 0.001" in off
    assert " evidence of miscalibration" in off
    fine = words(cal.calibration_test(CALIBRATED)._repr_html_())
    assert "no significant evidence of miscalibration" in fine
    other = words(Significance(1.0, 0.5, "own test", 10, null="no difference")._repr_html_())
    assert "no significant evidence against: no difference" in other


def test_a_decomposition_adds_up_in_words():
    text = words(cal.decompose(OVER)._repr_html_())
    for sign in ("= Miscalibration", "− Discrimination", "+ Uncertainty"):
        assert sign in text


def test_a_comparison_names_the_lower_one_only_where_it_is_clear():
    repaired = cal.Binary(OVER.y_true, 0.5 + 0.6 * (OVER.y_prob - 0.5))
    clear = replace(cal.compare(cal.brier, OVER, repaired), b=HOSTILE)
    assert f"Lower: {HOSTILE} (p < 0.001)" in words(clear._repr_html_())
    assert "<img" not in clear._repr_html_()
    noise = cal.Binary(OVER.y_true, np.clip(OVER.y_prob + 1e-9, 0, 1))
    assert "No clear difference" in words(cal.compare(cal.brier, OVER, noise)._repr_html_())


def test_groups_show_estimate_interval_and_direction_with_names_escaped():
    found = cal.by_group(cal.ece, OVER, by=GROUPS)
    html = found._repr_html_()
    assert "<script>" not in html
    text = words(html)
    for row in found.rows:
        assert str(row.group) in text
        assert f"{row.n:,}" in text
    assert html.count("<circle") == len(found)


def test_classes_are_shown_as_groups_are():
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(30), 600)
    y = (rng.random((600, 1)) > p.cumsum(axis=1)).sum(axis=1)
    names = [f"<i>{k:02d}" for k in range(30)]
    wrong = np.where(y == 3, 4, y)
    html = cal.by_class(cal.Multiclass(np.array(names)[wrong], p, classes=names), draws=99)._repr_html_()
    text = words(html)
    assert "1 of 30 classes is miscalibrated after adjustment" in text
    assert "too high" in text
    assert "not flagged" in text
    assert "10 more classes, with less evidence." in text
    assert "<i>" not in html
    assert 'class="calibrant-result"' in html


def test_forecasts_have_no_events():
    by = np.arange(len(SPREAD)) % 3
    text = words(cal.by_group(cal.ence, SPREAD, by=by)._repr_html_())
    assert "events" not in text


def test_advice_is_a_table_with_its_conclusions():
    advice = advise(PAPER_WORLDS["resnet110_c100"].sample(300), estimators={HOSTILE: cal.ece}, repeats=20)
    html = advice._repr_html_()
    assert "<img" not in html
    assert "Least bias" in words(html)


def test_a_decision_curve_is_a_table_of_thresholds():
    html = net_benefit(OVER)._repr_html_()
    assert "net benefit" in words(html)
    assert 2 < html.count("<tr>") < 25
    few = net_benefit(OVER, thresholds=[0.2, 0.4])._repr_html_()
    assert few.count("<tr>") == 3


def test_intervals_are_drawn_at_the_size_of_a_line():
    html = cal.ece(OVER).with_interval(Interval(0.1, 0.14, level=0.95, method="by hand"))._repr_html_()
    assert 'viewBox="0 0 200 26"' in html
