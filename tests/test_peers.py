"""The comparison with peers: its rules tell right answers from wrong ones, and the page shows what was measured."""

import json

import numpy as np
import pytest
from benchmarks import peer_answers, peers


@pytest.fixture(scope="module")
def stored():
    return json.loads(peers.STORED.read_text(encoding="utf8"))


@pytest.mark.slow
def test_the_page_and_the_results_show_the_table_of_the_answers_kept(stored):
    lines = [*peers.rules(), "", *peers.table(stored["packages"])]
    text = peers.PAGE.read_text(encoding="utf8")
    assert peers.on_page(text, lines, stored["day"]) == text
    assert "\n".join(lines) in (peers.RESULTS / "peers.md").read_text(encoding="utf8")


def test_every_package_was_asked_in_one_run_and_every_question_has_our_answer(stored):
    assert set(stored["packages"]) == set(peer_answers.PACKAGES)
    assert set(stored["packages"]["calibrant"]["found"]) == set(peers.QUESTIONS)


@pytest.mark.parametrize("case", ["inside bins", "on edges", "at 0 and 1"])
def test_our_answers_are_still_those_kept(stored, case):
    _, answer = peer_answers.calibrant()["ECE"]
    kept = stored["packages"]["calibrant"]["found"]["ECE"]["answers"][case]
    assert float(answer(*peer_answers.ece_case(case))) == pytest.approx(kept, rel=1e-7)


def test_ece_is_right_with_either_end_of_a_bin_closed_and_wrong_otherwise():
    right, left = (float(n @ np.abs(f - p) / n.sum()) for n, f, p in peers.curves("on edges"))
    assert abs(right - left) > 1e-3
    assert peers.judged("ECE", "on edges", right)[0]
    assert peers.judged("ECE", "on edges", left)[0]
    assert not peers.judged("ECE", "on edges", right + 1e-5)[0]


@pytest.mark.parametrize(("answer", "right"), [("ValueError: row 7", True), (float("nan"), True), (0.03, False)])
def test_a_row_that_is_no_probability_must_not_give_a_number(answer, right):
    assert peers.judged("ECE", "one 1.3", answer)[0] is right


def test_an_error_where_there_is_an_answer_is_wrong():
    assert peers.judged("true error", "wave", "ValueError: no") == (False, "wave: ValueError")


def test_a_mean_must_be_near_the_truth():
    assert peers.true_error("too extreme") == pytest.approx(0.075, abs=1e-3)
    assert peers.true_error("5 scores, each off by 0.05") == pytest.approx(0.05)
    assert peers.judged("true error", "too extreme", [0.07, 0.09])[0]
    assert not peers.judged("true error", "too extreme", [0.09, 0.09])[0]


def test_intervals_must_hold_the_truth_and_tests_reject_what_is_wrong():
    assert peers.judged("interval", "calibrated", [[0, 0.02]] * 60)[0]
    assert not peers.judged("interval", "calibrated", [[0.01, 0.02]] * 60)[0]
    assert peers.judged("test", "calibrated", np.linspace(0, 1, 200))[0]
    assert not peers.judged("test", "calibrated", np.linspace(0, 0.3, 200))[0]
    assert not peers.judged("test", "wave", np.linspace(0, 1, 200))[0]


def test_a_map_may_not_do_harm():
    assert peers.judged("repair", "calibrated", [0.0004])[0]
    assert not peers.judged("repair", "calibrated", [0.002])[0]
    assert peers.judged("repair", "too extreme", [0.002])[0]
    assert not peers.judged("repair", "too extreme", [np.inf])[0]


def test_truths_of_forecasts():
    assert peers.true_coverage("calibrated") == pytest.approx(0, abs=1e-9)
    y, mean, std = peer_answers.crps_case("all valid")
    z = (y - mean) / std
    from scipy.stats import norm

    closed = np.mean(std * (z * (2 * norm.cdf(z) - 1) + 2 * norm.pdf(z) - 1 / np.sqrt(np.pi)))
    assert peers.crps_definition("all valid") == pytest.approx(closed, abs=1e-6)
