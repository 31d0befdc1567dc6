"""A metric fed batch by batch gives the estimate of all rows."""

import sys
from functools import partial

import numpy as np
import pytest

import calibrant as cal
from calibrant.integrations.torchmetrics import CalibrationError


def test_batches_give_the_estimate_of_all_rows(rows):
    y, p = rows
    metric = CalibrationError(partial(cal.ece, bins=cal.EqualMass(10)))
    for start in range(0, 3000, 700):
        metric.update(p[start : start + 700], y[start : start + 700])
    assert metric.compute() == pytest.approx(cal.ece(y, p, bins=cal.EqualMass(10)), abs=2e-4)
    assert metric.compute().n == 3000
    metric.reset()
    assert metric.table().n == 0


def test_tensors_of_class_probabilities_count_by_their_top_label():
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    logits = torch.randn(4, 3, 5, 6, requires_grad=True)
    target = torch.randint(0, 3, (4, 5, 6))
    target[0, 0] = -100
    metric = CalibrationError(ignore_index=-100)
    metric.update(logits.softmax(1), target)
    keep = (target != -100).numpy()
    p = np.moveaxis(logits.detach().softmax(1).numpy(), 1, -1)[keep]
    expected = cal.ece(cal.Multiclass(target.numpy()[keep], p).top_label())
    assert metric.compute().n == 4 * 30 - 6
    assert metric.compute() == pytest.approx(expected, abs=1e-3)


def test_two_metrics_merge_into_one_of_all_rows(rows):
    y, p = rows
    whole, left, right = CalibrationError(), CalibrationError(), CalibrationError()
    whole.update(p, y)
    assert left(p[:1000], y[:1000]).n == 1000
    right.update(p[1000:], y[1000:])
    left.merge_state(right)
    assert left.compute() == pytest.approx(whole.compute(), abs=1e-12)


def test_logits_are_refused():
    with pytest.raises(cal.InvalidPredictions, match=r"\[0, 1\]"):
        CalibrationError().update([3.0, -2.0], [1, 0])


def test_without_torchmetrics_it_says_what_to_install(monkeypatch):
    from calibrant.integrations.torchmetrics import torch_metric

    monkeypatch.setitem(sys.modules, "torchmetrics", None)
    monkeypatch.delitem(sys.modules, "calibrant.integrations.torchmetrics_state", raising=False)
    with pytest.raises(ImportError, match="pip install torchmetrics"):
        torch_metric()
