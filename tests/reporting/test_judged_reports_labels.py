"""Sections of judged answers."""

import numpy as np

import calibrant as cal
from calibrant.reporting.judged_reports import labels_section
from tests.reporting.test_judged_reports import answers


def test_ranges_hold_ten_gold_labels():
    data = answers(labels=45)
    section = labels_section(data)
    assert len(section.ranges) == 4
    for one in section.ranges:
        inside = (data.y_prob >= one.low) & (data.y_prob <= one.high)
        assert (inside & data.known).sum() >= 10
        assert inside.sum() == one.n
    assert len(labels_section(answers(labels=200)).ranges) == 5


def test_the_code_uses_the_users_names():
    assert "next_labels(100)" in labels_section(answers()).code
    assert "next_labels(20)" in labels_section(answers(n=120, labels=100)).code


def test_a_judge_is_tested_as_a_probability():
    section = labels_section(answers())
    (judge,) = section.judges
    assert judge.labels == 200
    assert judge.p_value < 0.01
    assert 0.02 < judge.error.low < judge.error.high < 0.2
    assert section.gain < 0.8


def test_scores_on_another_scale_are_not_tested():
    data = answers()
    scaled = cal.Judged(data.gold, data.y_prob, judge=10 * data.scores)
    section = labels_section(scaled)
    assert section.judges[0].mean is None
    assert "not probabilities" in section.note
    assert np.isclose(section.gain, labels_section(data).gain)
