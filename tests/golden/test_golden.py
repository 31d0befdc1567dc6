import json
from pathlib import Path

import numpy as np
import pytest

import calibrant as cal
from tests.golden.__main__ import with_reason
from tests.golden.calls import PARTS
from tests.golden.record import differences, flat, recorded

LOG = "# Changelog\n\n## Unreleased\n\n### Added\n\n- a\n\n## 0.1.0\n\n### Numbers that changed\n\n- old\n"


def test_every_number_of_a_result_is_recorded():
    data = cal.Binary([0, 1] * 50, [0.2, 0.7] * 50)
    found = flat(cal.interval(cal.ece, data), "ece")
    assert set(found) == {"ece", "ece.low", "ece.high", "ece.method"}
    curve = flat(cal.reliability_curve(data, draws=19), "curve")
    assert sum(isinstance(value, float) for value in curve.values()) > 8


def test_a_call_that_raises_an_error_is_recorded_by_its_kind():
    assert recorded("part", [("call", lambda: [][1])]) == {"part/call": "raises IndexError"}


@pytest.mark.parametrize("moved", [1 + 1e-8, np.nan, None, "1", 2.0])
def test_what_moved_is_named(moved):
    before = {"a": 1.0, "b": np.nan, "c": "text"}
    assert differences(before, before | {"a": 1.0 + 1e-12}) == []
    assert differences(before, before | {"a": moved}) == [f"a: 1.0 -> {moved}"]
    assert differences(before, {"b": np.nan, "c": "text", "d": 0.0}) == ["a: 1.0 -> missing", "d: missing -> 0.0"]


def test_a_reason_is_listed_under_numbers_that_changed_of_the_newest_section():
    once = with_reason(LOG, "folds are salted", 12)
    assert once.index("folds are salted (12 frozen values)") < once.index("## 0.1.0")
    assert once.count("### Numbers that changed") == 2
    twice = with_reason(once, "seeds too", 1)
    assert "- folds are salted (12 frozen values)\n- seeds too (1 frozen value)\n" in twice
    assert twice.count("### Numbers that changed") == 2


def test_a_section_between_others_keeps_them():
    log = LOG.replace("### Added", "### Numbers that changed\n\n- first\n\n### Added")
    assert "- first\n- second (2 frozen values)\n\n### Added" in with_reason(log, "second", 2)


def test_one_part_gives_the_frozen_values():
    frozen = json.loads(Path(__file__).with_name("values.json").read_text(encoding="utf-8"))["values"]
    now = recorded("scale", PARTS["scale"]())
    assert differences({name: one for name, one in frozen.items() if name.startswith("scale/")}, now) == []
