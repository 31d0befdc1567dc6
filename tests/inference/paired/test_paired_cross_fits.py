"""Two models of several classes on the same rows: equal ones are seldom called different, the better one is found."""

from functools import partial

import numpy as np
import pytest

import calibrant as cal
from calibrant.inference import PairedCrossFits, PairedGaps
from tests.inference.class_worlds import sample, softmax


def views(n=600, seed=0, temperatures=(1.0, 1.0)):
    """Two models that see independent views of the same label, each with its posterior, tempered."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, n)
    made = []
    for temperature in temperatures:
        z = rng.normal(size=(n, 3)) + 1.5 * np.eye(3)[y]
        made.append(cal.Multiclass(y, softmax(1.5 * z * temperature)))
    return made


def test_the_worse_model_is_found_in_every_norm():
    worse, better = views(temperatures=(2.5, 1.0))
    for norm in (1, "kl"):
        found = cal.compare(partial(cal.calibration_error, norm=norm), worse, better)
        assert found.p_value < 0.01
        assert 0 < found.interval.low < found.difference < found.interval.high
        assert found.difference == pytest.approx(found.value_a - found.value_b, rel=0.3)
        assert found.interval.target == cal.results.Target("true error", norm)


def test_equal_models_are_seldom_called_different():
    called = [cal.compare(cal.calibration_error, *views(150, k)).p_value <= 0.05 for k in range(8)]
    assert sum(called) <= 2


def test_a_model_does_not_differ_from_itself():
    data, _ = sample(200, 3)
    found = cal.compare(cal.calibration_error, data, data)
    assert (found.difference, found.p_value) == (0.0, 1.0)


@pytest.mark.no_cover
def test_groups_widen_the_interval():
    worse, better = views(temperatures=(2.0, 1.0))
    rows = np.repeat(np.arange(600), 2)
    widths = []
    for group in (np.arange(1200), rows):
        pair = [cal.Multiclass(one.y_true[rows], one.y_prob[rows], group=group) for one in (worse, better)]
        found = PairedCrossFits().difference(*pair, norm=1, level=0.95)
        widths.append(found.high - found.low)
    assert widths[1] > 1.2 * widths[0]


def test_top_labels_are_compared_as_binary_tasks_and_scores_by_the_bootstrap():
    worse, better = views(300, temperatures=(2.5, 1.0))
    top = cal.compare(partial(cal.calibration_error, top_label="reduced"), worse, better)
    assert top.interval.method.startswith("PairedGaps")
    assert cal.compare(cal.brier, worse, better, method=cal.Bootstrap(19)).difference > 0


def test_what_has_no_method_is_refused():
    a, b = views(100)
    for estimator in (cal.kernel_error, partial(cal.classwise, cal.ece), lambda d: cal.ece(d.top_label())):
        with pytest.raises(cal.InvalidPredictions, match="hold its level"):
            cal.compare(estimator, a, b)
    with pytest.raises(TypeError, match="several classes"):
        cal.compare(cal.ece, a.top_label(), a.top_label(), method=PairedCrossFits())
    with pytest.raises(TypeError, match="binary"):
        cal.compare(cal.calibration_error, a, b, method=PairedGaps())
    p = np.tile([0.5, 0.5, 0.0], (50, 1))
    impossible = cal.Multiclass(np.arange(50) % 3, p)
    with pytest.raises(cal.InvalidPredictions, match="infinite"):
        PairedCrossFits().difference(impossible, impossible, norm="kl", level=0.95)
