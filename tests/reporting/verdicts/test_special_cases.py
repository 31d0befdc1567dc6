"""Predictions that leave little to judge."""

from dataclasses import replace

from calibrant.reporting.contents import Value
from calibrant.reporting.verdicts.special_cases import level, nothing_to_judge, one_outcome, one_score, too_few
from tests.reporting.verdicts.evidence_samples import ACCEPTS, PLAIN


def test_rows_that_do_not_apply_say_nothing():
    assert one_outcome(PLAIN) is None
    assert one_score(PLAIN) is None
    assert too_few(PLAIN) is None


def test_few_of_the_confidence():
    found = too_few(replace(PLAIN, n=200, events=195, confidence=True, test=ACCEPTS, error=None))
    assert found.sentence == "Too few wrong predictions to judge: 5 among 200 rows."


def test_words():
    assert nothing_to_judge("") == "Nothing to judge: no row has both a prediction and an outcome."
    assert level(replace(PLAIN, ratio=Value(1.2, 1.1, 1.3))) == "too low"
    assert level(PLAIN) is None
