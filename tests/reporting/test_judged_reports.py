"""Reports of judged answers."""

import json

import numpy as np
import pandas as pd
import pytest

import calibrant as cal
from tests.reporting.layout.test_page import CHROMIUM, browser  # noqa: F401


def answers(seed=0, n=1500, labels=200, power=1.0, **more):
    """Answers with a judge of 90 %; a power above 1 makes the confidence too high."""
    rng = np.random.default_rng(seed)
    p = rng.beta(4, 2, n)
    right = rng.random(n) < p**power
    gold = np.where(np.isin(np.arange(n), rng.choice(n, labels, replace=False)), right * 1.0, np.nan)
    judge = np.where(rng.random(n) < 0.9, right, ~right) * 1.0
    return cal.Judged(gold, p, judge=judge, **more)


def test_over_confident_answers_are_called_so_and_nothing_beside_it_disagrees():
    found = cal.report(answers(power=2.5))
    assert found.verdict.rule == "L1"
    assert found.verdict.direction == "over-confident"
    ratio = next(one.estimate for one in found.measures if one.estimate.name == "O:E ratio")
    assert ratio.interval.high < 1
    assert ratio.interval.level == pytest.approx(0.9875)
    assert "200 gold labels of 1,500 answers" in found.verdict.how_sure
    assert "simple random sample" in found.verdict.what_it_means
    assert "cal.recalibrate.Auto().fit(data.labelled())" in found.verdict.what_to_do


def test_calibrated_answers_are_accused_in_at_most_one_of_ten_samples():
    rejected = [cal.calibration_test(answers(seed, n=600, labels=100)).p_value < 0.05 for seed in range(40)]
    assert np.mean(rejected) <= 0.1


def test_intervals_beside_a_test_that_does_not_reject_include_their_ideals():
    for seed in range(12):
        found = cal.report(answers(seed, n=500, labels=80))
        if found.tests[0].p_value >= 0.05:
            assert found.verdict.state in ("not significant", "too few")
            assert not any(number.off for number in found.contents.numbers)


def test_few_labels_are_not_judged():
    found = cal.report(answers(labels=15))
    assert found.verdict.state == "cannot be judged"
    assert "fewer than 20" in found.verdict.sentence
    assert cal.report(answers(labels=30)).verdict.state == "too few"


def test_a_group_without_gold_has_no_number():
    data = answers(power=2)
    by = np.where(data.known, "a", np.where(np.arange(len(data)) % 2, "a", "new"))
    found = cal.report(data, by={"model": by})
    (groups,) = found.groups
    assert [row.name for row in groups.rows] == ["a"]
    assert groups.omitted == "No gold label, so no number: new."
    assert "CAL802" in [one.code for one in found.findings]


def test_the_code_has_the_users_names():
    data = answers()
    frame = pd.DataFrame({"human": data.gold, "sure": data.y_prob, "score": data.scores[:, 0]})
    named = cal.Judged(frame["human"], frame["sure"], judge=frame[["score"]])
    (section,) = [one for one in cal.report(named).contents.sections if type(one).__name__ == "Labels"]
    assert section.code.startswith('data = cal.Judged(table["human"], table["sure"], judge=table["score"])')
    assert "next_labels(100)" in section.code


def test_every_format_is_written(tmp_path):
    found = cal.report(answers(by={"model": np.arange(1500) % 3}), title="Answers")
    assert "Is the judge calibrated?" in str(found)
    assert "## What to label next" in found.to_markdown()
    page = found.save(tmp_path / "page.html").read_text(encoding="utf8")
    assert "judged answers with few gold labels" in page
    assert "Accuracy by confidence" in page
    made = json.loads(found.to_json())
    assert made["kind"] == "judged"
    assert made["facts"]["labels"] == 200
    assert [one["section"] for one in made["sections"]] == ["Groups", "Labels"]


def test_weights_are_named_and_times_left_out():
    found = cal.report(answers(weight=np.full(1500, 2.0)), time=np.arange(1500))
    assert "weights imply" in found.verdict.what_it_means
    assert "Over time" in [one.section for one in found.contents.omitted]


@pytest.mark.browser
@pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")
@pytest.mark.parametrize("width", [1280, 390])
def test_nothing_sticks_out_of_the_page(tmp_path, width, browser):  # noqa: F811
    data = answers(power=2.5)
    found = cal.report(data, by={"model": np.where(np.arange(len(data)) % 2, "large", "small")})
    view = browser.new_page(viewport={"width": width, "height": 900})
    view.goto(found.save(tmp_path / "page.html").as_uri())
    assert view.evaluate("document.documentElement.scrollWidth") <= width
    view.close()
