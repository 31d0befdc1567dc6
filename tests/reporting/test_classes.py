"""The report on several classes."""

import numpy as np
import pytest

import calibrant as cal

rng = np.random.default_rng(2)
LOGITS = 1.5 * rng.standard_normal((3000, 4))


def softmax(z):
    e = np.exp(z - z.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def drawn(p):
    return (rng.random((len(p), 1)) > p.cumsum(axis=1)).sum(axis=1)


Y = drawn(softmax(LOGITS))


def test_a_sharp_softmax_is_over_confident():
    found = cal.report(cal.Multiclass(Y, softmax(1.7 * LOGITS)), row="ticket")
    assert found.contents.kind == "classes"
    assert found.verdict.rule == "M1"
    assert found.verdict.direction == "over-confident"
    assert "right for" in found.verdict.sentence
    assert {"CAL211", "CAL205"} <= {finding.code for finding in found.findings}
    assert [test.method.split("(")[0] for test in found.tests] == ["VectorTest", "MultiScale"]
    assert "Classwise ECE (L1)" in {m.estimate.name for m in found.measures}
    assert [number.name for number in found.contents.numbers] == [
        "Top-label calibration error, L1", "Confidence − accuracy", "Class-wise calibration error",
    ]  # fmt: skip


@pytest.mark.no_cover
def test_the_scores_are_those_of_the_whole_vector():
    data = cal.Multiclass(Y, softmax(LOGITS))
    measured = {m.estimate.name: m.estimate for m in cal.report(data).measures}
    assert measured["Log loss"] == cal.log_loss(data)
    assert measured["Brier score"] == cal.brier(data)


@pytest.mark.no_cover
def test_rows_of_an_impossible_class_are_found():
    p = softmax(LOGITS)
    p[np.arange(5), Y[:5]] = 0.0
    p /= p.sum(axis=1, keepdims=True)
    found = {f.code: f.text for f in cal.report(cal.Multiclass(Y, p)).findings}
    assert found["CAL101"].startswith("5 rows were of a class predicted with a probability of exactly 0.")


@pytest.mark.no_cover
def test_weights_leave_the_top_label():
    data = cal.Multiclass(Y, softmax(1.7 * LOGITS), weight=rng.random(3000))
    found = cal.report(data)
    assert found.verdict.direction == "over-confident"
    assert found.verdict.second == "The whole vector cannot be tested with weights or dependent rows."
