"""The parts of a report as plain values."""

from calibrant.reporting.contents import CannotBuild, Verdict
from calibrant.results.estimate import Value


def test_a_value_excludes_only_what_lies_outside_a_known_interval():
    assert Value(0.8, 0.7, 0.9).excludes(1.0)
    assert not Value(0.8, 0.7, 1.0).excludes(1.0)
    assert not Value(0.8).excludes(1.0)


def test_a_verdict_reads_as_its_sentences():
    verdict = Verdict("B12", "not calibrated", "problem", "too extreme", "Too extreme.")
    assert str(verdict) == "Too extreme."
    assert str(Verdict("B12", "not calibrated", "problem", "too extreme", "One.", "Two.")) == "One. Two."


def test_the_message_is_the_reason():
    assert str(CannotBuild("One score only.")) == "One score only."
