import json

import numpy as np
import pytest

from calibrant.monitor import Monitor


def after(days, rate, **options):
    rng, monitor = np.random.default_rng(0), Monitor(tolerance=0.0)
    for day in range(days):
        p = rng.beta(1, 3, 200)
        status = monitor.update(rng.random(200) < rate(p), p, time=f"2026-01-{day + 1:02d}", **options)
    return status


def test_a_status_without_an_alarm_is_one_sentence_that_a_person_understands():
    status = after(30, lambda p: p)
    assert status.sentence.startswith("No alarm: 6,000 rows up to 2026-01-30, anytime p = ")
    assert "observed minus predicted" in status.sentence
    assert "O:E" in status.sentence
    assert status.exit_code == 0
    assert repr(status) == f"<Status: {status.sentence}>"


def test_an_alarm_says_since_when_which_scores_and_by_how_much():
    status = after(30, lambda p: p * 0.5)
    assert status.sentence.startswith("Alarm on 2026-01-0")
    assert "are too high" in status.sentence
    assert status.exit_code == 1
    low, high = status.gap.interval.low, status.gap.interval.high
    assert low < status.gap < high < 0


def test_the_dictionary_is_json_and_holds_the_sentence():
    status = after(20, lambda p: p * 0.5)
    plain = json.loads(json.dumps(status.to_dict()))
    assert plain["sentence"] == status.sentence
    assert plain["exit_code"] == 1
    assert plain["where"]["shift"] < 0
    assert plain["gap"]["interval"]["high"] < 0


def test_names_of_groups_cannot_move_the_cursor_of_a_terminal():
    status = after(30, lambda p: p * 0.4, group=["a\x1b[31m"] * 200)
    assert "\x1b" not in status.sentence
    assert status.groups == ("a\x1b[31m",)


def test_many_groups_are_counted_not_listed():
    from dataclasses import replace

    status = replace(after(3, lambda p: p), alarm=False, groups=tuple(f"g{k}" for k in range(30)))
    assert "g7 and 22 more" in status.sentence


@pytest.mark.parametrize(("tolerance", "words"), [(0.5, "tolerance")])
def test_a_gap_that_excludes_zero_beside_no_alarm_is_explained(tolerance, words):
    rng, monitor = np.random.default_rng(1), Monitor(tolerance=tolerance)
    p = rng.beta(2, 3, 60_000)
    status = monitor.update(rng.random(60_000) < p * 1.2 / (1 + 0.2 * p), p)
    assert not status.alarm
    assert 0 not in status.gap.interval
    assert words in status.sentence


def test_an_alarm_beside_an_interval_that_includes_no_error_quotes_the_evidence_that_raised_it():
    rng, monitor = np.random.default_rng(2), Monitor()
    for day in range(40):
        p = rng.beta(0.3, 8, 120)
        group = np.where(rng.random(120) < 0.3, "app", "web")
        odds = np.where((day >= 20) & (group == "app"), 3.0, 1.0) * p / (1 - p)
        status = monitor.update(rng.random(120) < odds / (1 + odds), p, time=day, group=group)
        if status.alarm:
            break
    assert status.alarm
    assert 0.0 in status.gap.interval
    assert 1.0 in status.observed_expected.interval
    assert f"reached {1 / status.p_value:,.3g}; 20 is enough" in status.sentence
    assert "The interval still includes zero" in status.sentence


def test_an_alarm_whose_interval_excludes_no_error_needs_no_explanation():
    assert "The interval includes" not in after(30, lambda p: p * 0.5).sentence


def test_ends_of_the_range_of_scores_have_no_more_digits_than_anyone_reads():
    from dataclasses import replace

    from calibrant.monitor.status import Where

    status = replace(after(30, lambda p: p * 0.5), where=Where(0.0000583, 0.3206, -0.5))
    assert "Scores from 0.01 % to 32 % are too high." in status.sentence
    assert "from 0 % to 99.64 %" in replace(status, where=Where(0.0, 0.99642, -0.5)).sentence
