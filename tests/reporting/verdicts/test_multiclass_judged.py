"""The verdict on judged answers."""

from calibrant.reporting.verdicts.evidence import JudgedAnswers, VerdictTest
from calibrant.reporting.verdicts.multiclass import JUDGED
from calibrant.results.estimate import Value


def evidence(p_value=0.4, **more):
    known = {
        "n": 2000, "events": 1400.0, "predicted": 0.72, "gold": 200, "rarer_gold": 60.0, "confidence": True,
        "error": Value(0.03, 0.0, 0.08), "ratio": Value(0.97, 0.9, 1.05), "test": VerdictTest("test", p_value),
    }  # fmt: skip
    return JudgedAnswers(**{**known, **more})


def test_rows_of_the_table():
    assert JUDGED.row(evidence()).rule == "J3"
    assert JUDGED.row(evidence(error=Value(0.003, 0.0, 0.01))).rule == "J2"
    assert JUDGED.row(evidence(gold=49)).rule == "J1"
    assert JUDGED.row(evidence(rarer_gold=9.0)).rule == "J1"
    assert JUDGED.row(evidence(test=None, untested="few")).rule == "JU"
    off = evidence(0.001, ratio=Value(0.8, 0.7, 0.9), error=Value(0.1, 0.05, 0.15), events=1150.0)
    assert JUDGED.row(off).rule == "L1"


def test_more_labels_are_the_advice_until_the_error_is_known_to_be_small():
    assert "Label more" in JUDGED.verdict(evidence()).what_to_do
    assert "Nothing" in JUDGED.verdict(evidence(error=Value(0.003, 0.0, 0.01))).what_to_do
    off = evidence(0.001, ratio=Value(0.8, 0.7, 0.9), error=Value(0.1, 0.05, 0.15), events=1150.0)
    assert "cal.recalibrate.Auto()" in JUDGED.verdict(off).what_to_do


def test_the_assumption_is_said():
    assert "random sample" in JUDGED.verdict(evidence()).what_it_means
    assert "weights imply" in JUDGED.verdict(evidence(sampled=True)).what_it_means
